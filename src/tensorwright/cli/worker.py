"""`tensorwright worker`: build and measure for others."""

from __future__ import annotations

import click

from tensorwright.base import available_cores
from tensorwright.cli.arguments.farm import security_options
from tensorwright.farm import FarmSecurity, dask_part


@click.command()
@click.argument("address", metavar="ADDRESS")
@click.option(
    "--slots", type=click.IntRange(min=1), help="Units done at once; the cores by default."
)
@click.option("--name", default="", help="Unique in the farm; host and process by default.")
@security_options
def command(address: str, slots: int | None, name: str, security: FarmSecurity) -> None:
    """Build and measure for others, until it is ended: a worker of a farm.

    ADDRESS is that of the scheduler, tcp://HOST:PORT or tls://HOST:PORT.

    Example: tensorwright worker tcp://127.0.0.1:8786
    """
    dask_part("worker").work(
        address, slots or available_cores(), security=security, name=name, tell=click.echo
    )
