"""`tensorwright explain`: the page of errors, a section at a time, without a network.

The page is a file of the package, `cli/explain/errors.md`; `docs/errors.md` is a copy of it.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from tensorwright.base import UsageError, did_you_mean

PAGE = Path(__file__).with_name("errors.md")
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")


@click.command()
@click.argument("kind", metavar="KIND|CODE")
def command(kind: str) -> None:
    """Say what a kind of error means: its cause, what to do, an example.

    KIND is what a message begins with; CODE is the exit code of a command.

    Example: tensorwright explain ModelError
    """
    sections = read_sections()
    for title, text in sections.items():
        if kind.lower() in re.findall(r"\w+", title.lower()):
            click.echo(f"{title}\n\n{_LINK.sub(_linked, text).replace('**', '')}")
            return
    kinds = [title.partition(":")[0] for title in sections]
    raise UsageError(
        stage="explain",
        where=f"kind {kind!r}",
        reason="there is no such kind of error, and no such exit code",
        remedy=did_you_mean(kind, kinds, "one of " + ", ".join(kinds[:-1])),
    )


def read_sections() -> dict[str, str]:
    """The sections of the page: title, "ModelError: 3", and text."""
    parts = _SECTION.split(PAGE.read_text())
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def _linked(link: re.Match[str]) -> str:
    """A link for a terminal: its words, and the page that it leads to."""
    words, page = link.groups()
    return words if page.startswith("#") else f"{words} (docs/{page})"
