"""`tensorwright farm scheduler`: hand out units to the workers of a farm."""

from __future__ import annotations

import click

from tensorwright.cli.arguments.farm import security_options
from tensorwright.farm import FarmSecurity, dask_part


@click.command("scheduler")
@click.argument("address", metavar="ADDRESS", default="tcp://127.0.0.1:8786")
@click.option(
    "--page",
    default="127.0.0.1:8787",
    show_default=True,
    metavar="HOST:PORT",
    help="Where Dask's own page is.",
)
@click.option(
    "--silent",
    "silent_s",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="A worker that says nothing for so long is gone.",
)
@security_options
def scheduler_command(address: str, page: str, silent_s: float, security: FarmSecurity) -> None:
    """Hand out units of work to the workers of a farm, until it is ended.

    ADDRESS is where it listens: tcp://127.0.0.1:8786, or tls://HOST:PORT with --keys.

    Example: tensorwright farm scheduler tls://0.0.0.0:8786 --keys keys
    """
    dask_part("scheduler").schedule(address, security, page, silent_s, click.echo)
