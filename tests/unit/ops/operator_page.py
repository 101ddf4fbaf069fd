"""The page of all operators, written from their records."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.ops.operator import Attribute, Operator

_OPENING = """\
# Operators

This page is generated from the records in `src/tensorwright/ops`: `make golden` writes it.
You may leave out an input with `?`. A `*` stands for one or more inputs. An attribute without a
default is required. The pattern says how an element of the result depends on the inputs. Opaque
operators have no tensor expression; they run as loop algorithms, or in NumPy.
"""


def operator_page(operators: Sequence[Operator]) -> str:
    """A Markdown page with one row per operator, in alphabetical order."""
    rows = ["| operator | inputs | attributes | pattern | what it gives |", "|---|---|---|---|---|"]
    rows += [_row(each) for each in sorted(operators, key=lambda each: each.name)]
    return _OPENING + "\n" + "\n".join(rows) + "\n"


def _row(each: Operator) -> str:
    attributes = "<br>".join(_attribute(attribute) for attribute in each.attributes)
    inputs = ", ".join(each.inputs)
    cells = (f"`{each.name}`", inputs, attributes, each.pattern.value, each.doc)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _attribute(attribute: Attribute) -> str:
    if attribute.default is None:
        return f"`{attribute.name}`: {attribute.doc}"

    return f"`{attribute.name}={attribute.default}`: {attribute.doc}"
