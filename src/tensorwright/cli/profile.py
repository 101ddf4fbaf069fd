"""`tensorwright profile`: where the time of a network goes, kernel by kernel."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from tensorwright import profiling
from tensorwright.base import sizes_text, write_atomically
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.machine import warn_if_unfit
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.group import echo_prose
from tensorwright.cli.printing import print_table
from tensorwright.profiling import profile as profile_executable

_COLUMNS = (
    *("step", "writes"),
    *("us", "share", "GFLOP/s", "GB/s", "roofline", "schedule", "limited by"),
)
_LONGEST_LABEL = 44
_MOST_VIEWS = 6
_DOUBTED = "?"
_NEARER = ",\n  or their data lies in a nearer cache than is assumed"
_UNSTEADY = "the machine was too unsteady to split the time of a run: its parts do not add up to it"
_ORDERS = ("time", "run")
_GROUPS = ("step", "workload")


@click.command()
@click.argument("program", metavar="EXECUTABLE|MODEL|MODULE:EXPR")
@click.option(
    "--order",
    type=click.Choice(_ORDERS),
    default="time",
    help="Slowest steps first, or as they run.",
)
@click.option(
    "--by",
    "group",
    type=click.Choice(_GROUPS),
    default="step",
    help="A row for each step, or for each workload; the slowest first.",
)
@click.option("--top", type=click.IntRange(min=1), help="Show only the slowest steps, this many.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="Runs to time; by default as many as take 3 seconds.",
)
@click.option("--json", "json_path", metavar="FILE", help="Also write everything to a file.")
@click.option(
    "--trace",
    "trace_path",
    metavar="FILE",
    help="Write a trace for chrome://tracing and ui.perfetto.dev.",
)
@options.at_option
@options.constants_option
@options.compile_options
def command(
    program: str,
    order: str,
    group: str,
    top: int | None,
    repeats: int | None,
    json_path: str | None,
    trace_path: str | None,
    at: dict[str, int],
    constants: Path | None,
    how: options.Compilation,
) -> None:
    """Time every step of a network as it runs among the others.

    A model or a tensor expression is compiled first.

    share is the part of the time of the whole network. GFLOP/s and GB/s count each operation and
    each byte of a step once. roofline is the time that this machine needs for them at its measured
    peak and bandwidths, as a share of the measured time. It counts the operations of a
    convolution's plain sum; Winograd's algorithm and skipped zeros take fewer, and may take less
    time. The highest measured peak and bandwidths are kept from run to run. A step that is faster
    than this estimate has >100%, and a "?" if it is so by more than 15% without a reason. A message
    says if other processes use the machine. If the parts of a run do not add up to it, no shares
    are shown.

    Example: tensorwright profile light:resnet50 --top 15 --trace resnet50.json
    """
    for path in (json_path, trace_path):
        check_writable(path, program, constants, how.records_path)
    executable = options.open_program(program, how, constants, draws=True)
    report = profile_executable(executable, repeats=repeats, at=at, seed=how.seed)
    warn_if_unfit(report.state)
    print_profile(report, order, group, top)
    if json_path is not None:
        write_atomically(json_path, json.dumps(profiling.profile_values(report), indent=1) + "\n")
    if trace_path is not None:
        write_atomically(trace_path, json.dumps(profiling.chrome_trace(report)) + "\n")


def print_profile(report: profiling.Profile, order: str, group: str, top: int | None) -> None:
    """Print the table of steps, and the summary below it."""
    rows = report.by_workload() if group == "workload" else report.by_time()
    shown = rows if top is None else rows[:top]
    ordered = sorted(shown, key=lambda row: row.number) if order == "run" else shown
    cells = [_cells(row, report.adds_up) for row in ordered]
    hidden = rows[len(shown) :]
    if hidden:
        cells.append(
            _sum_cells(f"{sum(row.count for row in hidden)} others", hidden, report.adds_up)
        )
    cells.append(_sum_cells(f"all {_count(len(report.steps), 'step')}", rows, report.adds_up))
    print_table(_COLUMNS, cells)
    for line in summary_lines(report):
        echo_prose(line)


def summary_lines(report: profiling.Profile) -> list[str]:
    """The lines below the table: the times of a run, the machine, the bottlenecks and the views."""
    bottlenecks = ", ".join(
        f"{each.value} {share:.0%}" if report.adds_up else each.value
        for each, share in report.share_by_bottleneck()
    )
    lines = [
        _whole_line(report),
        _outside_line(report) if report.adds_up else _UNSTEADY,
        _costs_line(report),
        _machine_line(report),
        f"limited by: {bottlenecks}",
        *_above_lines(report),
    ]
    if report.views:
        names = [f"{view.output} ({view.operator})" for view in report.views]
        more = ", ..." if len(names) > _MOST_VIEWS else ""
        lines.append(
            f"no work, {_count(len(names), 'view')}: {', '.join(names[:_MOST_VIEWS])}{more}"
        )
    return lines


def _whole_line(report: profiling.Profile) -> str:
    at = f" at {sizes_text(dict(report.at))}" if report.at else ""
    return (
        f"{report.name}{at}, target {report.target}, {_count(report.threads, 'thread')}: "
        f"{_us(report.network_s)} us a run, median of {report.runs}; "
        f"{report.roofline_share:.0%} of the roofline"
    )


def _outside_line(report: profiling.Profile) -> str:
    return (
        f"a run takes {_signed_us(report.outside_s)} us beyond the steps' medians: "
        f"{_signed_us(report.fluctuation_s)} as steps are slower now and then, "
        f"{_signed_us(report.entering_s)} to enter native code, "
        f"{_signed_us(report.unexplained_s)} else"
    )


def _costs_line(report: profiling.Profile) -> str:
    costs = report.costs
    threads = f", {costs.threads_s * 1e9:.0f} ns to start and join threads" * (report.threads > 1)
    return (
        f"in each step: {costs.step_s * 1e9:.0f} ns for the call{threads}; "
        f"{costs.clock_s * 1e9:.0f} ns of reading the clock are taken off"
    )


def _machine_line(report: profiling.Profile) -> str:
    day = f", measured on {report.ceilings.day}" if report.ceilings.when else ""
    return f"machine: {report.ceilings}{day}"


def _above_lines(report: profiling.Profile) -> list[str]:
    """Why steps are above the roofline: they do fewer operations, or the roofline is too low."""
    fewer = Counter(step.saves_by for step in report.steps if step.saves_by and step.why_above)
    lines = [
        f"above 100%: {_count(count, 'step')}; {cause} {profiling.FEWER}"
        for cause, count in fewer.items()
    ]
    above = report.above_roofline
    if above:
        moving = all(step.bounds.moving_s >= step.bounds.arithmetic_s for step in above)
        steps = _count(len(above), "step")
        lines += [
            f"{_DOUBTED} above 115%: {steps}; peak and bandwidths were measured too low, on a",
            f"  busy machine or at a lower clock{_NEARER if moving else ''}; once it is idle:",
            "  tensorwright doctor",
        ]
    return lines


def _cells(row: profiling.StepProfile, adds_up: bool) -> tuple[str, ...]:
    label = _shortened(row.label)
    name = f"{row.number} {label}" if row.count == 1 else f"{row.count} x {label}"
    writes = _shortened(row.outputs[0]) if row.count == 1 and row.outputs else row.workload[:6]
    has_flops = row.flops > 0
    return (
        name,
        writes or "-",
        _us(row.time_s),
        f"{row.share:.1%}" if adds_up else "-",
        f"{row.flops_per_s / 1e9:.1f}" if has_flops else "-",
        f"{row.bytes_per_s / 1e9:.1f}",
        _roofline(row),
        _schedule(row),
        row.bottleneck.value,
    )


def _sum_cells(name: str, rows: Sequence[profiling.StepProfile], adds_up: bool) -> tuple[str, ...]:
    time_s = sum(row.time_s for row in rows)
    least_s = sum(row.least_s for row in rows)
    rates = [
        f"{sum(amounts) / time_s / 1e9:.1f}" if time_s > 0 else "-"
        for amounts in ((row.flops for row in rows), (row.bytes_moved for row in rows))
    ]
    share = f"{least_s / time_s:.0%}" if time_s > 0 else "-"
    of_run = f"{sum(row.share for row in rows):.1%}" if adds_up else "-"
    return (name, "", _us(time_s), of_run, *rates, share, "", "")


def _roofline(row: profiling.StepProfile) -> str:
    if row.kind is profiling.StepKind.HOST:
        return "-"
    above = ">" if row.why_above else ""
    return f"{above}{row.roofline_share:.0%}{_DOUBTED if row.is_above_roofline else ''}"


def _schedule(row: profiling.StepProfile) -> str:
    if row.is_tuned is None:
        return "-"
    return "tuned" if row.is_tuned else "untuned"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 3]}..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _us(time_s: float) -> str:
    """A time in microseconds with three digits or more, rounded to nanoseconds."""
    time_us = round(time_s * 1e6, 3) + 0.0
    return f"{time_us:.0f}" if abs(time_us) >= 1000 else f"{time_us:.3g}"


def _signed_us(time_s: float) -> str:
    text = _us(time_s)
    return text if text.startswith("-") else f"+{text}"
