"""The table at the end of `tune` and `optimize`: speed-ups of one moment, or none."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.unit.tuning.helpers import doubled

from tensorwright.cli import printing
from tensorwright.tuning.session import (
    Comparison,
    NetworkResult,
    StopReason,
    TaskResult,
    TuneResult,
)
from tensorwright.tuning.task import Task

RECORDED = TaskResult(
    Task(doubled("one"), 2.0), 5, 0.004, 0.001, "best", "", 4, taken="best"
)  # 4.00x, by times of different moments
COMPARED = replace(RECORDED, compared=Comparison(0.003, 0.002, 1.4, 1.6))


def rows(capsys: pytest.CaptureFixture[str], *results: TaskResult) -> dict[str, list[str]]:
    """The words of each line by its first one."""
    printing.print_workloads(results)
    return {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}


def test_times_and_speed_up_are_those_of_the_comparison(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = rows(capsys, COMPARED)
    assert table["one"][2:] == ["2", "5", "3", "2", "1.50x"]
    assert table["all"][1:] == ["2", "5", "6", "4", "1.50x"]
    assert set(table) == {"workload", "one", "all"}


def test_nothing_is_claimed_of_times_on_record(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(capsys, RECORDED, replace(COMPARED, task=Task(doubled("two"))))
    assert table["one"][2:] == ["2", "5", "4", "1", "not", "compared"]
    assert table["two"][-1] == "1.50x"
    assert table["all"][-2:] == ["not", "compared"]


def test_what_earlier_runs_found_is_marked_and_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    earlier = frozenset({"best"})
    table = rows(capsys, replace(RECORDED, earlier=earlier))
    assert table["one"][2] == "**"
    assert "recorded by an earlier run, at another moment" in " ".join(table["**"])
    table = rows(capsys, replace(COMPARED, earlier=earlier))
    assert table["one"][2] == "*"
    assert "an earlier run found this schedule" in " ".join(table["*"])
    assert "**" not in table


def test_what_stayed_and_what_was_never_searched_have_no_speed_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    same = replace(RECORDED, compared=Comparison.of_same((0.002, 0.003)))
    assert rows(capsys, same)["one"][-1] == "same"
    assert rows(capsys, replace(same, tried=0))["one"][-1] == "untuned"
    assert rows(capsys, replace(RECORDED, error="it fell"))["one"][-1] == "failed"


def test_a_speed_up_within_what_turns_differ_by_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unsure = replace(RECORDED, compared=Comparison(0.003, 0.0029, 0.9, 1.2))
    table = rows(capsys, unsure, COMPARED)
    assert table["one"][-1] in ("~1.03x", "1.50x")
    assert " ".join(table["~"]) == "~ not more than the differences between turns"
    assert table["all"][-1].startswith("~")
    assert "~" not in rows(capsys, COMPARED)


def test_a_speed_up_of_turns_that_say_nothing_is_no_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unsteady = replace(RECORDED, compared=Comparison(0.0557, 0.0024, 0.5, 200.0))
    table = rows(capsys, unsteady, COMPARED)
    assert table["all"][-1] == "unsteady"
    assert table["unsteady:"][-1] == "busy?"


def test_networks_are_named_with_their_spread(capsys: pytest.CaptureFixture[str]) -> None:
    printing.print_networks(
        [
            NetworkResult("a", Comparison(0.0041, 0.00405, 0.98, 1.04)),
            NetworkResult("b", Comparison.of_same((0.002,))),
            NetworkResult("c", reason="interrupted"),
            NetworkResult("d", Comparison(0.004, 0.002, 1.9, 2.1)),
        ]
    )
    assert capsys.readouterr().out.splitlines() == [
        "a, the whole network: 4.1 ms untuned,",
        "  4.05 ms tuned, measured in turns: ~1.01x (0.98 to 1.04)",
        "b, the whole network: 2 ms untuned; nothing was faster in turns",
        "c, the whole network: not compared, interrupted",
        "d, the whole network: 4 ms untuned,",
        "  2 ms tuned, measured in turns: 2.00x (1.90 to 2.10)",
    ]


def test_an_untuned_workload_with_a_time_has_its_share_of_the_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    never = TaskResult(Task(doubled("never"), 2.0), 0, math.inf, math.inf, "", "")
    timed = replace(never, compared=Comparison.of_same((0.001,)), task=Task(doubled("timed"), 2.0))
    tasks = (replace(COMPARED, task=Task(doubled("tuned"), 3.0)), timed, never)
    result = TuneResult("s", StopReason.BUDGET_SPENT, 5, 1.0, 0.0, 0.0, tasks)
    printing.print_untuned(result)
    timed_line, never_line = capsys.readouterr().out.splitlines()
    assert timed_line.endswith(" timed: 25.0% of the time")  # 2 x 1 ms beside 3 x 2 ms
    assert never_line.endswith(" never: not measured")


@pytest.mark.parametrize(("count", "shown"), [(5, 5), (6, 6), (7, 5), (28, 5)])
def test_a_long_list_of_untuned_workloads_is_cut_and_the_result_comes_last(
    count: int, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    never = TaskResult(Task(doubled("never"), 2.0), 0, math.inf, math.inf, "", "")
    result = TuneResult("s", StopReason.BUDGET_SPENT, 5, 1.0, 0.0, 0.0, (never,) * count)
    printing.print_result(result, "out.tw: 5 trials", is_quiet=True)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  untuned ") for line in lines) == shown
    more = [f"  and {count - shown} more"] if count > shown else []
    assert lines[shown:] == [*more, "out.tw: 5 trials"]


def test_what_was_cut_is_counted_over_all_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    one = replace(RECORDED, cut=(("threads", 1200), ("shared memory", 30)))
    other = replace(RECORDED, cut=(("shared memory", 5), ("threads", 4), ("blocks", 0)))
    printing.print_cut(TuneResult("s", StopReason.BUDGET_SPENT, 5, 1.0, 0.0, 0.0, (one, other)))
    text = "cut before building: 1,204 over threads, 35 over shared memory\n"
    assert capsys.readouterr().out == text
    printing.print_cut(TuneResult("s", StopReason.BUDGET_SPENT, 5, 1.0, 0.0, 0.0, (RECORDED,)))
    assert not capsys.readouterr().out
