"""The rows of `bench models`: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensorwright.base import write_atomically


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One model against one peer; None for what was not measured.

    max_rel_error   largest difference of an output from the peer's, over the largest output
    ours_ms         milliseconds per inference      peer_ms   likewise
    ratio           peer_ms / ours_ms: above 1 we are faster
    host_operators  operators that run on the host, not compiled; () for none
    failure         why something was not measured; "" where all went well
    """

    model: str
    max_rel_error: float | None
    ours_ms: float | None
    peer: str
    peer_ms: float | None
    ratio: float | None
    host_operators: tuple[str, ...] = ()
    failure: str = ""


def make_row(
    model: str,
    peer: str,
    max_rel_error: float | None = None,
    ours_s: float | None = None,
    peer_s: float | None = None,
    host_operators: Sequence[str] = (),
    failure: str = "",
) -> BenchRow:
    """Build a row from seconds; the ratio follows."""
    ratio = peer_s / ours_s if ours_s and peer_s is not None else None
    ours_ms, peer_ms = (None if s is None else s * 1e3 for s in (ours_s, peer_s))
    return BenchRow(
        model, max_rel_error, ours_ms, peer, peer_ms, ratio, tuple(host_operators), failure
    )


def write_rows(path: str | os.PathLike[str], rows: Sequence[BenchRow]) -> None:
    """Write a JSON array with one row per line; a number that is not finite becomes null.

    Raises:  OutputError if the file cannot be written.
    """
    lines = ",\n".join(_to_json(row) for row in rows)
    write_atomically(path, f"[\n{lines}\n]\n" if rows else "[]\n")


def print_rows(rows: Sequence[BenchRow], console: Console | None = None) -> None:
    """Print the rows; framed and coloured on a terminal, plain lines elsewhere."""
    console = console or Console()
    cells = [_format_row(row) for row in rows]
    print_table(
        ("model", "error", "ours ms", "peer", "peer ms", "ratio", "on host"), cells, console
    )
    for row in rows:
        if row.failure:
            text = f"{row.model}: {row.failure}"
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


def _to_json(row: BenchRow) -> str:
    fields = asdict(row)
    for name, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            fields[name] = None
    return json.dumps(fields, allow_nan=False)


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
    return "  ".join([first, *rest]).rstrip()


def _format_row(row: BenchRow) -> tuple[str, ...]:
    return (
        row.model,
        "-" if row.max_rel_error is None else f"{row.max_rel_error:.1e}",
        _format_ms(row.ours_ms),
        row.peer,
        _format_ms(row.peer_ms),
        "-" if row.ratio is None else f"{row.ratio:.2f}",
        ", ".join(row.host_operators) or "none",
    )


def _format_ms(time_ms: float | None) -> str:
    if time_ms is None:
        return "-"
    return f"{time_ms:.4f}" if time_ms < 1 else f"{time_ms:.2f}"
