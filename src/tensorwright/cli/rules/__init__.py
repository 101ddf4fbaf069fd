"""`tensorwright rules`: which graphs of operators compute the same, and why."""

from __future__ import annotations

import click

from tensorwright.base import LaboratoryPart, has_laboratory
from tensorwright.cli.rules import coverage, library, operators, proving

_GENERATE = LaboratoryPart("command rules generate", "rule_generation.command", "command")


@click.group()
def command() -> None:
    """Generate, prove, explain and check rules: which graphs of operators compute the same."""


@click.command(
    "generate",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def _generate() -> None:
    """Enumerate operator graphs: part of the package tensorwright-lab."""
    _GENERATE.load()


_ALONE = (coverage.command, operators.command)
for _each in (*_ALONE, *library.COMMANDS, *proving.COMMANDS):
    command.add_command(_each)
command.add_command(_GENERATE.load() if has_laboratory() else _generate)
