"""Tables for people, plain or framed, and files of objects for programs."""

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
_FRAME = 3  # columns that a frame takes for each column, and one more
_LEAST_NAME = 12
_CUT = "..."


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


def print_table(
    columns: Sequence[str], cells: Sequence[Sequence[str]], console: Console | None = None
) -> None:
    """Print any table in the same way: the first column to the left, the others to the right.

    On a terminal it is framed where that fits; else it is made to fit by `fit_table`.
    """
    console = console or Console()
    if not console.is_terminal:
        print_line(format_table(columns, cells), console)
        return
    if sum(_widths(columns, cells)) + _FRAME * len(columns) + 1 > console.width:
        print_line(fit_table(columns, cells, console.width), console)
        return
    table = Table()
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    for line in cells:
        table.add_row(*map(Text, line))
    console.print(table)


def format_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """The table as aligned plain lines."""
    widths = _widths(columns, cells)
    return "\n".join(_align(line, widths) for line in (columns, *cells))


def fit_table(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    """As `format_table`, in lines that are not longer than `width` where that can be.

    Names are cut first, the longest first; numbers never. Columns for which there is no room then
    stand below the others, beside the first column once more.
    """
    widths = _cut_names(columns, cells, width, _LEAST_NAME)
    if sum(widths) + _GAP * (len(widths) - 1) > width:
        widths = _cut_names(columns, cells, width, width // 3)
    lines = [
        [shorten(cell, length) for cell, length in zip(line, widths, strict=True)]
        for line in (columns, *cells)
    ]
    blocks: list[list[int]] = [[]]
    for place in range(1, len(widths)):
        used = widths[0] + sum(_GAP + widths[each] for each in blocks[-1])
        if blocks[-1] and used + _GAP + widths[place] > width:
            blocks.append([])
        blocks[-1].append(place)
    texts = []
    for block in blocks:
        places = (0, *block)
        sizes = [widths[place] for place in places]
        texts.append("\n".join(_align([line[p] for p in places], sizes) for line in lines))
    return "\n\n".join(texts)


def _cut_names(
    columns: Sequence[str], cells: Sequence[Sequence[str]], width: int, least: int
) -> list[int]:
    """Widths of columns with names cut, to `least` each at most, until all fit into `width`."""
    widths = _widths(columns, cells)
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    for place in sorted(range(len(widths)), key=lambda place: -widths[place]):
        if any(each[place][:1].isalpha() for each in cells):
            cut = max(0, min(excess, widths[place] - max(least, len(columns[place]))))
            widths[place] -= cut
            excess -= cut
    return widths


def shorten(text: str, width: int) -> str:
    """A name in so many columns: its middle is left out, because its end tells as much as its
    start.
    """
    if len(text) <= width:
        return text
    tail = max(0, (width - len(_CUT)) // 2)
    return text[: max(0, width - len(_CUT) - tail)] + _CUT + (text[-tail:] if tail else "")


def _widths(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    lines = [columns, *cells]
    return [max(len(line[place]) for line in lines) for place in range(len(columns))]


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
    return "  ".join([first, *rest]).rstrip()


def print_line(text: str, console: Console) -> None:
    """One line as it is, however long."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
