"""`tensorwright rules`: which graphs of operators compute the same, generated and proved."""

from __future__ import annotations

import click

from tensorwright.cli.rules import coverage, generate, library, operators, proving


@click.group()
def command() -> None:
    """Generate, prove, explain and check rules: which graphs of operators compute the same."""


_ALONE = (generate.command, coverage.command, operators.command)
for _each in (*_ALONE, *library.COMMANDS, *proving.COMMANDS):
    command.add_command(_each)
