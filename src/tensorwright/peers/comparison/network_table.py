"""The rows of `bench models`: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensorwright.base import write_atomically


@dataclass(frozen=True, slots=True)
class PeerTime:
    """One peer on one model; None for what was not measured, "" for what there is not.

    max_rel_error   largest difference of its outputs from those of the first peer that ran
    """

    peer: str
    version: str = ""
    time_ms: float | None = None
    max_rel_error: float | None = None
    failure: str = ""

    def with_time(self, time_s: float | None, failure: str) -> PeerTime:
        """The same after the race."""
        time_ms = None if time_s is None else time_s * 1e3
        return replace(self, time_ms=time_ms, failure=self.failure or failure)


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One model against the best of its peers; None for what was not measured.

    max_rel_error   largest difference of an output from the first peer's, over the largest output
    ours_ms         milliseconds per inference
    peer, peer_ms   the fastest peer, and its time
    ratio           peer_ms / ours_ms: above 1 we are faster
    peak_share      part of the machine's peak that we reach
    host_operators  operators that run on the host, not compiled; () for none
    failure         why something was not measured; "" where all went well
    peers           every peer, in the order asked for
    """

    model: str
    max_rel_error: float | None
    ours_ms: float | None
    peer: str
    peer_ms: float | None
    ratio: float | None
    host_operators: tuple[str, ...] = ()
    failure: str = ""
    peak_share: float | None = None
    peers: tuple[PeerTime, ...] = ()


def make_row(
    model: str,
    peer: str = "",
    max_rel_error: float | None = None,
    ours_s: float | None = None,
    peer_s: float | None = None,
    host_operators: Sequence[str] = (),
    failure: str = "",
    peers: Sequence[PeerTime] = (),
    flops: float = 0.0,
    peak: float = 0.0,
) -> BenchRow:
    """Build a row from seconds; ratio, share of peak, and the best of `peers`, follow."""
    ours_ms, peer_ms = (None if s is None else s * 1e3 for s in (ours_s, peer_s))
    timed = [(each.time_ms, each.peer) for each in peers if each.time_ms is not None]
    if timed:
        peer_ms, peer = min(timed)
    elif peers and not peer:
        peer = peers[0].peer
    share = flops / (ours_s * peak) if ours_s and flops and peak else None
    ratio = peer_ms / ours_ms if ours_ms and peer_ms is not None else None
    hosts = tuple(host_operators)
    return BenchRow(
        model, max_rel_error, ours_ms, peer, peer_ms, ratio, hosts, failure, share, tuple(peers)
    )


@dataclass(frozen=True, slots=True)
class RatioSummary:
    """The ratios of several rows together: their geometric mean, and the least with its model."""

    rows: int
    mean: float
    least: float
    model: str

    def __str__(self) -> str:
        return (
            f"geometric mean of {self.rows} ratios {self.mean:.2f}, "
            f"the least {self.least:.2f} ({self.model})"
        )


def summarise_ratios(rows: Sequence[BenchRow]) -> RatioSummary | None:
    """The summary of those that have a ratio; None where none has."""
    ratios = [(row.ratio, row.model) for row in rows if row.ratio]
    if not ratios:
        return None
    least, model = min(ratios)
    return RatioSummary(
        len(ratios), statistics.geometric_mean([ratio for ratio, _ in ratios]), least, model
    )


def write_rows(
    path: str | os.PathLike[str],
    rows: Sequence[BenchRow],
    head: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Write an object: what `head` says of the run, the geometric mean, and a line for each row.

    A number that is not finite becomes null.
    Raises:  OutputError if the file cannot be written.
    """
    summary = summarise_ratios(rows)
    head = {**head, "geometric_mean": None if summary is None else summary.mean}
    write_objects(path, head, [asdict(row) for row in rows])


def write_objects(
    path: str | os.PathLike[str], head: Mapping[str, object], rows: Sequence[Mapping[str, object]]
) -> None:
    """Write `head` and, under "rows", a line for each of the others, whole or not at all.

    Raises:  OutputError if the file cannot be written.
    """
    parts = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    lines = ",\n".join(f"  {json.dumps(_finite(row), allow_nan=False)}" for row in rows)
    parts.append(f' "rows": [\n{lines}\n ]' if rows else ' "rows": []')
    write_atomically(path, "{\n" + ",\n".join(parts) + "\n}\n")


def print_rows(rows: Sequence[BenchRow], console: Console | None = None) -> None:
    """Print the rows; framed and coloured on a terminal, plain lines elsewhere.

    Where there are several peers, each has a column, and the best one is named.
    """
    console = console or Console()
    names = tuple(dict.fromkeys(each.peer for row in rows for each in row.peers))
    several = names if len(names) > 1 else ()
    columns = (
        *("model", "error", "ours ms"),
        *(f"{name} ms" for name in several),
        *(("best",) if several else ("peer", "peer ms")),
        *("ratio", "of peak", "on host"),
    )
    print_table(columns, [_format_row(row, several) for row in rows], console)
    for row in rows:
        told = dict.fromkeys((row.failure, *(each.failure for each in row.peers)))
        for failure in filter(None, told):
            _print(f"{row.model}: {failure}", console)
    summary = summarise_ratios(rows)
    if summary is not None and summary.rows > 1:
        _print(str(summary), console)


def _print(text: str, console: Console) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_table(
    columns: Sequence[str], cells: Sequence[Sequence[str]], console: Console | None = None
) -> None:
    """Print any table in the same way: the first column to the left, the others to the right."""
    console = console or Console()
    if not console.is_terminal:
        console.print(format_table(columns, cells), markup=False, highlight=False, soft_wrap=True)
        return
    table = Table()
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    for line in cells:
        table.add_row(*map(Text, line))
    console.print(table)


def format_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """The table as aligned plain lines."""
    lines = [columns, *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join(_align(line, widths) for line in lines)


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON cannot say."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
        case _:
            return value


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
    return "  ".join([first, *rest]).rstrip()


def _format_row(row: BenchRow, several: Sequence[str]) -> tuple[str, ...]:
    times = {each.peer: each.time_ms for each in row.peers}
    return (
        row.model,
        "-" if row.max_rel_error is None else f"{row.max_rel_error:.1e}",
        _format_ms(row.ours_ms),
        *(_format_ms(times.get(name)) for name in several),
        row.peer or "-",
        *(() if several else (_format_ms(row.peer_ms),)),
        "-" if row.ratio is None else f"{row.ratio:.2f}",
        "-" if row.peak_share is None else f"{100 * row.peak_share:.0f} %",
        ", ".join(row.host_operators) or "none",
    )


def _format_ms(time_ms: float | None) -> str:
    if time_ms is None:
        return "-"
    return f"{time_ms:.4f}" if time_ms < 1 else f"{time_ms:.2f}"
