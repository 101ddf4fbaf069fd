"""What a tuning session achieved, as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click

from tensorwright.peers import print_table
from tensorwright.tuning.session import StopReason, TaskResult, TuneResult

_COLUMNS = ("workload", "times", "trials", "default ms", "tuned ms", "speed-up")


def print_workloads(results: Sequence[TaskResult]) -> None:
    """One line per workload, the one that takes most of the time first, and the sums."""
    ordered = sorted(results, key=_share, reverse=True)
    cells = [_line(result) for result in ordered]
    timed = [each for each in results if math.isfinite(each.default_s + each.best_s)]
    default_s = math.fsum(each.task.weight * each.default_s for each in timed) or math.nan
    best_s = math.fsum(each.task.weight * each.best_s for each in timed) or math.nan
    cells.append(
        (
            "all",
            f"{sum(each.task.weight for each in results):g}",
            str(sum(each.trials for each in results)),
            format_ms(default_s),
            format_ms(best_s),
            _speed_up(default_s, best_s),
        )
    )
    print_table(_COLUMNS, cells)


def print_untuned(result: TuneResult) -> None:
    """Name the workloads that no search has seen, and their share of the time that is known."""
    for each, share in result.untuned:
        workload = each.task.workload
        cause = f", {each.error}" if each.error else ""
        told = f"{share:.1%} of the time" if math.isfinite(each.best_s) else "not measured"
        click.echo(f"  untuned {workload.key} {workload.name}: {told}{cause}")


def ending(result: TuneResult) -> str:
    """How much was tried in which time, and why it ended before the budget was spent."""
    reason = "" if result.reason is StopReason.BUDGET_SPENT else f" ({result.reason.value})"
    failed = sum(bool(each.error) for each in result.tasks)
    note = f", {failed} workloads could not be measured" if failed else ""
    return f"{result.trials} trials in {result.elapsed_s:.0f} s{reason}{note}"


def format_ms(time_s: float) -> str:
    """Milliseconds with four digits; "-" where nothing was measured."""
    return f"{time_s * 1e3:.4g}" if math.isfinite(time_s) else "-"


def _line(result: TaskResult) -> tuple[str, ...]:
    return (
        f"{result.task.workload.name} {result.task.workload.key[:6]}",
        f"{result.task.weight:g}",
        str(result.trials),
        format_ms(result.default_s),
        format_ms(result.best_s),
        _speed_up(result.default_s, result.best_s) if not result.error else "failed",
    )


def _speed_up(default_s: float, best_s: float) -> str:
    known = math.isfinite(default_s + best_s) and best_s > 0
    return f"{default_s / best_s:.2f}x" if known else "-"


def _share(result: TaskResult) -> float:
    time_s = result.best_s if math.isfinite(result.best_s) else 0.0
    return result.task.weight * time_s
