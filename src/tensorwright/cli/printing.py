"""What commands print: lines of prose, tables, and the results of a search.

Speed-ups come from the comparison at the end, in which untuned and tuned programs take turns.
Without a comparison the times come from records, and no speed-up is printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensorwright.tuning import session

_GAP = 2
_FRAME = 3  # characters of the frame for each column; one more closes it
_LEAST_NAME = 12
_CUT = "..."


def print_table(
    columns: Sequence[str], cells: Sequence[Sequence[str]], console: Console | None = None
) -> None:
    """Print a table with the first column aligned left and the others right.

    On a terminal it gets a frame if that fits; otherwise `fit_table` makes it fit.
    """
    console = console or Console()
    if not console.is_terminal:
        print_line(format_table(columns, cells), console)
        return
    if sum(_widths(columns, cells)) + _FRAME * len(columns) + 1 > console.width:
        print_line(fit_table(columns, cells, console.width), console)
        return
    table = Table()
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for line in cells:
        table.add_row(*map(Text, line))
    console.print(table)


def format_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table as aligned plain lines."""
    widths = _widths(columns, cells)
    return "\n".join(_align(line, widths) for line in (columns, *cells))


def fit_table(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    """Format a table as `format_table` does, with lines of at most `width` characters if possible.

    Columns of names are shortened, the widest first; columns of numbers are not. Columns that still
    do not fit are printed below the others, with the first column repeated.
    """
    widths = _cut_names(columns, cells, width, _LEAST_NAME)
    if sum(widths) + _GAP * (len(widths) - 1) > width:
        widths = _cut_names(columns, cells, width, width // 3)
    lines = [
        [shorten(cell, length) for cell, length in zip(line, widths, strict=True)]
        for line in (columns, *cells)
    ]
    blocks: list[list[int]] = [[]]
    for number in range(1, len(widths)):
        used = widths[0] + sum(_GAP + widths[each] for each in blocks[-1])
        if blocks[-1] and used + _GAP + widths[number] > width:
            blocks.append([])
        blocks[-1].append(number)
    texts = []
    for block in blocks:
        places = (0, *block)
        sizes = [widths[number] for number in places]
        texts.append("\n".join(_align([line[p] for p in places], sizes) for line in lines))
    return "\n\n".join(texts)


def _cut_names(
    columns: Sequence[str], cells: Sequence[Sequence[str]], width: int, least: int
) -> list[int]:
    """The widths of columns after names are shortened, not below `least`, until all columns fit."""
    widths = _widths(columns, cells)
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    for number in sorted(range(len(widths)), key=lambda number: -widths[number]):
        if any(each[number][:1].isalpha() for each in cells):
            cut = max(0, min(excess, widths[number] - max(least, len(columns[number]))))
            widths[number] -= cut
            excess -= cut
    return widths


def shorten(text: str, width: int) -> str:
    """Shorten a name to a width by leaving out its middle: its end says as much as its start."""
    if len(text) <= width:
        return text
    tail = max(0, (width - len(_CUT)) // 2)
    return text[: max(0, width - len(_CUT) - tail)] + _CUT + (text[-tail:] if tail else "")


def _widths(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    lines = [columns, *cells]
    return [max(len(line[number]) for line in lines) for number in range(len(columns))]


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
    return "  ".join([first, *rest]).rstrip()


def print_line(text: str, console: Console) -> None:
    """Print one line without wrapping."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


_COLUMNS = ("workload", "times", "trials", "untuned ms", "tuned ms", "speed-up")
_SIZE_COLUMNS = ("size", "untuned ms", "tuned ms", "speed-up")
_NOT_COMPARED = "not compared"
_UNSTEADY = "unsteady"
_MOST_SPREAD = 2.0  # an unsure speed-up with bounds further apart is unsteady
_FOUND_EARLIER, _TIMED_EARLIER, _DOUBTED = "*", "**", "~"
_LONGEST_NAME = 28
_MOST_LINES = 5


def print_result(
    result: session.TuneResult, heading: str, names: Sequence[str] = (), *, is_quiet: bool = False
) -> None:
    """Print all that a session achieved.

    heading    the last line, after the tables, and notes on candidates and workloads
    names      the names of the networks, as in `print_networks`
    is_quiet   whether to leave out the table of workloads
    """
    if not is_quiet:
        print_workloads(result.tasks)
    print_cut(result)
    print_failed(result)
    print_untuned(result)
    print_networks(result.networks, names if result.networks else ())
    click.echo(heading)


def print_workloads(results: Sequence[session.TaskResult]) -> None:
    """Print one line for each workload, the most expensive first, and the sums."""
    ordered = sorted(results, key=lambda each: each.task.call_count * each.times_s[1], reverse=True)
    cells = [_line(result) for result in ordered]
    cells.append(_sum_line(results))
    print_table(_COLUMNS, cells)
    marks = {_mark(result) for result in results}
    speed_ups = [_speed_up(result) for result in results]
    if any(each.startswith(_DOUBTED) for each in speed_ups):
        click.echo(f"{_DOUBTED} not more than the differences between turns")
    if _UNSTEADY in speed_ups:
        click.echo(f"{_UNSTEADY}: the turns differ too much to say anything; is the machine busy?")
    if _FOUND_EARLIER in marks:
        click.echo(
            f"{_FOUND_EARLIER} an earlier run found this schedule; both times are from this run"
        )
    if _TIMED_EARLIER in marks:
        click.echo(f"{_TIMED_EARLIER} recorded by an earlier run, at another moment")


def print_networks(networks: Sequence[session.NetworkResult], names: Sequence[str] = ()) -> None:
    """Print the times of each whole network, untuned and tuned, from the comparison at the end.

    A network with open sizes gets a table with a line for each size.
    names   the user's names of the networks, in order; by default the names of the models
    """
    runs = [list(each) for _, each in groupby(networks, key=lambda one: (one.name, bool(one.at)))]
    whole = [run for each in runs for run in ([each] if each[0].at else [[one] for one in each])]
    called = names or [run[0].name for run in whole]
    for name, run in zip(called, whole, strict=True):
        if run[0].at:
            click.echo(f"{name}, the whole network, measured in turns:")
            print_table(_SIZE_COLUMNS, [_size_line(each) for each in run])
        else:
            click.echo(f"{name}, the whole network: {_whole(run[0])}")


def _size_line(network: session.NetworkResult) -> tuple[str, ...]:
    """The times at one size; "same" if the untuned network is kept for this size."""
    compared = network.whole
    if compared is None:
        return network.at, "-", "-", f"{_NOT_COMPARED}, {network.reason}"
    times = (format_ms(compared.untuned_s), format_ms(compared.tuned_s))
    gain = "same" if compared.is_same else f"{_doubt(compared)}{compared}"
    return network.at, *times, gain


def _whole(network: session.NetworkResult) -> str:
    compared = network.whole
    if compared is None:
        return f"{_NOT_COMPARED}, {network.reason}"
    if compared.is_same:
        return f"{format_ms(compared.untuned_s)} ms untuned; nothing was faster in turns"
    return (
        f"{format_ms(compared.untuned_s)} ms untuned,\n  {format_ms(compared.tuned_s)} ms tuned, "
        f"measured in turns: {_doubt(compared)}{compared}"
    )


def print_untuned(result: session.TuneResult) -> None:
    """Print the workloads that were never tuned, with their share of the measured time."""
    lines = []
    for each, share in result.untuned:
        workload = each.task.workload
        cause = f", {each.error}" if each.error else ""
        share_text = (
            f"{share:.1%} of the time" if math.isfinite(each.times_s[1]) else "not measured"
        )
        lines.append(f"  untuned {workload.key} {workload.name}: {share_text}{cause}")
    print_some(lines)


def print_some(lines: Sequence[str]) -> None:
    """Print the first lines of a list that may be long, and how many more there are."""
    most = _MOST_LINES if len(lines) > _MOST_LINES + 1 else len(lines)
    for line in lines[:most]:
        click.echo(line)
    if most < len(lines):
        click.echo(f"  and {len(lines) - most} more")


def print_cut(result: session.TuneResult) -> None:
    """Print how many candidates were not built because they exceed a limit of the device."""
    if result.cut:
        counts = ", ".join(f"{count:,} over {what}" for what, count in result.cut)
        click.echo(f"cut before building: {counts}")


def print_failed(result: session.TuneResult) -> None:
    """Print each workload that could not be measured, and why."""
    for each in result.tasks:
        if each.error:
            workload = each.task.workload
            click.echo(f"  not measured {workload.key} {workload.name}: {each.error}")


def ending(result: session.TuneResult) -> str:
    """The number of trials, the time, and why the session ended before its budget was spent."""
    reason = "" if result.reason is session.StopReason.BUDGET_SPENT else f" ({result.reason.value})"
    failed = sum(bool(each.error) for each in result.tasks)
    note = f", {failed} workloads could not be measured" if failed else ""
    return f"{result.trials} trials in {result.elapsed_s:.0f} s{reason}{note}"


def format_ms(time_s: float) -> str:
    """A time in milliseconds with four digits; "-" without a measurement."""
    return f"{time_s * 1e3:.4g}" if math.isfinite(time_s) else "-"


def _line(result: session.TaskResult) -> tuple[str, ...]:
    name = result.task.workload.name
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 3]}..."
    default_s, best_s = result.times_s
    return (
        f"{name} {result.task.workload.key[:6]} {_mark(result)}".rstrip(),
        f"{result.task.call_count:.4g}",
        str(result.trials),
        format_ms(default_s),
        format_ms(best_s),
        _speed_up(result),
    )


def _sum_line(results: Sequence[session.TaskResult]) -> tuple[str, ...]:
    timed = [each for each in results if math.isfinite(sum(each.times_s))]
    default_s, best_s = (
        math.fsum(each.task.call_count * each.times_s[side] for each in timed) or math.nan
        for side in (0, 1)
    )
    return (
        "all",
        f"{sum(each.task.call_count for each in results):.4g}",
        str(sum(each.trials for each in results)),
        format_ms(default_s),
        format_ms(best_s),
        _speed_up_of_all(timed, default_s / best_s),
    )


def _speed_up_of_all(results: Sequence[session.TaskResult], speed_up: float) -> str:
    """The speed-up of all workloads together, with the mark of the least certain workload."""
    if not results:
        return "-"
    if any(each.compared is None for each in results):
        return _NOT_COMPARED
    told = [_speed_up(each) for each in results]
    if _UNSTEADY in told:
        return _UNSTEADY
    doubt = _DOUBTED if any(each.startswith(_DOUBTED) for each in told) else ""
    return f"{doubt}{speed_up:.2f}x"


def _speed_up(result: session.TaskResult) -> str:
    if result.error:
        return "failed"
    if result.is_untuned:
        return "untuned"
    if result.compared is None:
        return _NOT_COMPARED
    if result.compared.is_same:
        return "same"
    if not result.compared.is_sure and result.compared.most > _MOST_SPREAD * result.compared.least:
        return _UNSTEADY
    return f"{_doubt(result.compared)}{result.compared.speed_up:.2f}x"


def _doubt(compared: session.Comparison) -> str:
    """The mark of a speed-up that is within the differences between turns; "" for a larger one."""
    return "" if compared.is_sure else _DOUBTED


def _mark(result: session.TaskResult) -> str:
    if not result.is_from_earlier:
        return ""
    return _TIMED_EARLIER if result.compared is None else _FOUND_EARLIER
