"""The options --report and --live, and the page that --live shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from tensorwright.cli.group import same_command
from tensorwright.report import LiveReport

Command = Callable[..., Any]


def report_options(function: Command) -> Command:
    """Add --report, as the name of a file, and --live."""
    function = click.option(
        "--live",
        is_flag=True,
        help="Show the search in a browser while it runs, on this machine only.",
    )(function)
    return click.option(
        "--report",
        metavar="FILE.html",
        help="Measure what was reached, and write a report; FILE.json has its data alone.",
    )(function)


@contextmanager
def opened_page(name: str, *, is_live: bool) -> Iterator[LiveReport | None]:
    """With --live, serve the page of a search while the block runs, and print its address."""
    if not is_live:
        yield None
        return
    page = LiveReport(name, same_command())
    click.echo(f"live: {page.address}", err=True)
    try:
        yield page
    finally:
        page.stop()
