"""`tensorwright rules`: list, prove, check and explain rules."""

from __future__ import annotations

import click

from tensorwright.base import LaboratoryPart, has_laboratory
from tensorwright.cli.rules import library, proving

_OF_LABORATORY = {
    name: LaboratoryPart(f"command rules {name}", f"{folder}.command", f"{word}_command")
    for name, folder, word in (
        ("generate", "rule_generation", "generate"),
        ("axioms", "axiom_checks", "axioms"),
        ("suggest-axioms", "axiom_checks", "suggest"),
    )
}


class _Group(click.Group):
    """The commands for rules, and those of the laboratory if it is installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = super().list_commands(ctx)
        return sorted([*names, *_OF_LABORATORY]) if has_laboratory() else names

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return a command.

        Raises:  MachineError for a command of the laboratory if that is not installed.
        """
        if name in _OF_LABORATORY:
            command: click.Command = _OF_LABORATORY[name].load()
            return command
        return super().get_command(ctx, name)


@click.group(cls=_Group)
def command() -> None:
    """Generate, prove, explain and check rules: which graphs of operators compute the same."""


for _each in (library.command, *library.COMMANDS, *proving.COMMANDS):
    command.add_command(_each)
