"""What judges the time model is not what it was trained on: by the keys that it keeps."""

from __future__ import annotations

import itertools
import json
import lzma
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.tuning.time_model.small_trees import model_of

from tensorwright.base import cpu_target
from tensorwright.tuning import time_model
from tensorwright_lab.bench.plausible_workloads import FIRST_SEED, draw_workloads
from tensorwright_lab.bench.zero import FIRST_SEED as FIRST_SEED_OF_ZERO

MEASURED = Path(__file__).parents[4] / "benchmarks" / "pretraining" / "measured.tar.xz"
KEYS = ("00000001aaaaaaaa", "fedcba9876543210", "0123456789abcdef")


def test_keys_are_known_by_their_first_digits() -> None:
    keys = time_model.TrainedKeys.of([*KEYS, KEYS[0]])
    assert len(keys) == 3
    assert all(key in keys for key in KEYS)
    for other in ("00000000aaaaaaaa", "00000002aaaaaaaa", "ffffffffffffffff"):
        assert other not in keys
    assert KEYS[0] not in time_model.TrainedKeys.of(())


def test_a_model_keeps_them_and_an_older_one_has_none(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    time_model.save_time_model(replace(model_of(), trained=time_model.TrainedKeys.of(KEYS)), path)
    found = time_model.load_time_model(path).trained
    assert found is not None
    assert found.numbers.tolist() == [0x00000001, 0x01234567, 0xFEDCBA98]
    time_model.save_time_model(model_of(), path)
    assert time_model.load_time_model(path).trained is None


def test_the_shipped_model_keeps_the_keys_of_its_training() -> None:
    model = time_model.pretrained_model()
    assert model is not None
    assert model.trained is not None
    assert model.statistics["workloads"] >= len(model.trained) > 7000
    assert all(key in model.trained for key in itertools.islice(measured_keys(), 2000))


@pytest.mark.parametrize("seed", [FIRST_SEED, FIRST_SEED_OF_ZERO])
def test_what_judges_is_no_part_of_a_sample_of_the_training(seed: int) -> None:
    drawn = draw_workloads(seed, cpu_target("x86-64-avx2"), 2)
    keys = {each.workload.key for each in itertools.islice(drawn, 6)}
    assert keys.isdisjoint(itertools.islice(measured_keys(), 20_000))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86-64-avx2", "x86-64-avx512"])
def test_of_three_hundred_that_judge_none_was_trained_on(target: str) -> None:
    model = time_model.pretrained_model()
    assert model is not None
    assert model.trained is not None
    trained = set(measured_keys())
    assert time_model.TrainedKeys.of(trained).numbers.tolist() == model.trained.numbers.tolist()
    drawn = list(itertools.islice(draw_workloads(FIRST_SEED, cpu_target(target), 2), 300))
    overlap = sum(each.workload.key in trained for each in drawn)
    passed = {key for each in drawn for key in each.passed}
    print(f"{target}: {overlap} of {len(drawn)} trained on, {len(passed)} passed over")
    assert overlap == 0
    assert passed <= trained


def measured_keys() -> Iterator[str]:
    """The workloads of the records that the shipped model was trained on, record by record."""
    with lzma.open(MEASURED) as content, tarfile.open(fileobj=content, mode="r|") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".jsonl") else None
            for line in file or ():
                fields = json.loads(line)
                if fields["kind"] == "record":
                    yield fields["workload"]
