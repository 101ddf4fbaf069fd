"""`tensorwright rules`: substitutions of operator graphs that are generated and proved."""

from __future__ import annotations

import click

from tensorwright.cli.rules import proving


@click.group()
def command() -> None:
    """Generate, prove, explain and check substitutions of operator graphs."""


for _each in proving.COMMANDS:
    command.add_command(_each)
