"""`tensorwright farm`: a scheduler, keys, and what the workers do."""

from __future__ import annotations

import click

from tensorwright.cli.farm import keys, scheduler, status


@click.group()
def command() -> None:
    """Many machines: a scheduler, keys, and what the workers do.

    Example: tensorwright farm scheduler
    """


for _each in (scheduler.scheduler_command, keys.keys_command, status.status_command):
    command.add_command(_each)
