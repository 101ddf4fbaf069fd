"""`tensorwright rules operators`: list the operators of rules."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from tensorwright.rewriting import operators

_COLUMNS = 80
_LETTERS = {
    operators.ArgumentRole.TENSOR: "xyzt",
    operators.ArgumentRole.NUMBER: "c",
    operators.ArgumentRole.KERNEL: "w",
    operators.ArgumentRole.VARIANCE: "v",
}


@click.command("operators")
def command() -> None:
    """List the operators of rules: parameters in brackets, then arguments.

    The top of tensorwright/rewriting/operators/__init__.py says what each operator means.

    Example: tensorwright rules operators
    """
    for operator in operators.OPERATORS:
        click.echo(textwrap.fill(signature(operator), _COLUMNS, subsequent_indent=" " * 8))
        for parameter in operator.parameters:
            values = _values(parameter)
            if values:
                click.echo(f"    {parameter.name}: {values}")
    click.echo(
        "?c is a number, as a tensor of rank 0; ?w a kernel; ?v is not negative.\n"
        "A parameter before ... may be repeated; a number may be a size, x.1 + y.1.\n"
        "A name that begins with _ instead of a parameter stands for any value."
    )


def signature(operator: operators.RewriteOperator) -> str:
    """How an operator is written: `conv2d[stride_h, stride_w, padding, activation](?x, ?w)`."""
    names = [f"{each.name}{', ...' * each.repeats}" for each in operator.parameters]
    params = f"[{', '.join(names)}]" if names else ""
    return f"{operator.name}{params}({', '.join(_arguments(operator))})"


def _arguments(operator: operators.RewriteOperator) -> Iterator[str]:
    left = {role: iter(letters) for role, letters in _LETTERS.items()}
    return (f"?{next(left[role])}" for role in operator.arguments)


def _values(parameter: operators.Parameter) -> str:
    """The words that a parameter may be, or examples of them; "" if it is a number."""
    if parameter.form and not parameter.words:
        first = parameter.samples[0]
        return f"a number as a word: {operators.number_of_word(first)} is {first}"
    like = f"words like {parameter.samples[0]}" if parameter.samples else ""
    return ", ".join(filter(None, (*parameter.words, like)))
