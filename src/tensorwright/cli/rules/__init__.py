"""`tensorwright rules`: substitutions of operator graphs that are generated and proved."""

from __future__ import annotations

import click

from tensorwright.cli.rules import coverage, generate, library, proving


@click.group()
def command() -> None:
    """Generate, prove, explain and check substitutions of operator graphs."""


for _each in (generate.command, *library.COMMANDS, *proving.COMMANDS, coverage.command):
    command.add_command(_each)
