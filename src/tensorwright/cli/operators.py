"""`tensorwright operators`: list the operators of graphs, which `GraphBuilder.add` takes."""

from __future__ import annotations

import textwrap

import click

from tensorwright.ops import OPERATORS, Operator

_COLUMNS = 80


@click.command()
def command() -> None:
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
