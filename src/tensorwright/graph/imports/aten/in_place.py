"""Operators that write into their operand, as operators that return a new tensor.

A tensor and its views share their elements.  A write changes the written tensor, the tensor that
it is a view of, and all other views of that one.  Each of them that a later node reads is computed
again:

    y = x[0]; y.mul_(2); x + 1    ->    y1 = x[0] * 2; x1 = x with y1 in the place of row 0; x1 + 1
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tensorwright.base import DType
from tensorwright.expr import Fn
from tensorwright.graph.imports.aten.record import Node
from tensorwright.graph.imports.call import Call
from tensorwright.graph.imports.converters.movement import swapped
from tensorwright.graph.imports.converters.parts import replaced
from tensorwright.graph.imports.size_terms import Ratio, SizeTerms, Term, index_of, term_of

_RESHAPES = frozenset({"view", "_unsafe_view", "unsqueeze", "squeeze", "unflatten", "view_as"})
_TURNS = frozenset(
    {"transpose", "t", "permute", "swapaxes", "movedim", "moveaxis", "mT", "numpy_T"}
)
_PARTS = frozenset({"select", "slice", "narrow"})
_SAME = frozenset({"detach", "alias", "positive", "lift_fresh"})
MAYBE = frozenset({"reshape", "flatten", "contiguous", "to", "reshape_as", "type_as"})
"""Operators that return a view of some tensors and a copy of others."""
VIEWS = (
    _RESHAPES
    | _TURNS
    | _PARTS
    | _SAME
    | MAYBE
    | frozenset(
        "expand expand_as broadcast_to split split_with_sizes chunk unbind diagonal unfold dropout "
        "feature_dropout".split()
    )
)
"""Operators whose results share elements with their operand `self`."""


def written_through(operator: str, call: Call, part: str, whole: str) -> str:
    """The tensor `whole` after a write to `part`, the view of it that the operator of `call` made.

    Raises:  UnsupportedError for an operator that cannot be inverted.
    """
    if operator in _SAME:
        return part
    if operator in _RESHAPES:
        return call.add("reshape", part, shape=call.sizes(whole))
    rank = call.rank(whole)
    if operator == "permute":
        perm = [axis % rank for axis in call.integers("dims")]
        return call.add("transpose", part, perm=tuple(perm.index(axis) for axis in range(rank)))
    if operator in ("transpose", "swapaxes", "t", "mT", "numpy_T"):
        return swapped(call, part)
    if operator in _PARTS:
        axis = call.axis(rank, default=0)
        extent = call.sizes(whole)[axis]
        start = call.size("index" if operator == "select" else "start", 0)
        if isinstance(start, int) and start < 0:
            start = start + extent
        if operator == "select":
            part = call.add("unsqueeze", part, axes=(axis,))
        if call.integer("step", 1) != 1:
            raise call.unsupported("it writes into every second element")
        return replaced(call, whole, part, axis, start, start + call.sizes(part)[axis])
    raise call.unsupported(f"a later node writes into the result of {operator}")


@dataclass(frozen=True, slots=True)
class View:
    """A value that is a view: the first output of a node that reads the whole."""

    operator: str
    whole: str
    node: Node


class Views:
    """The values that share elements; mutable, for one import."""

    def __init__(self, last_read: Mapping[str, int]) -> None:
        self._views: dict[str, View] = {}
        self._last_read = last_read

    def add(self, name: str, view: View) -> None:
        """Note that a value is a view."""
        self._views[name] = view

    def of(self, name: str) -> View | None:
        """The view that a value is; None if it owns its elements."""
        return self._views.get(name)

    def chain(self, name: str) -> tuple[str, ...]:
        """A value, the value that it is a view of, and so on to the owner of the elements."""
        names = [name]
        while (view := self._views.get(names[-1])) is not None:
            names.append(view.whole)
        return tuple(names)

    def read_later(self, name: str, at: int) -> tuple[str, ...]:
        """The values that share elements with one and that nodes after `at` read.

        The values between them and the owner are among them; a view comes after its whole.
        """
        owner = self.chain(name)[-1]
        group = [owner, *(each for each in self._views if self.chain(each)[-1] == owner)]
        read = [each for each in group if each != name and self._last_read.get(each, -1) > at]
        needed = {each for part in read for each in self.chain(part)} - {name}
        return tuple(each for each in group if each in needed)

    def are_certain(self, names: Sequence[str]) -> bool:
        """Whether all operators between these values and their owner make views, never copies."""
        edges = {part for name in names for part in self.chain(name)[:-1]}
        return all(self._views[part].operator not in MAYBE for part in edges)


_TERMS = SizeTerms()


def _is_whole(term: Term) -> bool:
    return isinstance(term, int) or (isinstance(term, Ratio) and term.divisor == 1)


def _apply(fn: Fn, *terms: Term) -> Term:
    """A function of integers; of floats if one of them is not an integer."""
    dtype = DType.I64 if all(map(_is_whole, terms)) else DType.F64
    return _TERMS.apply(fn, terms, dtype)


def _divided(left: Term, right: Term) -> Term:
    return _TERMS.apply(Fn.DIV, (left, right), DType.F64)


def _floor_divided(left: Term, right: Term) -> Term:
    if all(map(_is_whole, (left, right))):
        return term_of(index_of(left) // index_of(right))
    return _rounded(Fn.FLOOR, _divided(left, right))


def _rounded(fn: Fn, term: Term) -> Term:
    if _is_whole(term):
        return term
    rounded = _TERMS.apply(fn, (term,), DType.F64)
    return rounded if isinstance(rounded, Ratio) else int(rounded)


def _power(base: Term, exponent: Term) -> Term:
    if isinstance(base, Ratio) and isinstance(exponent, int):
        power: Term = base
        for _ in range(exponent - 1):
            power = _apply(Fn.MUL, power, base)
        return power
    return base**exponent  # type: ignore[operator]


def _swapped(fn: Fn, left: Term, right: Term) -> Term:
    return _apply(fn, right, left)


def _same(term: Term) -> Term:
    return term


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "_operator.add": partial(_apply, Fn.ADD),
    "_operator.sub": partial(_apply, Fn.SUB),
    "_operator.mul": partial(_apply, Fn.MUL),
    "_operator.neg": partial(_apply, Fn.NEG),
    "_operator.mod": partial(_apply, Fn.FLOORMOD),
    "_operator.floordiv": _floor_divided,
    "_operator.truediv": _divided,
    "_operator.pow": _power,
    "_operator.lt": partial(_apply, Fn.LT),
    "_operator.le": partial(_apply, Fn.LE),
    "_operator.eq": partial(_apply, Fn.EQ),
    "_operator.ne": partial(_apply, Fn.NE),
    "_operator.gt": partial(_swapped, Fn.LT),
    "_operator.ge": partial(_swapped, Fn.LE),
    "_operator.and_": lambda left, right: left and right,
    "_operator.or_": lambda left, right: left or right,
    "math.floor": partial(_rounded, Fn.FLOOR),
    "math.ceil": partial(_rounded, Fn.CEIL),
    "math.trunc": partial(_rounded, Fn.TRUNC),
    "torch.sym_int": partial(_rounded, Fn.TRUNC),
    "torch.sym_float": _same,
    "torch.sym_max": partial(_apply, Fn.MAX),
    "torch.sym_min": partial(_apply, Fn.MIN),
    "torch.sym_not": lambda value: not value,
    "torch.sym_ite": lambda condition, then, otherwise: then if condition else otherwise,
}


_OF_NUMBERS: Mapping[str, Callable[..., Any]] = {
    **_OPERATIONS,
    **{f"_operator.{name}": function for name, function in vars(operator).items()},
    **{f"math.{name}": function for name, function in vars(math).items()},
    "torch.sym_int": int,
    "torch.sym_float": float,
    "torch.sym_max": max,
    "torch.sym_min": min,
}
"""What Python computes of numbers alone."""


def is_arithmetic(target: str) -> bool:
    """Whether a target computes numbers."""
    return target in _OPERATIONS


def computed(target: str, terms: tuple[Term, ...]) -> Term:
    """The result of a target."""
    are_sizes = any(isinstance(each, Ratio) for each in terms)
    operation = _OPERATIONS[target] if are_sizes else _OF_NUMBERS[target]
    result: Term = operation(*terms)
    return result
