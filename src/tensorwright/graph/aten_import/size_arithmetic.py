"""Nodes of an exported graph whose results are numbers that it computes from sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tensorwright.base import DType
from tensorwright.expr import Fn
from tensorwright.graph.onnx_import.size_terms import Ratio, SizeTerms, Term, index_of, term_of

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


def is_arithmetic(target: str) -> bool:
    """Whether a target computes numbers."""
    return target in _OPERATIONS


def computed(target: str, terms: tuple[Term, ...]) -> Term:
    """The result of a target.

    Raises:  UnsupportedError if the bounds of the sizes do not decide it; TypeError if a term is
             not computed from sizes.
    """
    result: Term = _OPERATIONS[target](*terms)
    return result
