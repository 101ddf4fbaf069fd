"""Names, shapes and functions that a person gives, checked before anything is made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tensorwright.expr.index.nodes import Index, IndexExpr, Symbol
from tensorwright.expr.index.traversal import atoms_of
from tensorwright.expr.symbolic import Symbolic, noun_of, refused

_SELECT = "fold over the largest extent: sum_over(select(k < i + 1, x[k], 0.0), k)"


def checked_name(kind: str, name: object) -> str:
    """A name.  Raises: ExpressionError for what is not a text, or blank."""
    if not isinstance(name, str) or not name.strip():
        raise refused(f"{kind} {name!r}", "its name is not a text, or blank", 'give a name: "x"')
    return name


def checked_shape(where: str, shape: object) -> tuple[Index, ...]:
    """The extents of a shape.

    Raises: ExpressionError for one that is not a sequence of extents.
    """
    if isinstance(shape, str | Symbolic) or not isinstance(shape, Iterable):
        remedy = f"one extent is written ({shape},)" if isinstance(shape, int) else "write (4, 8)"
        raise refused(where, f"its shape {shape!r} is not a sequence of extents", remedy)
    return tuple(checked_extent(where, extent) for extent in shape)


def checked_extent(where: str, extent: Any) -> Index:
    """How many values an axis takes: 0 or more.

    Raises: ExpressionError for anything else.
    """
    if isinstance(extent, IndexExpr):
        if not all(isinstance(atom, Symbol) for atom in atoms_of(extent)):
            raise refused(where, f"the extent {extent} changes from element to element", _SELECT)
        return extent
    is_number = isinstance(extent, int | np.integer) and not isinstance(extent, bool)
    if not is_number:
        reason = f"{noun_of(extent)} is not an extent"
        raise refused(where, reason, "an extent is an int: how many values an axis takes")
    if extent < 0:
        reason = f"an extent is {extent}, and none is negative"
        raise refused(where, reason, "give a number of 0 or more")
    return int(extent)


def parameter_names(where: str, body: Callable[..., object], count: int) -> tuple[str, ...]:
    """The names of the parameters of a body, which takes one for each dimension.

    Raises: ExpressionError for what cannot be called, or takes another number.
    """
    if not callable(body):
        raise refused(where, f"its body is {noun_of(body)} not a function", "lambda i, j: x[i, j]")
    try:
        listed = inspect.signature(body).parameters.values()
    except ValueError as error:
        raise refused(where, f"its body {body!r} does not tell its parameters") from error
    parameters = tuple(p for p in listed if p.default is inspect.Parameter.empty)
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return tuple(f"i{n}" for n in range(count))
    if len(parameters) != count:
        reason = f"a body for {count} dimensions takes {count} parameters, not {len(parameters)}"
        raise refused(where, reason, "give it one parameter for each extent of the shape")
    return tuple(p.name for p in parameters)


def checked_names(where: str, names: Sequence[str], count: int) -> tuple[str, ...]:
    """Names of axes, one for each dimension.  Raises: ExpressionError."""
    if len(names) != count:
        reason = f"{len(names)} names {tuple(names)} for {count} dimensions"
        raise refused(where, reason, "give one for each extent of the shape")
    return tuple(checked_name(f"{where}: axis", name) for name in names)
