"""Files of rows, with which a later run goes on, and which sources each row was measured by."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from tensorwright.base import InputError, source_digest
from tensorwright.cli.printing import print_line

UNKNOWN_BUILD = "unknown"
AGAIN = "--resume --same-build measures them again"


def this_build() -> str:
    """The digest of this package's sources, as rows keep it."""
    return source_digest(".")[:12]


def build_columns(builds: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A column for a table with a row for each of `builds`: its title, and a cell for each row.

    No column, and no cells, where this build measured all rows.
    """
    if not _others(builds):
        return (), [() for _ in builds]
    return ("build",), [(_name(build),) for build in builds]


def print_builds(
    builds: Sequence[str],
    versions: Iterable[tuple[str, str]],
    remedy: str,
    console: Console | None = None,
) -> None:
    """Say how many rows are of other builds, and which peers were measured in several versions.

    versions   (peer, version) for each time of a peer      remedy   what measures the rows again
    """
    console = console or Console()
    others = _others(builds)
    if others:
        parts = ", ".join(
            f"{count} of an unknown build" if not build else f"{count} of {build}"
            for build, count in Counter(others).items()
        )
        counted = f"{len(others)} of {len(builds)} rows were measured by other builds"
        print_line(f"{counted} than this, {this_build()}: {parts}; {remedy}", console)
    counts = Counter((peer, version) for peer, version in versions if version)
    for peer in dict.fromkeys(peer for peer, _ in counts):
        own = [(version, n) for (name, version), n in counts.items() if name == peer]
        if len(own) > 1:
            text = ", ".join(f"{version} ({n})" for version, n in own)
            print_line(f"{peer} was measured in several versions: {text}", console)


def _others(builds: Sequence[str]) -> list[str]:
    return [build for build in builds if build != this_build()]


def _name(build: str) -> str:
    if not build:
        return UNKNOWN_BUILD
    return "this" if build == this_build() else build


Row = TypeVar("Row")


def read_file_of(
    command: str, path: str | os.PathLike[str], read_row: Callable[[dict[str, Any]], Row]
) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """The head and the rows of a file that a command wrote; nothing where there is no file.

    read_row   makes a row of the fields of one
    Raises:    InputError for a file of another kind.
    """
    if not Path(path).exists():
        return {}, ()
    try:
        head = json.loads(Path(path).read_text())
        return head, tuple(map(read_row, head.pop("rows")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            stage="bench",
            where=f"file {path}",
            reason=f"it has no rows of {command}: {error}",
            remedy="name another file, or leave --resume out",
        ) from error
