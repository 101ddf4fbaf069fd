"""Commands that show what there is: settings, operators, kinds of errors.

The page of errors is the file `errors.md` beside this one; `docs/errors.md` is a link to it.
"""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path
from typing import Any

import click

from tensorwright.base import KNOBS, Knob, UsageError, did_you_mean
from tensorwright.ops import OPERATORS, Operator


@click.command()
def knobs() -> None:
    """List the settings: the environment variable, its value here, what it means.

    Example: tensorwright knobs
    """
    width = max(len(knob.variable) for knob in KNOBS)
    for knob in KNOBS:
        mark = "set" if os.environ.get(knob.variable) else "default"
        click.echo(f"{knob.variable:{width}}  {format_value(knob)} ({mark})")
        click.echo(f"{'':{width}}  {knob.doc}")


def format_value(knob: Knob[Any]) -> str:
    """The present value of a knob, as a person would write it."""
    value = knob.get()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, frozenset):
        return ",".join(sorted(value)) or "none"
    return "none" if value is None else str(value)


_COLUMNS = 80


@click.command()
def operators() -> None:
    """List the operators of graphs: inputs, attributes with defaults, results.

    An input with ? may be left out, * stands for one or more; an attribute without = is required.
    docs/operators.md says what each attribute means. `tensorwright rules operators` lists the
    operators of rules.

    Example: tensorwright operators
    """
    for operator in sorted(OPERATORS, key=lambda each: each.name):
        click.echo(textwrap.fill(signature(operator), _COLUMNS, subsequent_indent=" " * 8))
        click.echo(textwrap.indent(textwrap.fill(operator.doc, _COLUMNS - 4), " " * 4))


def signature(operator: Operator) -> str:
    """How an operator is called: `conv(x, w, bias?, strides=(), pads=(), ...)`."""
    attributes = [
        each.name if each.default is None else f"{each.name}={each.default!r}"
        for each in operator.attributes
    ]
    return f"{operator.name}({', '.join((*operator.inputs, *attributes))})"


PAGE = Path(__file__).with_name("errors.md")
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_BOLD = re.compile(r"\*\*(\w+)\*\*")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")


@click.command()
@click.argument("kind", metavar="KIND|CODE")
def explain(kind: str) -> None:
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
