"""What a person sees while a session runs."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace

import pytest
from rich.console import Console
from tests.unit.tuning.helpers import measured_task

from tensorwright.tuning import session
from tensorwright.tuning.session.progress import format_duration, format_time

PROGRESS = session.Progress(
    session.Phase.SEARCH,
    round=3,
    trials=40,
    elapsed_s=65.0,
    trials_here=20,
    elapsed_here_s=10.0,
    trials_budget=100,
    seconds_budget=None,
    tasks=(
        measured_task("conv2d_add_relu", 2.0, 30, 0.004, 0.001),
        measured_task("softmax", 1.0, 10, math.inf, math.inf, "crashed: it fell"),
    ),
)


def test_one_plain_line_per_round() -> None:
    stream = io.StringIO()
    session.PlainLines(stream).on_progress(PROGRESS)
    assert stream.getvalue() == (
        "round 3 (search), 40/100 trials, 1:05 passed, 0:30 left, 8 ms -> 2 ms,\n"
        "  1 workload not measurable\n"
    )


def test_the_line_says_what_one_has_where_a_default_has_no_time() -> None:
    stream = io.StringIO()
    earlier = measured_task("softmax", 1.0, 10, math.inf, 0.003)
    session.PlainLines(stream).on_progress(replace(PROGRESS, tasks=(PROGRESS.tasks[0], earlier)))
    assert "0:30 left, best 5 ms" in stream.getvalue()


def test_what_is_left_is_the_nearer_limit() -> None:
    assert PROGRESS.eta_s == 30
    assert replace(PROGRESS, seconds_budget=75.0).eta_s == 10
    assert replace(PROGRESS, trials_here=0).eta_s == math.inf
    assert replace(PROGRESS, seconds_budget=60.0).eta_s == 0


def test_the_table_names_every_workload() -> None:
    stream = io.StringIO()
    table = session.LiveTable(Console(file=stream, width=100, force_terminal=True))
    table.on_progress(PROGRESS)
    table.on_progress(replace(PROGRESS, phase=session.Phase.DONE))
    text = stream.getvalue()
    for word in ("conv2d_add_relu", "1 ms", "100.0%", "softmax", "failed", "40/100 trials"):
        assert word in text


def test_the_usual_display(monkeypatch: pytest.MonkeyPatch) -> None:
    assert session.choose_callbacks(is_quiet=True) == ()
    assert isinstance(session.choose_callbacks()[0], session.PlainLines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(session.choose_callbacks()[0], session.LiveTable)


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
        measured_task("a", 3.0, 30, 0.004, 0.001, "", (("net", 2.0), ("other", 1.0))),
        measured_task("b", 1.0, 10, 0.004, 0.002, "", (("other", 1.0),)),
    )
    full = replace(PROGRESS, tasks=rows, search_s=1.0, build_s=2.0, measure_s=5.0)
    assert dict(full.latencies_s) == pytest.approx({"net": 0.002, "other": 0.003})
    session.PlainLines(stream).on_progress(full)
    session.PlainLines(stream).on_progress(replace(full, phase=session.Phase.DONE))
    assert stream.getvalue() == (
        "round 3 (search), 40/100 trials, 1:05 passed, 0:30 left, together 16 ms -> 5 ms,\n"
        "  net 2 ms, other 3 ms\n"
        "round 3 (done), 40/100 trials, 1:05 passed, together 16 ms -> 5 ms, net 2 ms,\n"
        "  other 3 ms, 12% search 25% build 62% measure\n"
    )


@pytest.mark.parametrize("phase", session.Phase)
@pytest.mark.parametrize("name", ["net", "a_network_of_a_very_long_name" * 4])
def test_no_line_is_wrapped_in_80_columns(phase: session.Phase, name: str) -> None:
    uses = ((name, 1.0), ("other", 1.0))
    rows = (measured_task(name, 2.0, 12345, 0.4567, 0.1234, "it fell", uses),)
    drift = session.Drift(name, "c86cd0aabbccdd", 15.1e-6, 75.2e-6)
    counts = {"round": 1234, "trials": 54321, "trials_budget": 100000, "elapsed_s": 36123.0}
    full = replace(PROGRESS, phase=phase, tasks=rows, drift=drift, measure_s=1.0, **counts)
    stream = io.StringIO()
    session.PlainLines(stream).on_progress(full)
    session.LiveTable(Console(file=stream, width=80, force_terminal=False)).on_progress(full)
    assert max(map(len, stream.getvalue().splitlines())) <= 80


@pytest.mark.parametrize(
    ("before_s", "now_s", "text"),
    [
        (15e-6, 75e-6, "machine unsteady: conv2d c86cd0 took 15 us, now 75"),
        (75e-6, 15e-6, "machine unsteady: conv2d c86cd0 took 75 us, now 15"),
        (9e-4, 1.2e-3, "machine unsteady: conv2d c86cd0 took 900 us, now 1.2 ms"),
        (15e-6, 16e-6, ""),
    ],
)
def test_an_unsteady_machine_is_told_once(before_s: float, now_s: float, text: str) -> None:
    stream = io.StringIO()
    lines = session.PlainLines(stream)
    seen = replace(PROGRESS, drift=session.Drift("conv2d", "c86cd0aabbcc", before_s, now_s))
    for _ in range(3):
        lines.on_progress(seen)
    told = [line for line in stream.getvalue().splitlines() if "unsteady" in line]
    assert told == ([text] if text else [])
