"""The time model: trees in native code, predictions, and a file that is refused when damaged."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.tuning.time_model.small_trees import model_of, random_tree, stump

from tensorwright.base import RecordError, cpu_target, override
from tensorwright.machine import machine_of
from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models import Forest, RooflineModel, Tree
from tensorwright.tuning.time_model import (
    ROW_NAMES,
    Policy,
    TimeModel,
    load_time_model,
    pretrained_model,
    save_time_model,
)

AVX2 = cpu_target("x86-64-avx2")
WIDTH = len(ROW_NAMES)


def random_model(seed: int = 0) -> TimeModel:
    random = np.random.default_rng(seed)
    forests = [
        tuple(random_tree(random, leaves, WIDTH) for leaves in (1, 2, 7, 31)) for _ in range(2)
    ]
    return model_of(*forests, Policy(0.75, 0.2))


def random_features(programs: int, statements: int) -> np.ndarray:
    random = np.random.default_rng(programs)
    return random.uniform(0, 30, (programs, statements, len(FEATURE_NAMES))).astype(np.float32)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 250])
def test_native_trees_give_what_the_forest_gives(rows: int) -> None:
    random = np.random.default_rng(rows)
    trees = [random_tree(random, int(leaves), 12) for leaves in random.integers(1, 33, 40)]
    given = random.normal(size=(rows, 12)).astype(np.float32)
    found = Forest.of(trees, 12).rounded.sums(given)
    assert found == pytest.approx(Forest.of(trees, 12).sums(given), abs=1e-4)


def test_a_value_on_the_threshold_goes_left() -> None:
    tree = Tree((0,), (0.1,), (-1,), (-2,), (1.0, 2.0))
    near = np.float32(0.1)  # a little more than 0.1
    rows = np.array([[np.nextafter(near, np.float32(0))], [near]], np.float32)
    assert Forest.of([tree], 1).sums(rows).tolist() == [1.0, 2.0]
    assert Forest.of([tree], 1).rounded.sums(rows).tolist() == [1.0, 2.0]


def test_no_trees_give_nothing() -> None:
    assert Forest.of((), 3).rounded.sums(np.ones((9, 3), np.float32)).sum() == 0
    with pytest.raises(ValueError, match="columns"):
        Forest.of([random_tree(np.random.default_rng(0), 2, 3)], 3).rounded.sums(
            np.ones((9, 4), np.float32)
        )


def arrays(**changed: list[float]) -> Forest:
    fields = {"starts": [0, 3], "features": [1, 0, 0, 0], "children": [1, 1, 2, 0]}
    fields |= {"values": [0.5, 1.0, 2.0, 3.0]} | changed
    kinds = {"starts": np.uint32, "features": np.uint16, "children": np.uint16}
    return Forest(
        2, **{name: np.array(part, kinds.get(name, np.float32)) for name, part in fields.items()}
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"starts": [1, 3]}, "roots"),
        ({"starts": [0, 0]}, "roots"),
        ({"starts": [0, 9]}, "roots"),
        ({"starts": []}, "no tree"),
        ({"values": [0.5, 1.0, 2.0]}, "match"),
        ({"features": [2, 0, 0, 0]}, "column"),
        ({"children": [2, 1, 2, 0]}, "before its children"),
        ({"children": [1, 0, 2, 0]}, "before its children"),
        ({"children": [1, 1, 2, 1]}, "before its children"),
        ({"values": [np.inf, 1.0, 2.0, 3.0]}, "finite"),
        ({"values": [0.5, np.nan, 2.0, 3.0]}, "finite"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(changed: dict[str, list[float]], reason: str) -> None:
    assert arrays().sums(np.array([[9, 0.5], [0, 0.6]], np.float32)).tolist() == [4, 5]
    with pytest.raises(RecordError, match=reason):
        arrays(**changed)


def test_the_roofline_is_corrected_by_trees() -> None:
    features, machine = random_features(5, 2), machine_of(AVX2, 2)
    plain = model_of().predict(features, machine)
    by_roofline = RooflineModel(machine).predict(features)
    assert np.diff(plain.median) == pytest.approx(-np.diff(by_roofline) / np.log(2), rel=1e-4)
    assert (plain.upper == plain.median).all()
    twice = model_of((stump("threads", 9.0, 1.0, 0.0),), (stump("threads", 9.0, 3.0, 0.0),))
    found = twice.predict(features, machine)
    assert found.median == pytest.approx(plain.median + 1.0)
    assert found.upper == pytest.approx(plain.median + 3.0)
    assert found.scores(0.5) == pytest.approx(plain.median + 2.0)
    below = model_of((stump("threads", 9.0, 1.0, 0.0),)).predict(features, machine)
    assert (below.upper == below.median).all()


def test_a_saved_model_is_the_same(tmp_path: Path) -> None:
    model = random_model()
    path = tmp_path / "model.npz"
    save_time_model(model, path)
    found = load_time_model(path)
    assert found.policy == Policy(0.75, 0.2)
    assert found.statistics == {"samples": 0}
    assert found.digest == model.digest
    features, machine = random_features(9, 3), machine_of(AVX2, 2)
    ours, theirs = model.predict(features, machine), found.predict(features, machine)
    assert ours.median.tolist() == theirs.median.tolist()
    assert ours.upper.tolist() == theirs.upper.tolist()
    content = path.read_bytes()
    save_time_model(found, path)
    assert path.read_bytes() == content


def test_another_model_has_another_digest() -> None:
    model = random_model()
    others = (random_model(1), replace(model, policy=Policy(0.75, 0.3)), model_of())
    assert len({each.digest for each in (model, *others)}) == 4


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """Every damage: an error that says so, or nothing that the model depends on."""
    path = tmp_path / "model.npz"
    save_time_model(random_model(), path)
    content = path.read_bytes()
    expected = load_time_model(path).digest
    refused = 0
    tried = range(0, len(content), len(content) // 200)
    for position in tried:
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            assert load_time_model(path).digest == expected
        except RecordError:
            refused += 1
    assert refused > len(tried) / 2
    for size in (0, 1, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(RecordError):
            load_time_model(path)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"kind": "x"}, "no time model"),
        ({"schema": 99}, "schema 99"),
        ({"rows": "abc"}, "digest"),
        ({"policy": {"caution": 0.0, "margin": 0.0}}, "digest"),
    ],
)
def test_a_changed_file_is_refused(tmp_path: Path, changed: dict[str, object], reason: str) -> None:
    path = tmp_path / "model.npz"
    save_time_model(random_model(), path)
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    about = json.loads(parts.pop("about").tobytes()) | changed
    np.savez(path, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **parts)
    with pytest.raises(RecordError, match=reason):
        load_time_model(path)


def test_what_is_pickled_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, about=np.array([{"kind": 1}], object))
    with pytest.raises(RecordError, match="pickle"):
        load_time_model(path)
    np.save(path.with_suffix(".npy"), np.ones(3))
    with pytest.raises(RecordError):
        load_time_model(path.with_suffix(".npy"))


@pytest.mark.parametrize("policy", [(-1.0, 0.1), (0.5, np.nan), (11.0, 0.0)])
def test_a_policy_is_checked(policy: tuple[float, float]) -> None:
    with pytest.raises(RecordError, match="between"):
        Policy(*policy)


def test_the_model_in_force_is_the_knobs(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_time_model(random_model(), path)
    with override(time_model=path):
        found = pretrained_model()
        assert found is not None
        assert pretrained_model() is found
        save_time_model(model_of(), path)
        changed = pretrained_model()
        assert changed is not None
        assert not len(changed.median)


@pytest.mark.parametrize("content", [None, b"", b"PK damaged"])
def test_a_file_that_cannot_be_used_is_told_once(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.npz"
    if content is not None:
        path.write_bytes(content)
    with override(time_model=path):
        with pytest.warns(RuntimeWarning, match="chosen by heuristic"):
            assert pretrained_model() is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert pretrained_model() is None
