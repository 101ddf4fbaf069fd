from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.targets import AVX512
from tests.unit.tuning.models.model_samples import WIDTH, made_up

from tensorwright.base import InternalError, RecordError
from tensorwright.machine import machine_of
from tensorwright.tuning import models
from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models.protocol import TREES_MODULE
from tensorwright.tuning.models.saved_model import FILE, SavedModel
from tensorwright_lab.cost_models import judge, overall, scores_of

SETTINGS = models.BoostedSettings(rounds=40)
TARGET = AVX512


def trained(settings: models.BoostedSettings = SETTINGS, count: int = 150) -> models.LearnedModel:
    model = models.LearnedModel(settings)
    model.observe(made_up("a", count, 3, 0) + made_up("b", count, 2, 1))
    assert model.refit()
    return model


@pytest.mark.parametrize("kind", models.LossKind)
def test_it_learns_to_rank_programs_of_several_workloads(kind: models.LossKind) -> None:
    model = trained(models.BoostedSettings(loss=kind))
    found = []
    for workload, statements in (("a", 3), ("b", 2)):
        tested = made_up(workload, 100, statements, 9)
        times = np.array([sample.time_s for sample in tested])
        found.append(judge(scores_of(model, tested), times))
    assert overall(found).pair_accuracy > 0.85
    assert overall(found).top5 > 0.8


def test_more_samples_teach_more() -> None:
    tested = made_up("a", 100, 3, 9)
    times = np.array([sample.time_s for sample in tested])
    few, many = trained(count=16), trained(count=300)
    accuracy = [judge(scores_of(m, tested), times).pair_accuracy for m in (few, many)]
    assert accuracy[1] > accuracy[0] + 0.02


def test_equal_samples_give_equal_scores() -> None:
    tested = np.stack([sample.features for sample in made_up("a", 20, 3, 5)])
    assert trained().predict(tested).tolist() == trained().predict(tested).tolist()


def test_censored_programs_teach_too() -> None:
    """Programs that were dropped early, as slow, are ranked below those that were not."""
    samples = made_up("a", 120, 2, 0)
    cut = float(np.median([sample.time_s for sample in samples]))
    known = [s for s in samples if s.time_s <= cut]
    dropped = [models.Sample("a", s.features, cut, True) for s in samples if s.time_s > cut]
    model = models.LearnedModel(SETTINGS)
    model.observe(known + dropped)
    model.refit()
    tested = made_up("a", 100, 2, 7)
    times = np.array([sample.time_s for sample in tested])
    is_slow = times > cut
    scores = scores_of(model, tested)
    assert np.mean(scores[is_slow][:, None] < scores[~is_slow][None]) > 0.85


def test_trees_are_fitted_again_as_samples_come_in() -> None:
    model = models.LearnedModel(SETTINGS, policy=models.RefitPolicy(first=16, least=4, growth=0.5))
    samples = made_up("a", 60, 2, 0)
    changed = []
    for place in range(0, 60, 4):
        model.observe(samples[place : place + 4])
        changed.append(model.update())
    assert [place for place, one in enumerate(changed) if one] == [3, 5, 8, 13]
    assert model.fits == 4


def test_it_keeps_a_bounded_number_of_samples() -> None:
    model = models.LearnedModel(SETTINGS, policy=models.RefitPolicy(most=10))
    samples = made_up("a", 25, 1, 0)
    model.observe(samples)
    assert model.samples == samples[-10:]


def test_the_prior_answers_first_and_fades() -> None:
    prior = models.RooflineModel(machine_of(TARGET, 2))
    model = models.LearnedModel(SETTINGS, prior)
    features = np.stack([sample.features for sample in made_up("a", 10, 2, 3)])
    assert not model.is_trained
    assert model.predict(features).tolist() == prior.predict(features).tolist()
    model.observe(made_up("a", 64, 2, 0))
    model.refit()
    assert model.is_trained
    assert model._weight == pytest.approx(0.5)
    model.observe(made_up("a", 480, 2, 1))
    model.refit()
    assert model._weight == 0.0


def test_a_saved_model_scores_as_before(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model = trained()
    assert model.save(path, "here")
    saved = models.load_model(path)
    features = np.stack([sample.features for sample in made_up("a", 30, 3, 4)])
    assert saved.predict(features).tolist() == model.predict(features).tolist()
    assert (saved.hardware, saved.samples, saved.loss) == ("here", 300, models.LossKind.PAIRS)
    assert not saved.update()


def test_a_session_starts_from_a_saved_model(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    trained().save(path, "here")
    features = np.stack([sample.features for sample in made_up("a", 30, 3, 4)])
    warm = models.make_model(TARGET, 2, saved=path)
    trees, roofline = models.load_model(path), models.RooflineModel(machine_of(TARGET, 2))
    expected = trees.predict(features) + roofline.predict(features)
    assert warm.predict(features).tolist() == expected.tolist()
    assert not warm.update()
    cold = models.make_model(TARGET, 2, saved=tmp_path / "missing.npz")
    assert (
        cold.predict(features).tolist()
        == models.RooflineModel(machine_of(TARGET, 2)).predict(features).tolist()
    )


def test_nothing_is_saved_before_anything_is_learned(tmp_path: Path) -> None:
    assert not models.LearnedModel(models.BoostedSettings()).save(tmp_path / "model.npz", "here")
    assert list(tmp_path.iterdir()) == []


def break_file(path: Path, change: dict[str, object]) -> None:
    """Change fields of a file, or arrays: None takes an array away."""
    fields, arrays = FILE.load(path)
    parts = {n: one for n, one in change.items() if one is None or isinstance(one, np.ndarray)}
    kept = {n: one for n, one in {**arrays, **parts}.items() if one is not None}
    FILE.save(path, fields | {n: one for n, one in change.items() if n not in parts}, kept)


class Constant:
    """A ranker that has no arrays."""

    def scores(self, features: np.ndarray) -> np.ndarray:
        return np.zeros(len(features))


def test_a_ranker_without_arrays_is_not_saved(tmp_path: Path) -> None:
    model = SavedModel(Constant(), models.LossKind.PAIRS, "here", 1)
    with pytest.raises(InternalError, match="cannot be written") as refused:
        model.save(tmp_path / "model.npz")
    assert "arrays" in refused.value.remedy


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "else"}, "it is no cost model"),
        ({"schema": 99}, "schema 99; this version reads 1"),
        ({"features": "0123"}, "it was trained on another list of features by version"),
        ({"loss": "none"}, "a field is missing, or is not what it should be"),
        ({"children": None}, "an array is missing, or is not what it should be"),
        ({"leaves": np.ones(1)}, "trees: the values of its leaves are not numbers of its nodes"),
    ],
)
def test_a_strange_file_is_refused(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = tmp_path / "model.npz"
    trained(models.BoostedSettings(rounds=2)).save(path, "here")
    break_file(path, change)
    with pytest.raises(RecordError) as caught:
        models.load_model(path)
    assert caught.value.where == f"file {path}"
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"PK", b'{"kind": "tensorwright'])
def test_a_corrupt_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(RecordError):
        models.load_model(path)


def test_without_lightgbm_the_prior_goes_on_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(name: str) -> object:
        assert name == TREES_MODULE
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", missing)
    notices: list[str] = []
    prior = models.RooflineModel(machine_of(TARGET, 2))
    model = models.LearnedModel(SETTINGS, prior, on_notice=notices.append)
    for seed in range(3):
        model.observe(made_up("a", 40, 2, seed))
        assert not model.update()
    assert not model.save(tmp_path / "model.npz", "here")
    assert len(notices) == 1
    assert "libgomp.so.1" in model.notice
    features = np.stack([sample.features for sample in made_up("a", 10, 2, 3)])
    assert model.predict(features).tolist() == prior.predict(features).tolist()


def test_a_missing_lightgbm_is_a_warning_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError("No module named 'lightgbm'")

    monkeypatch.setattr(importlib, "import_module", missing)
    model = models.LearnedModel(SETTINGS)
    model.observe(made_up("a", 40, 2, 0))
    with pytest.warns(RuntimeWarning, match="No module named 'lightgbm'"):
        assert not model.update()


def test_random_scores_depend_on_features_and_seed_alone() -> None:
    features = np.random.default_rng(0).random((50, 3, WIDTH), np.float32)
    scores = models.RandomModel(1).predict(features)
    assert models.RandomModel(1).predict(features[10:20]).tolist() == scores[10:20].tolist()
    assert len(set(scores.tolist())) == 50
    assert models.RandomModel(2).predict(features).tolist() != scores.tolist()
    assert scores.min() >= 0
    assert scores.max() <= 1


def program(**counts: float) -> np.ndarray:
    """One statement with some features, given without their logarithm."""
    features = np.zeros((1, 1, WIDTH), np.float32)
    for name, count in counts.items():
        features[0, 0, FEATURE_NAMES.index(name)] = np.log2(count + 1)
    return features


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ({"float_mad": 1e8}, {"float_mad": 1e6}),
        ({"float_mad": 1e8}, {"float_mad": 1e8, "vector_len": 16}),
        ({"float_mad": 1e8}, {"float_mad": 1e8, "parallel_prod": 2}),
        ({"float_mad": 1e8, "parallel_prod": 3}, {"float_mad": 1e8, "parallel_prod": 4}),
        ({"loads_beyond_2048": 1e7}, {"loads_beyond_2048": 1e5}),
        ({"lines_beyond_32768": 1e7}, {"loads_beyond_2048": 1e7}),
        ({"lines_beyond_524288": 1e7}, {"lines_beyond_32768": 1e7}),
        ({"lines_of_other_threads": 1e5}, {"lines_beyond_32768": 1e5}),
    ],
)
def test_the_roofline_knows_what_costs_time(
    slower: dict[str, float], faster: dict[str, float]
) -> None:
    model = models.RooflineModel(machine_of(TARGET, 2))
    assert model.predict(program(**slower)) < model.predict(program(**faster))


def test_between_two_sizes_a_cache_is_both() -> None:
    """A cache of 1 MiB, where it is said what comes from beyond 512 KiB and 2 MiB."""
    machine = machine_of(replace(TARGET, l2_bytes=1 << 20), 1)
    less, more = {"lines_beyond_524288": 1e6}, {"lines_beyond_2097152": 1e6}
    model = models.RooflineModel(machine)
    _, _, from_l2, _ = model.estimate(program(**less, **more)).memory.ravel()
    _, _, of_less, _ = model.estimate(program(**less)).memory.ravel()
    assert of_less == pytest.approx(from_l2 / 2, rel=1e-3)
