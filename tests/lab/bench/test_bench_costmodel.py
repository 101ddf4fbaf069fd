"""`tensorwright bench costmodel` with made-up measurements, and its workloads."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from tests.command_line import Invoke
from tests.targets import AVX512
from tests.unit.tuning.models.model_samples import made_up

from tensorwright_lab.bench.costmodel import Case, cases

MODULE = importlib.import_module("tensorwright_lab.bench.costmodel")  # the name is the command's
TARGET = AVX512


def test_the_workloads_are_ten_of_several_families() -> None:
    found = cases(TARGET)
    assert len(found) == 10
    assert len({each.workload.key for each in found}) == 10
    assert len({each.family for each in found}) >= 6


def test_models_are_judged_and_the_figures_written(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_, last = cases(TARGET)
    measured = (
        MODULE.Measured(Case("one", "first", first.workload), tuple(made_up("a", 80, 3, 0))),
        MODULE.Measured(Case("two", "second", last.workload), tuple(made_up("b", 80, 2, 1))),
    )
    monkeypatch.setattr(MODULE, "_gather", lambda *_: measured)
    path = tmp_path / "figures.json"
    arguments = ("--records", tmp_path / "r.sqlite", "--splits", 1, "--json", path)
    result = invoke("bench", "costmodel", *arguments)
    assert result.exit_code == 0, result.output
    assert "pair accuracy" in result.output
    content = json.loads(path.read_text())
    assert content["programs"] == {"one": 80, "two": 80}
    models = {each["model"]: each for each in content["models"]}
    assert {"boosted, pairs", "boosted, squares", "roofline", "random"} < set(models)
    assert models["boosted, pairs"]["mean"]["pair_accuracy"] > 0.75
    assert set(models["boosted, pairs"]["unseen"]) == {"first", "second"}


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    invoke: Invoke, tmp_path: Path
) -> None:
    result = invoke("bench", "costmodel", "--json", tmp_path / "missing" / "figures.json")
    assert result.exit_code == 8
