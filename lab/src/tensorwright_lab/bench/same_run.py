"""Files of rows that a run continues: only those that were measured in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import click

from tensorwright.base import UsageError
from tensorwright.cli.arguments.options import refuse_given
from tensorwright_lab.comparison import this_build

same_build_option = click.option(
    "--same-build", is_flag=True, help="With --resume: drop rows that another build measured."
)


def check_resume(resume: bool, json_path: str | None) -> None:
    """Refuse --resume without a file, and --same-build without --resume, with a UsageError."""
    if resume and json_path is None:
        raise click.UsageError("--resume goes on with a file: name it with --json")
    if not resume:
        refuse_given(("same_build",), because="it is about the rows that --resume keeps")


class BuiltRow(Protocol):
    """A row that knows the digest of the sources that measured it."""

    @property
    def build(self) -> str:
        """Of `this_build`; "" where it is not known."""


Row = TypeVar("Row", bound=BuiltRow)


def of_builds(rows: Sequence[Row], same_build: bool) -> list[Row]:
    """The rows, or those of this build alone."""
    return [row for row in rows if not same_build or row.build == this_build()]


def check_same_run(
    path: str, before: Mapping[str, object], head: Mapping[str, object], names: Iterable[str]
) -> None:
    """Refuse rows of a run that was another in one of these; nothing was kept where `before` is
    empty.

    Raises:  UsageError.
    """
    for name in names if before else ():
        if before.get(name) != head[name]:
            raise UsageError(
                stage="bench",
                where=f"file {path}",
                reason=f"its rows have {name} {before.get(name)}, this run has {head[name]}",
                remedy="name another file, or leave --resume out",
            )
