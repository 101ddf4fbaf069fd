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

UNHELD = "*"
"""Behind what belongs to a competitor that does not keep to the target's vectors."""


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


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
    return "  ".join([first, *rest]).rstrip()


def print_line(text: str, console: Console) -> None:
    """One line as it is, however long."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
