"""`tensorwright bench random`: its rows and figures with made-up times, and one real workload."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.command_line import Invoke
from tests.targets import native_target
from tests.unit.tuning.time_model.small_trees import model_of

from tensorwright.tuning.time_model import TrainedKeys, save_time_model
from tensorwright_lab.bench.plausible_workloads import FIRST_SEED, draw_workloads
from tensorwright_lab.comparison import this_build
from tensorwright_lab.judging import RandomComparison

MODULE = importlib.import_module("tensorwright_lab.bench.random_workloads")


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What each workload's default takes in turn, the best random schedule taking 1 s."""
    found: list[float] = []
    monkeypatch.setattr(MODULE, "compare_with_random", lambda *_: _comparison(found.pop(0)))
    return found


def _comparison(chosen_s: float, wrong: tuple[tuple[str, str], ...] = ()) -> RandomComparison:
    return RandomComparison(chosen_s, 2.0, 1.0, "best", 64, 64, wrong, "")


def test_the_figures_are_those_of_the_rows(
    invoke: Invoke, tmp_path: Path, times: list[float]
) -> None:
    path = tmp_path / "random.json"
    times += [1.0, 4.0, 0.5, 2.0]
    arguments = ("--count", 4, "--rows", tmp_path / "rows.jsonl", "--json", path)
    result = invoke("bench", "random", *arguments)
    assert result.exit_code == 0, result.output
    assert "wrong answers: 0 of 256; defaults that failed: 0" in result.output
    found = json.loads(path.read_text())
    assert [row["ratio"] for row in found["rows"]] == [1.0, 4.0, 0.5, 2.0]
    assert found["ratio"]["mean"] == pytest.approx(2.0 ** (2 / 4))
    assert (found["ratio"]["count"], found["ratio"]["above"]) == (4, 1)
    assert (found["ratio"]["half"], found["ratio"]["most"]) == (1.5, 4.0)
    assert found["rule_ratio"]["mean"] == pytest.approx(2.0)
    assert sum(each["count"] for each in found["families"].values()) == 4
    assert invoke("bench", "random", *arguments, "--check").exit_code == 1


def test_it_goes_on_where_it_was_left(invoke: Invoke, tmp_path: Path, times: list[float]) -> None:
    rows = tmp_path / "rows.jsonl"
    times += [1.0, 1.1, 1.2]
    assert invoke("bench", "random", "--count", 3, "--rows", rows).exit_code == 0
    whole = rows.read_text()
    rows.write_text(whole[:-20])  # it was killed while it wrote
    times += [1.2, 1.3]
    assert invoke("bench", "random", "--count", 4, "--rows", rows).exit_code == 0
    assert times == []
    lines = rows.read_text().splitlines()
    assert "\n".join(lines[:4]) + "\n" == whole
    keys = [json.loads(line)["key"] for line in lines[1:]]
    assert len(set(keys)) == 4


def test_rows_of_another_run_are_refused(
    invoke: Invoke, tmp_path: Path, times: list[float]
) -> None:
    rows = tmp_path / "rows.jsonl"
    times += [1.0]
    assert invoke("bench", "random", "--count", 1, "--rows", rows).exit_code == 0
    result = invoke("bench", "random", "--count", 1, "--rows", rows, "--candidates", 5)
    assert result.exit_code == 2
    assert "its rows have candidates 64, this run has 5" in result.output
    rows.write_text("something else\n")
    result = invoke("bench", "random", "--count", 1, "--rows", rows)
    assert result.exit_code == 7
    assert "not those of `tensorwright bench random`" in result.output


def test_a_wrong_answer_is_told_and_ends_in_1(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: Iterator[RandomComparison] = itertools.cycle(
        [_comparison(1.0), _comparison(1.0, (("a trace", "off by 7"),))]
    )
    monkeypatch.setattr(MODULE, "compare_with_random", lambda *_: next(answers))
    result = invoke("bench", "random", "--count", 2, "--rows", tmp_path / "rows.jsonl")
    assert result.exit_code == 1
    assert "wrong answers: 1 of 128" in result.output
    assert "a wrong answer, off by 7" in result.output


def test_a_workload_without_another_schedule_counts_in_no_distribution(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = RandomComparison(1.0, 1.0, None, "", 0, 0, (), "")
    monkeypatch.setattr(MODULE, "compare_with_random", lambda *_: only)
    path = tmp_path / "random.json"
    arguments = ("--count", 2, "--rows", tmp_path / "rows.jsonl", "--json", path)
    result = invoke("bench", "random", *arguments, "--check")
    assert result.exit_code == 0, result.output
    assert "2 more have no schedule but the default" in result.output
    assert json.loads(path.read_text())["ratio"]["mean"] is None


def test_a_wrong_default_is_in_no_ratio(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = RandomComparison(None, 2.0, 1.0, "best", 64, 64, (("chosen", "off by 7"),), "off by 7")
    answers = iter([wrong, _comparison(1.5)])
    monkeypatch.setattr(MODULE, "compare_with_random", lambda *_: next(answers))
    path = tmp_path / "random.json"
    arguments = ("--count", 2, "--rows", tmp_path / "rows.jsonl", "--json", path)
    assert invoke("bench", "random", *arguments).exit_code == 1
    found = json.loads(path.read_text())
    assert [row["ratio"] for row in found["rows"]] == [None, 1.5]
    assert [bool(row["wrong"]) for row in found["rows"]] == [True, False]
    assert (found["ratio"]["count"], found["ratio"]["mean"]) == (1, pytest.approx(1.5))


def test_what_the_time_model_was_trained_on_does_not_judge(
    invoke: Invoke, tmp_path: Path, times: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    untrained, model = tmp_path / "untrained.npz", tmp_path / "model.npz"
    save_time_model(replace(model_of(), trained=TrainedKeys.of([])), untrained)
    monkeypatch.setenv("TENSORWRIGHT_TIME_MODEL", str(untrained))  # it prices what is one workload
    drawn = list(itertools.islice(draw_workloads(FIRST_SEED, native_target(), 1), 4))
    keys = [each.workload.key for each in drawn]
    save_time_model(replace(model_of(), trained=TrainedKeys.of([keys[0], keys[2]])), model)
    monkeypatch.setenv("TENSORWRIGHT_TIME_MODEL", str(model))
    times += [1.0, 1.0]
    path, rows = tmp_path / "random.json", tmp_path / "rows.jsonl"
    words = ("bench", "random", "--threads", 1, "--rows", rows, "--json", path)
    for count in (1, 2):  # what was passed over is not counted again
        result = invoke(*words, "--count", count)
        assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())
    assert [row["key"] for row in found["rows"]] == [keys[1], keys[3]]
    assert (found["passed"], found["trained_on"]) == (2, 0)
    assert "2 drawn workloads were passed over" in result.output
    assert "on 0 of those above" in result.output


def test_rows_of_another_build_are_counted(
    invoke: Invoke, tmp_path: Path, times: list[float]
) -> None:
    rows = tmp_path / "rows.jsonl"
    times += [1.0]
    assert invoke("bench", "random", "--count", 1, "--rows", rows).exit_code == 0
    assert json.loads(rows.read_text().splitlines()[1])["build"] == this_build()
    rows.write_text(rows.read_text().replace(this_build(), ""))
    result = invoke("bench", "random", "--count", 1, "--rows", rows)
    assert "1 of 1 rows were measured by other builds" in result.output
    assert "1 of an unknown build" in result.output


@pytest.mark.target
def test_a_real_workload_from_end_to_end(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "random.json"
    result = invoke("bench", "random", "--count", 1, "--candidates", 2, "--json", path)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(path.read_text())["rows"]
    assert row["chosen_s"] > 0.0
    assert not row["wrong"]
