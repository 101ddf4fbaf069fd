"""What commands of the laboratory share: names of rows, files of rows, options."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tensorwright.base import write_atomically
from tensorwright.cli.arguments.options import THREADS, Command, split, target_option


def row_name(model: str) -> str:
    """The name of a MODEL argument in tables: SUITE:NAME, or a file without folder and suffix."""
    kind, name = split(model)
    return f"{kind}:{name}" if kind else Path(name).stem


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


def machine_options(function: Command) -> Command:
    """Add --target, as a `CpuTarget`, and --threads."""
    threads = "Threads of the kernels; by default all cores."
    return target_option(click.option("--threads", type=THREADS, help=threads)(function))
