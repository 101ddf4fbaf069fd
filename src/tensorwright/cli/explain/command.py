"""`tensorwright explain`: print a section of the page of errors.

The page is the file `cli/explain/errors.md` of the package; `docs/errors.md` is a link to it.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from tensorwright.base import UsageError, did_you_mean

PAGE = Path(__file__).with_name("errors.md")
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_BOLD = re.compile(r"\*\*(\w+)\*\*")
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
        told = title + " " + " ".join(_BOLD.findall(text))
        if kind.lower() in re.findall(r"\w+", told.lower()):
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
    """The texts of the sections of the page by their titles, such as "ModelError: 3"."""
    parts = _SECTION.split(PAGE.read_text())
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def _linked(link: re.Match[str]) -> str:
    """A link as text for a terminal: its words, and the page to which it leads."""
    words, page = link.groups()
    return words if page.startswith("#") else f"{words} (docs/{page})"
