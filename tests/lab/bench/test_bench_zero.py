"""`tensorwright bench zero`: its figures with made-up rows, its groups, and tiny real runs."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.command_line import Invoke
from tests.unit.tuning.time_model.small_trees import model_of

from tensorwright.base import UsageError, cpu_target
from tensorwright.records import Record, Status
from tensorwright.tuning.time_model import TimeModel, save_time_model
from tensorwright_lab.bench.zero_rows import ZeroRow, curve_of, groups_of, read_zero, write_zero
from tensorwright_lab.comparison import this_build
from tensorwright_lab.judging import best_after

MODULE = importlib.import_module("tensorwright_lab.bench.zero")  # the name is the command's
TARGET = cpu_target("x86-64-avx2")
HEAD = {"target": TARGET.key, "trials": (0, 1, 4)}


def _row(group: str, key: str, default_s: float = 2.0) -> ZeroRow:
    return ZeroRow(
        *(group, "network", "name", key, TARGET.name, default_s, 4.0),
        *((0, 1, 4), (2.0, 2.0, 1.0), (8.0, 4.0, 2.0)),
    )


@pytest.fixture
def time_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that is in force: the roofline."""
    path = tmp_path / "roofline.npz"
    save_time_model(model_of(), path)
    monkeypatch.setenv("TENSORWRIGHT_TIME_MODEL", str(path))
    return path


def _without(path: Path, *names: str) -> Path:
    model: TimeModel = replace(model_of(), statistics={"without": list(names)})
    save_time_model(model, path)
    return path


def test_the_curve_is_the_mean_share_of_the_best_speed() -> None:
    rows = [_row("a", "1"), replace(_row("a", "2"), without_model_s=(2.0, 1.0, 0.5))]
    curve = curve_of([*rows, ZeroRow("a", "n", "n", "3", "t", failure="it crashed")])
    assert curve is not None
    assert curve.trials == (0, 1, 4)
    assert curve.with_model == pytest.approx((8**-0.5, 8**-0.5, 2**-0.5))
    assert curve.without_model == pytest.approx((32**-0.5, 8**-0.5, 2**-0.5))
    assert curve_of([]) is None


def test_the_file_has_rows_and_groups_and_comes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "zero.json")
    rows = [_row("a", "1"), _row("b", "2", 12.0), ZeroRow("b", "n", "n", "3", "t", failure="no")]
    write_zero(path, HEAD, rows)
    found = json.loads(Path(path).read_text())["groups"]
    assert set(found) == {"a", "b", "all"}
    assert found["a"]["default_over_random"]["mean"] == pytest.approx(0.5)
    assert found["a"]["share_of_tuned"] == pytest.approx(0.5)
    assert found["b"]["default_over_random"]["above"] == 0
    assert found["all"]["least_share_of_tuned"] == pytest.approx(1 / 12)
    assert read_zero(path, HEAD) == rows[:2]
    content = json.loads(Path(path).read_text())
    for row in content["rows"]:
        row.pop("build")  # as files have it that are older than builds
    Path(path).write_text(json.dumps(content))
    assert read_zero(path, HEAD) == rows[:2]
    with pytest.raises(UsageError, match="its rows have target"):
        read_zero(path, HEAD | {"target": "another"})


def test_the_best_after_so_many_trials() -> None:
    def record(trace: str, time_s: float, status: Status = Status.OK) -> Record:
        times_s = (time_s,) if status.is_timed else ()
        return Record("w", "t", "h", 1, trace, times_s, status)

    records = [
        record("crashed", 0.0, Status.CRASHED),
        record("first", 3.0),
        record("dropped", 1.0, Status.CENSORED),
        record("second", 2.0),
    ]
    assert best_after(records, (0, 1, 2, 3, 4, 16), "untuned") == (
        *("untuned", "untuned", "first", "first", "second", "second"),
    )


def test_what_a_model_was_trained_without_is_a_group(tmp_path: Path) -> None:
    family = _without(tmp_path / "family.npz", "attention", "waves")
    other = _without(tmp_path / "target.npz", "x86-64-sse2")
    groups = groups_of(TARGET, [family, other], ["zoo:dcgan"])
    assert [group.name for group in groups] == [
        *("random networks", "networks of suites"),
        *("without attention, waves", "without x86-64-sse2"),
    ]
    assert groups[2].families == ("attention", "waves")
    assert {case.network.split()[0] for case in groups[2].cases(6, 2, 0)} <= {"attention", "waves"}
    assert groups[3].target == cpu_target("x86-64-sse2")
    assert [group.target for group in groups[:3]] == [TARGET] * 3
    assert len(list(groups[1].cases(3, 2, 0))) == 3
    save_time_model(model_of(), tmp_path / "all.npz")
    with pytest.raises(UsageError, match="nothing was left out"):
        groups_of(TARGET, [tmp_path / "all.npz"], [])


@pytest.mark.target
def test_a_real_run_from_end_to_end_and_its_second_half(
    invoke: Invoke, tmp_path: Path, model: Path, time_model: Path
) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "zero.json"
    arguments = ("--workloads", 1, "--trials", 2, "--candidates", 2, "--network", model)
    result = invoke("bench", "zero", *arguments, "--json", path)
    assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())
    assert [row["failure"] for row in found["rows"]] == ["", ""]
    assert found["rows"][0]["trials"] == [0, 1, 2]
    assert found["groups"]["all"]["curve"]["trials"] == [0, 1, 2]
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    found["rows"].pop()
    path.write_text(json.dumps(found))
    kept = found["rows"][0]
    result = invoke("bench", "zero", *arguments, "--json", path, "--resume")
    assert result.exit_code == 0, result.output
    rows = json.loads(path.read_text())["rows"]
    assert len(rows) == 2
    assert rows[0] == kept


def test_without_matplotlib_the_tables_are_there_and_the_extra_is_named(
    invoke: Invoke,
    tmp_path: Path,
    model: Path,
    time_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(MODULE, "_row", lambda group, case, *_: _row(group.name, case.workload.key))
    path = tmp_path / "zero.json"
    arguments = ("--workloads", 1, "--network", model, "--json", path)
    result = invoke("bench", "zero", *arguments)
    assert result.exit_code == 9
    assert "share of the best speed after trials" in result.output
    assert "pip install 'tensorwright[bench]'" in result.output
    assert len(json.loads(path.read_text())["rows"]) == 2


def test_a_wrong_answer_ends_in_1_and_is_in_no_figure(
    invoke: Invoke, tmp_path: Path, model: Path, time_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([_row("a", "1"), ZeroRow("a", "n", "n", "2", "t", failure="wrong answers: 7")])
    monkeypatch.setattr(MODULE, "_row", lambda *_: next(answers))
    path = tmp_path / "zero.json"
    words = ("--workloads", 1, "--network", model, "--json", path, "--png", tmp_path / "zero.png")
    monkeypatch.setattr(MODULE, "_draw", lambda *_: None)
    result = invoke("bench", "zero", *words)
    assert result.exit_code == 1, result.output
    found = json.loads(path.read_text())
    assert found["groups"]["a"]["default_over_random"]["count"] == 1
    assert "wrong answers: 7" in result.stdout
    assert [row["build"] for row in found["rows"]] == [this_build()] * 2


def test_without_a_time_model_there_is_nothing_to_judge(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "pretrained_model", lambda: None)
    result = invoke("bench", "zero")
    assert result.exit_code == 2
    assert "TENSORWRIGHT_TIME_MODEL" in result.output
