"""Options that several commands share: `--peers`, lists, and `--resume` with a file of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import click

from tensorwright.base import MachineError, UsageError
from tensorwright.cli.arguments.options import Command, refuse_given
from tensorwright.peers.process import find_kind
from tensorwright_lab.comparison import this_build


def read_names(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names with commas between; none where the option is not given."""
    names = tuple(filter(None, (each.strip() for each in (text or "").split(","))))
    if text is not None and not names:
        raise click.BadParameter("it does not name anything.", ctx, param)
    return names


def read_numbers(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Numbers from 1 on with commas between, each once."""
    numbers = [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() and int(each) for each in numbers):
        raise click.BadParameter("give numbers from 1 on, with commas between: 1,2,8.")
    return tuple(dict.fromkeys(map(int, numbers)))


def read_peers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names of peers separated by commas; unknown names are refused."""
    names = read_names(ctx, param, text)
    for name in names:
        with suppress(MachineError):  # a peer that is not installed fails in each row
            find_kind(name)
    return names


def peers_option(usual: str) -> Command:
    """`--peers A,B`; `usual` describes the default."""
    return click.option(
        "--peers",
        "--peer",
        "peers",
        callback=read_peers,
        metavar="A,B",
        help=f"The runtimes to compare with; {usual}.",
    )


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
