"""A machine that is busy, or slower than it was, is told once, and the work goes on."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.targets import native_target

from tensorwright.cli.arguments import machine
from tensorwright.machine import Ceilings, Level, Load, LoadWatch, MachineState, keep_ceilings
from tensorwright.tuning.session import Phase, Progress
from tensorwright_lab.bench.machine import measure_ceiling

Invoke = Callable[..., Result]
BUSY = Load(0.9, 0.0, 2, "python 812")
PROGRESS = Progress(Phase.SEARCH, 0, 0, 0.0, 0, 0.0, None, None, ())


@pytest.fixture
def never_reached(home: Path, unassumed: None) -> Ceilings:
    """What was kept of a far faster machine."""
    levels = (Level("memory", math.inf, 1e15),)
    kept = Ceilings(1, 1e15, levels, "2026-01-31T12:00:00.000000Z")
    keep_ceilings(native_target(), kept)
    return kept


def told(result: Result) -> int:
    return result.stderr.count("of the 1000000 GFLOP/s of 2026-01-31")


@pytest.mark.usefixtures("never_reached")
def test_optimize_and_profile_compare_with_what_was_kept(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tiny.tw"
    how = ("--threads", 1, "--quiet", "--trials", 2, "--no-rewrite")
    result = invoke("optimize", model, "-o", out, *how)
    assert result.exit_code == 0, result.output
    assert told(result) == 1
    result = invoke("profile", out, "--threads", 1, "--repeats", 2)
    assert result.exit_code == 0, result.output
    assert told(result) == 1


def test_bench_measures_against_the_highest_peak(never_reached: Ceilings) -> None:
    assert measure_ceiling(native_target(), 1).peak == never_reached.flops_per_s


def test_others_are_told_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadWatch, "load", lambda _: BUSY)
    monkeypatch.setattr(LoadWatch, "seconds", property(lambda _: 10.0))

    @click.command()
    def command() -> None:
        for _ in range(2):
            callback = machine.LoadCallback()
            for _ in range(3):
                callback.on_progress(PROGRESS)
            callback.close()
        machine.warn_if_unfit(MachineState(BUSY))

    for _ in range(2):  # another run tells it again
        lines = CliRunner().invoke(command).stderr.splitlines()
        assert lines == [
            "warning: machine busy: others use 0.9 of 2 cores (most: python 812)",
            "  times are too long, ratios wrong: end what else runs, or measure later",
        ]


def test_a_machine_that_is_fit_is_not_spoken_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.warn_if_unfit(None)
    machine.warn_if_unfit(MachineState(Load(0.1)))
    monkeypatch.setattr(LoadWatch, "load", lambda _: BUSY)
    machine.LoadCallback().on_progress(PROGRESS)  # it has just begun to watch
    assert capsys.readouterr().err == ""
