"""`tensorwright farm keys`: make the keys by which the machines of a farm know each other."""

from __future__ import annotations

from pathlib import Path

import click

from tensorwright.farm import make_keys


@click.command("keys")
@click.argument("folder", type=click.Path(path_type=Path))
def keys_command(folder: Path) -> None:
    """Make certificates for TLS and a shared key, in a new folder.

    Copy the folder to all machines of the farm, and give it to scheduler, workers and clients with
    --keys. Who has it can have work done on the farm.

    Example: tensorwright farm keys keys
    """
    for path in make_keys(folder):
        click.echo(path)
