"""Print tables for people, plain or framed, and write tables as JSON for programs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensorwright.base import write_atomically

_GAP = 2
_FRAME = 3  # characters of the frame for each column; one more closes it
_LEAST_NAME = 12
_CUT = "..."


def write_objects(
    path: str | os.PathLike[str], head: Mapping[str, object], rows: Sequence[Mapping[str, object]]
) -> None:
    """Write a JSON file: the fields of `head`, and under "rows" a line for each row.

    Raises:  OutputError if the file cannot be written; then it stays as it was.
    """
    parts = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    lines = ",\n".join(f"  {json.dumps(_finite(row), allow_nan=False)}" for row in rows)
    parts.append(f' "rows": [\n{lines}\n ]' if rows else ' "rows": []')
    write_atomically(path, "{\n" + ",\n".join(parts) + "\n}\n")


def _finite(value: Any) -> Any:
    """The value with None in place of infinite numbers and NaN, which JSON does not have."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
        case _:
            return value


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
