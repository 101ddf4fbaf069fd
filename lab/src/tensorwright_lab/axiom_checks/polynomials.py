"""Elements of symbolic tensors in normal form: polynomials over the rationals.

    (x + y) * (x + y)                 x*x + 2*x*y + y*y
    x / y * y                         x, by exponents 1 and -1 of y
    max(max(x, y), x)                 the set {x, y}

Atoms are elements of inputs, and functions of polynomials (`tanh(...)`).  Equal polynomials are
equal values; exponents may be negative, so that x / y = x * (1 / y); exp of a sum is a product;
max of max is one set.  Values that are equal only by deeper laws have different normal forms, so
different forms do not prove a difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import isinf
from typing import Any, TypeAlias

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Array, Fn

Monomial: TypeAlias = tuple[tuple[int, int], ...]
"""Atoms by number, ascending, with their exponents."""


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial: monomials with coefficients that are not zero; infinities stand alone."""

    terms: dict[Monomial, int | Fraction]
    infinite: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Poly):
            return NotImplemented
        return self.infinite == other.infinite and self.terms == other.terms

    def __hash__(self) -> int:
        return hash((self.infinite, frozenset(self.terms.items())))


@dataclass(slots=True)
class Polynomials:
    """The term language of polynomials for `SymbolicDomain`; it numbers the atoms that it meets."""

    _numbers: dict[object, int] = field(default_factory=dict)
    _maxima: dict[Poly, tuple[Poly, ...]] = field(default_factory=dict)

    def atom(self, key: object) -> Poly:
        """The polynomial that is one atom; equal keys are the same atom."""
        return Poly({((self._number(key), 1),): 1})

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def inputs(self, name: str, shape: tuple[int, ...]) -> Array:
        """A tensor of atoms, one for each element."""
        result = np.empty(shape, np.dtype(object))
        for index in np.ndindex(shape):
            result[index] = self.atom((name, index))
        return result

    def const(self, value: float | int | bool, dtype: DType) -> Poly:
        """A number; one that is nearly a simple fraction is that fraction."""
        if isinstance(value, float) and isinf(value):
            return Poly({}, 1 if value > 0 else -1)
        exact = Fraction(value).limit_denominator(10**6)
        if float(exact) != float(value):
            exact = Fraction(value)
        number: int | Fraction = exact.numerator if exact.denominator == 1 else exact
        return Poly({(): number} if number else {})

    def integer(self, term: Any) -> int:
        """The number that a term is; raises TypeError for another term."""
        value = _constant(term)
        if not isinstance(value, int):
            raise TypeError(f"{term} is not an integer")
        return value

    def apply(self, fn: Fn, args: tuple[Any, ...], dtype: DType) -> Any:
        """A function of polynomials."""
        match fn:
            case Fn.ADD:
                return _add(args[0], args[1], 1)
            case Fn.SUB:
                return _add(args[0], args[1], -1)
            case Fn.NEG:
                return _scaled(args[0], -1)
            case Fn.MUL:
                return _product(args[0], args[1])
            case Fn.DIV:
                return _product(args[0], self._inverse(args[1]))
            case Fn.MAX:
                return self._greatest(args)
            case Fn.MIN:
                return _scaled(self._greatest(tuple(_scaled(each, -1) for each in args)), -1)
            case Fn.ABS:
                return self._greatest((args[0], _scaled(args[0], -1)))
            case Fn.LT | Fn.LE | Fn.EQ:
                return self._comparison(fn, *args)
            case Fn.EXP:
                return self._exp(args[0])
            case Fn.TANH if not args[0].terms:
                return args[0]
            case _:
                return self.atom((fn, args))

    def select(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """A choice; an atom where the condition is not known."""
        decided = _constant(condition)
        if decided is not None:
            return then if decided else otherwise
        return then if then == otherwise else self.atom(("select", condition, then, otherwise))

    def cast(self, term: Any, source: DType, target: DType) -> Any:
        """Numbers stay what they are."""
        return term

    def _comparison(self, fn: Fn, left: Poly, right: Poly) -> Poly:
        """1 or 0 where the difference is a number; else an atom."""
        gap = None if left.infinite or right.infinite else _constant(_add(left, right, -1))
        if gap is None:
            return self.atom((fn, (left, right)))
        holds = gap < 0 if fn is Fn.LT else gap <= 0 if fn is Fn.LE else gap == 0
        return Poly({(): 1} if holds else {})

    def _inverse(self, poly: Poly) -> Poly:
        if len(poly.terms) == 1:
            ((monomial, factor),) = poly.terms.items()
            return Poly({tuple((atom, -power) for atom, power in monomial): _over(factor)})
        return self.atom(("inverse", poly))

    def _exp(self, poly: Poly) -> Poly:
        result = Poly({(): 1})
        for monomial, factor in poly.terms.items():
            whole = isinstance(factor, int)
            key = ("exp", monomial, 1 if whole else factor)
            power = factor if isinstance(factor, int) else 1
            result = _product(result, Poly({((self._number(key), power),): 1}))
        return result

    def _greatest(self, args: tuple[Poly, ...]) -> Poly:
        """max of a set: nested ones flat, numbers joined, minus infinity left out."""
        parts: dict[Poly, None] = {}
        for arg in args:
            parts |= dict.fromkeys(self._maxima.get(arg, (arg,)))
        numbers = [value for part in parts if (value := _constant(part)) is not None]
        kept = [part for part in parts if part.infinite >= 0 and _constant(part) is None]
        if numbers:
            best = max(numbers)
            kept.append(Poly({(): best} if best else {}))
        if not kept:
            return Poly({}, -1)
        if len(kept) == 1:
            return kept[0]
        result = self.atom(("max", frozenset(kept)))
        self._maxima[result] = tuple(kept)
        return result


def _over(factor: int | Fraction) -> int | Fraction:
    result = Fraction(1) / factor
    return result.numerator if result.denominator == 1 else result


def _constant(poly: Poly) -> int | Fraction | None:
    if poly.infinite or any(poly.terms.keys() - {()}):
        return None
    return poly.terms.get((), 0)


def _finite(*polys: Poly) -> None:
    if any(poly.infinite for poly in polys):
        raise ArithmeticError("arithmetic with an infinite number")


def _add(left: Poly, right: Poly, sign: int) -> Poly:
    _finite(left, right)
    total = dict(left.terms)
    for monomial, factor in right.terms.items():
        value = total.get(monomial, 0) + sign * factor
        if value:
            total[monomial] = value
        else:
            del total[monomial]
    return Poly(total)


def _scaled(poly: Poly, factor: int) -> Poly:
    if poly.infinite:
        return Poly({}, poly.infinite * (1 if factor > 0 else -1))
    return Poly({monomial: value * factor for monomial, value in poly.terms.items()})


def _product(left: Poly, right: Poly) -> Poly:
    _finite(left, right)
    total: dict[Monomial, int | Fraction] = {}
    for one, a in left.terms.items():
        for other, b in right.terms.items():
            monomial = _joined(one, other)
            value = total.get(monomial, 0) + a * b
            total[monomial] = value
    return Poly({monomial: value for monomial, value in total.items() if value})


def _joined(one: Monomial, other: Monomial) -> Monomial:
    if not one:
        return other
    if not other:
        return one
    powers = dict(one)
    for atom, power in other:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted((atom, power) for atom, power in powers.items() if power))
