"""The rows of the operator benchmark: means, the table, and the file."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tensorwright.base import InputError
from tensorwright_lab import comparison


def make_op_row(
    case: str, ours_us: float, *peers_us: float, subgraph: bool = False
) -> comparison.OpRow:
    """A case of 0.1 GFLOP on a machine of 100 GFLOP/s: a millisecond at its peak."""
    pairs = zip(("onnxruntime", "openvino", "pytorch"), peers_us, strict=False)
    times = (
        comparison.OpTime("ours", "", ours_us * 1e-6, ours_us * 1e-6, 1e-6, "1"),
        *(comparison.OpTime(name, "plain", us * 1e-6, us * 1e-6, 0.0, "2") for name, us in pairs),
    )
    row = comparison.OpRow(
        case, 1, subgraph, (1, 2, 3), 0.2, 0.1, 100.0, 2, 3, times, True, 300, 60.0, "t"
    )
    return replace(row, build=comparison.this_build())


ROWS = (
    make_op_row("C2D.1", 1000, 1500, 1250),
    make_op_row("C2D.2", 1250, 1125, 4000),
    make_op_row("DEP.1", 2000, 8000, 6000),
    make_op_row("TBS.1", 4000, 8000, subgraph=True),
)


def test_ratio_and_shares_are_those_of_the_best_peer() -> None:
    row = ROWS[0]
    assert row.best is not None
    assert row.best.peer == "openvino"
    assert row.ratio == pytest.approx(1.25)
    assert row.gflops(row.ours) == pytest.approx(100.0)
    assert row.share(row.best) == pytest.approx(0.8)


def test_means_are_split_by_how_near_the_best_peer_is_to_the_peak() -> None:
    near, far, subgraphs = comparison.summarise_rows(ROWS)
    assert (near.count, far.count, subgraphs.count) == (2, 1, 1)
    assert near.mean == pytest.approx((1.25 * 0.9) ** 0.5)
    assert (near.least, near.least_case) == (pytest.approx(0.9), "C2D.2 batch 1")
    assert far.mean == pytest.approx(3.0)
    assert subgraphs.mean == pytest.approx(2.0)
    assert comparison.summarise_rows(())[0].mean is None


def test_peers_that_are_not_held_to_the_target_are_marked_and_left_out_of_a_mean() -> None:
    ours, fast, slow = ROWS[0].times
    times = (ours, replace(fast, time_s=500e-6, is_held=False), replace(slow, is_held=True))
    loose = replace(ROWS[0], times=times)
    assert (loose.ratio, loose.held_ratio) == (pytest.approx(0.5), pytest.approx(1.25))
    *_, held = comparison.summarise_rows((loose, *ROWS[1:]))
    assert (held.name, held.count) == ("all, against peers held to the target", 4)
    assert (held.least, held.least_case) == (pytest.approx(0.9), "C2D.2 batch 1")
    console = Console(file=io.StringIO(), width=200)
    comparison.print_op_rows((loose,), console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[1].split()[6:8] == ["onnxruntime", "plain*"]
    assert lines[-1] == "* not held to the target, for lack of a setting: onnxruntime"


def test_a_tuner_is_no_peer_and_counts_by_its_turns_alone() -> None:
    tuned = comparison.OpTime("metaschedule", "", 800e-6, 800e-6, 0.0, "3")
    row = replace(ROWS[0], times=(*ROWS[0].times, tuned))
    assert ROWS[0].rival_ratio is None
    assert row.ratio == ROWS[0].ratio
    failed = replace(tuned, time_s=None, failure="refused")
    fast = replace(row, rival=comparison.Rival(200, 700e-6, 60.0, 3.0))
    assert fast.rival_ratio == pytest.approx(0.8)
    alone = replace(fast, times=(*ROWS[0].times, failed))
    assert alone.rival_ratio is None
    console = Console(file=io.StringIO(), width=200)
    comparison.print_op_rows([fast], console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[-1].split() == "C2D.1 0.80 200 60 3.0".split()


def test_the_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    rival = replace(ROWS[0], case="C2D.3", rival=comparison.Rival(200, 1e-3, 60.0, None))
    failed = replace(ROWS[0], times=(), failure="ScheduleError: no")
    comparison.write_op_rows(path, {"threads": 2}, (*ROWS, rival, failed))
    assert comparison.read_op_rows(path) == (*ROWS, rival, failed)
    content = json.loads(path.read_text())
    assert content["threads"] == 2
    assert content["means"][0]["count"] == 3
    assert content["rows"][0]["ratio"] == pytest.approx(1.25)
    assert content["rows"][-1]["ratio"] is None
    assert comparison.read_op_rows(tmp_path / "none.json") == ()
    for row in content["rows"]:
        row.pop("build")  # as files have it that are older than builds
    path.write_text(json.dumps(content))
    assert {row.build for row in comparison.read_op_rows(path)} == {""}


def test_rows_of_other_builds_are_marked_and_counted() -> None:
    console = Console(file=io.StringIO(), width=300)
    comparison.print_op_rows([ROWS[0], replace(ROWS[1], build="")], console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [line.split()[-1] for line in lines[:3]] == ["build", "this", "unknown"]
    assert lines[-1].startswith("1 of 2 rows were measured by other builds than this")


@pytest.mark.parametrize("text", ["", "[]", '{"rows": [{"case": "C2D.1"}]}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(InputError, match="it has no rows of bench ops"):
        comparison.read_op_rows(path)


def test_the_table_shows_cases_means_and_failures() -> None:
    lost = comparison.OpTime("pytorch", "plain", failure="crashed: the process ended")
    rows = (*ROWS[:3], replace(ROWS[3], times=(*ROWS[3].times, lost)))
    console = Console(file=io.StringIO(), width=200)
    comparison.print_op_rows(rows, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    lines = text.splitlines()
    assert lines[1].split() == (
        "C2D.1 1x2x3 3 1000.0 100.0 100% openvino plain 1250.0 80% 1.25 300 60".split()
    )
    assert "operators, best peer at 65% of peak or more" in text
    assert "other operators" in text
    assert lines[-1] == "TBS.1: pytorch plain: crashed: the process ended"
