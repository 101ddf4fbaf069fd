"""Which sources a row was measured by: a file that a run goes on with may have rows of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console

from tensorwright.base import source_digest
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
