"""`tensorwright farm`: a scheduler, keys, and what the workers do."""

from __future__ import annotations

import click

from tensorwright.cli.farm import scheduler


@click.group()
def command() -> None:
    """Many machines: a scheduler, keys, and what the workers do.

    Example: tensorwright farm scheduler
    """


command.add_command(scheduler.scheduler_command)
