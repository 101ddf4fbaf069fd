"""The option `--peers`: runtimes to compare with, by name; options that are lists, too."""

from __future__ import annotations

from contextlib import suppress

import click

from tensorwright.base import MachineError
from tensorwright.cli.arguments.options import Command
from tensorwright.peers.process import find_kind


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
