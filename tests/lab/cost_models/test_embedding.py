"""The program embedding: what it computes, how it is fitted, and its file."""

from __future__ import annotations

import importlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.tuning.models.model_samples import made_up_trees

from tensorwright.base import RecordError
from tensorwright.tuning.models import LearnedModel, SavedModel, load_model
from tensorwright_lab.cost_models import NetworkSettings, judge, scores_of
from tensorwright_lab.cost_models.tree_arrays import trees_of
from tensorwright_lab.cost_models.tree_gru import TreeGru, shapes_of
from tensorwright_lab.feature_sets import LOOP_TREE, LOOPS, TREE_FIELDS

torch = pytest.importorskip("torch")

SETTINGS = NetworkSettings(width=16, steps=80, batch=64, learning_rate=1e-2)


def network(width: int = 8, seed: int = 0) -> TreeGru:
    source = np.random.default_rng(seed)
    return TreeGru(
        {
            name: source.normal(0.3, 0.5, shape).astype(np.float32)
            for name, shape in shapes_of(width).items()
        }
    )


def programs(count: int = 6, rows: int = 3) -> NDArray[np.float32]:
    return np.stack([each.features for each in made_up_trees("a", count, rows, 3)])


def trained(count: int = 100) -> LearnedModel:
    model = LearnedModel(SETTINGS, features=LOOP_TREE)
    model.observe(made_up_trees("a", count, 2, 0) + made_up_trees("b", count, 3, 1))
    assert model.refit()
    return model


def test_both_ways_to_compute_it_agree() -> None:
    training = importlib.import_module(SETTINGS.module)
    gru, features = network(), programs()
    weights = {name: torch.from_numpy(each) for name, each in gru.arrays.items()}
    found = training.scores_by(weights, trees_of(features)).numpy()
    np.testing.assert_allclose(found, gru.scores(features), rtol=1e-4, atol=1e-4)


def test_padding_counts_nothing() -> None:
    training = importlib.import_module(SETTINGS.module)
    gru, features = network(), programs()
    weights = {name: torch.from_numpy(each) for name, each in gru.arrays.items()}
    wider = np.concatenate([features, np.zeros_like(features[:, :2])], axis=1)
    is_row = np.arange(5)[None] < np.full((len(features), 1), 3)
    found = training.scores_by(weights, trees_of(wider, is_row)).numpy()
    np.testing.assert_allclose(found, gru.scores(features), rtol=1e-4, atol=1e-4)


def test_the_order_of_statements_in_a_loop_does_not_matter() -> None:
    gru, features = network(), programs(rows=2)
    table = features[..., : LOOPS * len(TREE_FIELDS)].reshape(*features.shape[:2], LOOPS, -1)
    table[:, :, :2, :] = table[:, :1, :2, :]  # the two outer loops are the same
    table[:, :, :2, :2] = (1.0, 0.0)
    features[..., : LOOPS * len(TREE_FIELDS)] = table.reshape(*features.shape[:2], -1)
    np.testing.assert_allclose(gru.scores(features), gru.scores(features[:, ::-1]), rtol=1e-9)
    apart = features.copy()
    apart[:, 1, 1] = 1.0  # the outermost loop of the second is its own
    apart[:, 1, 1 + len(TREE_FIELDS)] = 1.0
    assert (np.abs(gru.scores(apart) - gru.scores(features)) > 1e-6).all()


def test_it_learns_to_rank() -> None:
    tested = made_up_trees("a", 80, 2, 9)
    times = np.array([each.time_s for each in tested])
    assert judge(scores_of(trained(), tested), times).pair_accuracy > 0.85


def test_equal_samples_give_equal_networks() -> None:
    one = trained(40).predict(programs())
    with importlib.import_module("torch").no_grad():  # as programs that only judge have it
        other = trained(40).predict(programs())
    np.testing.assert_array_equal(one, other)


def test_it_is_kept_as_plain_arrays(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model = trained(40)
    assert model.save(path, "here")
    saved = load_model(path)
    np.testing.assert_array_equal(saved.predict(programs()), model.predict(programs()))
    assert (saved.feature_set, saved.hardware, saved.samples) == ("loop-tree", "here", 80)
    with np.load(path, allow_pickle=False) as file:
        assert set(file.files) == {"about", *shapes_of(SETTINGS.width)}


@pytest.mark.parametrize("place", [200, 400, 2000])
def test_a_damaged_file_is_refused(tmp_path: Path, place: int) -> None:
    path = tmp_path / "model.npz"
    saved_network().save(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"damaged|cannot be read"):
        load_model(path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RecordError, match="cannot be read"):
        load_model(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"score_bias": np.zeros(2, np.float32)}, "its arrays do not form a network"),
        ({"loop_bias": np.zeros((), np.float32)}, "its arrays do not form a network"),
        ({"score_bias": np.zeros(1, np.float64)}, "its weights are not 4-byte floats"),
        ({"score_bias": np.full(1, np.nan, np.float32)}, "a weight is not finite"),
    ],
)
def test_strange_weights_are_refused(
    tmp_path: Path, change: dict[str, NDArray[np.float32]], reason: str
) -> None:
    path = tmp_path / "model.npz"
    saved = saved_network()
    assert isinstance(saved.ranker, TreeGru)
    replace(saved, ranker=_changed(saved.ranker, change)).save(path)
    with pytest.raises(RecordError, match=reason):
        load_model(path)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    buffer = io.BytesIO()
    np.savez(buffer, about=np.array({"kind": "x"}, object))
    path.write_bytes(buffer.getvalue())
    with pytest.raises(RecordError, match="cannot be read"):
        load_model(path)


def test_a_network_for_other_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    replace(saved_network(), feature_set="itervar").save(path)
    with pytest.raises(RecordError, match="a network reads loop-tree"):
        load_model(path)


def test_without_torch_what_was_known_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError("No module named 'torch'")

    model = LearnedModel(SETTINGS, saved_network(), features=LOOP_TREE)
    before = model.predict(programs())
    monkeypatch.setattr(importlib, "import_module", missing)
    model.observe(made_up_trees("a", 40, 2, 0))
    with pytest.warns(RuntimeWarning, match=r"install tensorwright\[torch\]"):
        assert not model.update()
    np.testing.assert_array_equal(model.predict(programs()), before)


def saved_network() -> SavedModel:
    return SavedModel(network(), SETTINGS.loss, "here", 7, LOOP_TREE.name)


def _changed(gru: TreeGru, change: dict[str, NDArray[np.float32]]) -> TreeGru:
    found = TreeGru(gru.arrays)
    found.arrays = gru.arrays | change
    return found
