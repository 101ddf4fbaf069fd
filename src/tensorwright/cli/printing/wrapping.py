"""Wrap prose between words at the width of a terminal; lines for a file or a pipe stay whole."""

from __future__ import annotations

import shutil
import sys
import textwrap

import click

_REMEDY = "  try: "
_COMMAND = f"{_REMEDY}tensorwright "


def echo_prose(text: str, *, err: bool = False) -> None:
    """Print lines of prose, wrapped if the stream is a terminal."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = wrap_prose(text, shutil.get_terminal_size().columns)
    click.echo(text, err=err)


def wrap_prose(text: str, columns: int) -> str:
    """Wrap each line of prose; continued lines are indented.

    Indented lines stay as they are, because they are drawings or commands to copy. A remedy in
    words is indented, too, but it is wrapped.
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
