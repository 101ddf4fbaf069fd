"""`tensorwright farm`: start a scheduler, make keys, and list the workers."""

from __future__ import annotations

import click

from tensorwright.cli.farm import keys, scheduler, status


@click.group()
def command() -> None:
    """Use many machines: start a scheduler, make keys, see what the workers do.

    Example: tensorwright farm scheduler
    """


for _each in (scheduler.scheduler_command, keys.keys_command, status.status_command):
    command.add_command(_each)
