"""What the doctor says about one thing."""

from __future__ import annotations

from dataclasses import dataclass

import click

_NAME = 15


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one thing.

    remedy      what to do if the thing is missing; "" if there is nothing to do
    is_needed   whether tensorwright does not work without the thing
    """

    name: str
    text: str
    remedy: str = ""
    is_needed: bool = False

    def print(self) -> None:
        """Print the name, the finding, and what to do."""
        lines = self.text.splitlines() or [""]
        click.echo(f"{self.name:{_NAME}} {lines[0]}")
        for line in lines[1:]:
            click.echo(f"{'':{_NAME}} {line}")
        if self.remedy:
            word = "needed" if self.is_needed else "optional"
            click.echo(f"{'':{_NAME}} {word}; try: {self.remedy}")
