"""What the doctor says about one thing."""

from __future__ import annotations

from dataclasses import dataclass

import click

_NAME = 15


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `remedy` says what to do if something is missing; "" if all is well."""

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
            word = "missing" if self.is_needed else "optional"
            click.echo(f"{'':{_NAME}} {word}; try: {self.remedy}")
