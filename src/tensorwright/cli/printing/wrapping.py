"""Prose on a terminal: wrapped by words at its width; in a file or a pipe a line stays a line."""

from __future__ import annotations

import shutil
import sys
import textwrap

import click

_REMEDY = "  try: "
_COMMAND = f"{_REMEDY}tensorwright "


def echo_prose(text: str, *, err: bool = False) -> None:
    """Print lines of prose, wrapped where the stream is a terminal."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = wrap_prose(text, shutil.get_terminal_size().columns)
    click.echo(text, err=err)


def wrap_prose(text: str, columns: int) -> str:
    """Wrap each line of prose; what goes on is indented.

    Lines that are indented stay as they are: they are drawn, or stand there to be copied. A remedy
    in words is prose.
    """
    return "\n".join(_wrapped(line, columns) for line in text.splitlines())


def _wrapped(line: str, columns: int) -> str:
    is_remedy = line.startswith(_REMEDY) and not line.startswith(_COMMAND)
    if line.startswith(" ") and not is_remedy:
        return line
    return textwrap.fill(
        line,
        columns,
        subsequent_indent=" " * (len(_REMEDY) if is_remedy else 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
