"""`tensorwright bench random`: its rows and figures with made-up times, and one real workload."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Invoke

from tensorwright.tuning.comparison import RandomComparison

MODULE = importlib.import_module("tensorwright.cli.bench.random_workloads")


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


@pytest.mark.target
def test_a_real_workload_from_end_to_end(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "random.json"
    result = invoke("bench", "random", "--count", 1, "--candidates", 2, "--json", path)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(path.read_text())["rows"]
    assert row["chosen_s"] > 0.0
    assert not row["wrong"]
