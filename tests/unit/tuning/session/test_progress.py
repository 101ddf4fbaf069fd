"""What a person sees while a session runs."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from tensorwright.tuning.session import (
    LiveTable,
    Phase,
    PlainLines,
    Progress,
    TaskRow,
    choose_callbacks,
)
from tensorwright.tuning.session.progress import format_duration, format_time

PROGRESS = Progress(
    Phase.SEARCH,
    round=3,
    trials=40,
    elapsed_s=65.0,
    trials_here=20,
    elapsed_here_s=10.0,
    trials_budget=100,
    seconds_budget=None,
    rows=(
        TaskRow("conv2d_add_relu", 2.0, 30, 0.004, 0.001),
        TaskRow("softmax", 1.0, 10, math.inf, math.inf, "crashed: it fell"),
    ),
)


def test_one_plain_line_per_round() -> None:
    stream = io.StringIO()
    PlainLines(stream).on_progress(PROGRESS)
    assert stream.getvalue() == (
        "round 3 (search), 40/100 trials, 1:05 passed, 0:30 left, 8 ms -> 2 ms (4.00x), "
        "1 workloads not measurable\n"
    )


def test_what_is_left_is_the_nearer_limit() -> None:
    assert PROGRESS.eta_s == 30
    assert replace(PROGRESS, seconds_budget=75.0).eta_s == 10
    assert replace(PROGRESS, trials_here=0).eta_s == math.inf
    assert replace(PROGRESS, seconds_budget=60.0).eta_s == 0


def test_the_table_names_every_workload() -> None:
    stream = io.StringIO()
    table = LiveTable(Console(file=stream, width=100, force_terminal=True))
    table.on_progress(PROGRESS)
    table.on_progress(replace(PROGRESS, phase=Phase.DONE))
    text = stream.getvalue()
    for word in ("conv2d_add_relu", "4.00x", "100.0%", "softmax", "failed", "40/100 trials"):
        assert word in text


def test_the_usual_display(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_callbacks(is_quiet=True) == ()
    assert isinstance(choose_callbacks()[0], PlainLines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(choose_callbacks()[0], LiveTable)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.5 s"), (0.00123, "1.23 ms"), (4.5e-6, "4.5 us"), (3e-8, "30 ns"), (math.inf, "-")],
)
def test_times(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


def test_durations() -> None:
    assert [format_duration(s) for s in (0.0, 59.9, 185.0, 3753.0)] == [
        "0:00",
        "0:59",
        "3:05",
        "1:02:33",
    ]


def test_the_line_says_where_the_time_goes_and_what_networks_take() -> None:
    stream = io.StringIO()
    rows = (
        TaskRow("a", 3.0, 30, 0.004, 0.001, "", (("net", 2.0), ("other", 1.0))),
        TaskRow("b", 1.0, 10, 0.004, 0.002, "", (("other", 1.0),)),
    )
    full = replace(PROGRESS, rows=rows, search_s=1.0, build_s=2.0, measure_s=5.0, drift=1.25)
    assert dict(full.latencies_s) == pytest.approx({"net": 0.002, "other": 0.003})
    PlainLines(stream).on_progress(full)
    assert stream.getvalue() == (
        "round 3 (search), 40/100 trials, 1:05 passed, 0:30 left, 16 ms -> 5 ms (3.20x), "
        "net 2 ms, other 3 ms, 12% search 25% build 62% measure, "
        "the last best now takes 1.25x as long\n"
    )
