"""Sizes that are integers or integer polynomials over the extents of a rule's inputs.

    parse_size("x.1 + x.1")               2*x.1, a Dim over Extent("x", 1)
    Dim.of(Extent("x", 1)) + 1 - 1         x.1: equal polynomials are equal objects
    value_of(2*x.1, {Extent("x", 1): 3})    6

Grammar
    Size ::= int | Dim
    Dim  ::= a sum of coefficient * product of atoms
    Atom ::= Extent(name, axis)              `x.1`, the extent of input ?x along dimension 1
           | Extent(name, -1, variable)      `x._axis`, along the one that a parameter names
           | Extent(variable, 0)             `_n`, a parameter variable that is a number
           | Quotient(size, divisor)         `(x.2 + 1) // 2`, rounded down; divisor a Size >= 1

Arithmetic keeps a normal form: equal polynomials are equal objects, and a Dim without atoms is an
int.  Quotients are opaque: equal only where their parts are, once multiples of a divisor that is a
number are taken out of them: (x.2 - 1) // 2 is (x.2 + 1) // 2 - 1.  Extents are at least 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias


class Extent(NamedTuple):
    """The extent of an input along one dimension.

    name       of the input; of a parameter variable, whose number it is, with an underscore
    variable   the parameter variable that says along which dimension; "" where `axis` does
    """

    name: str
    axis: int
    variable: str = ""

    def __str__(self) -> str:
        if self.name.startswith("_"):
            return self.name
        return f"{self.name}.{self.variable or self.axis}"


@dataclass(frozen=True, slots=True)
class Quotient:
    """`numerator // divisor`, rounded down."""

    numerator: Size
    divisor: Size

    def __str__(self) -> str:
        below = str(self.divisor)
        below = f"({below})" if "*" in below or " " in below else below
        return f"{_wrapped(self.numerator)} // {below}"


Atom: TypeAlias = "Extent | Quotient"
Monomial: TypeAlias = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Dim:
    """A polynomial: sorted (product of atoms, coefficient) pairs; the empty product is a number.

    Build it with arithmetic on `Dim.of(atom)`, not by hand.
    """

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(atom: Atom) -> Dim:
        """The polynomial that is one atom."""
        return Dim((((atom,), 1),))

    def __add__(self, other: Size) -> Size:
        if other == 0:
            return self
        total = dict(self.terms)
        for monomial, factor in _terms(other):
            total[monomial] = total.get(monomial, 0) + factor
        return _normal(total)

    def __radd__(self, other: int) -> Size:
        return self + other

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):
            return _scaled(self, other)
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                product = _product(left, right)
                total[product] = total.get(product, 0) + a * b
        return _normal(total)

    def __rmul__(self, other: int) -> Size:
        return self * other

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + other * -1

    def __rsub__(self, other: int) -> Size:
        return -self + other

    def __floordiv__(self, other: Size) -> Size:
        exact = _exact_quotient(self, other)
        if exact is not None:
            return exact
        if not isinstance(other, int):
            return Dim.of(Quotient(self, other))
        whole, rest = _divided(self, other)
        if isinstance(rest, int):
            return whole + rest // other
        inner, more = _quotient_and_number(rest)
        if inner is not None and isinstance(inner.divisor, int):  # (n // 2 + 1) // 3: (n + 2) // 6
            return whole + (inner.numerator + more * inner.divisor) // (inner.divisor * other)
        return whole + Dim.of(Quotient(rest, other))

    def __rfloordiv__(self, other: int) -> Size:
        return 0 if other == 0 else Dim.of(Quotient(other, self))

    def __str__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {_term_text(monomial, abs(factor), is_negative=factor < 0)}"
        return text[3:] if text.startswith(" + ") else "-" + text[3:]


Size: TypeAlias = int | Dim
Shape: TypeAlias = tuple[Size, ...]


def _terms(size: Size) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, Dim):
        return size.terms
    return (((), size),) if size else ()


def _scaled(size: Dim, number: int) -> Size:
    """A multiple: the order of the terms stays."""
    if number in (0, 1):
        return size if number else 0
    return Dim(tuple((monomial, factor * number) for monomial, factor in size.terms))


@lru_cache(maxsize=1 << 16)
def _product(left: Monomial, right: Monomial) -> Monomial:
    return tuple(sorted((*left, *right), key=str))


@lru_cache(maxsize=1 << 16)
def _order(monomial: Monomial) -> tuple[bool, int, tuple[str, ...]]:
    """Short products before long ones, the number last."""
    return not monomial, len(monomial), tuple(map(str, monomial))


def _normal(total: Mapping[Monomial, int]) -> Size:
    kept = [(monomial, factor) for monomial, factor in total.items() if factor]
    if len(kept) > 1:
        kept.sort(key=lambda pair: _order(pair[0]))
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Dim(tuple(kept))


def _exact_quotient(size: Dim, divisor: Size) -> Size | None:
    """The polynomial quotient, where dividing by a number or one product leaves nothing over."""
    parts = _terms(divisor)
    if len(parts) != 1:
        return 1 if size == divisor else None
    (below, number), total = parts[0], {}
    for monomial, factor in size.terms:
        rest = list(monomial)
        for atom in below:
            if atom not in rest:
                return None
            rest.remove(atom)
        if factor % number:
            return None
        total[tuple(rest)] = factor // number
    return _normal(total)


def _divided(size: Dim, divisor: int) -> tuple[Size, Size]:
    """The multiple of a number in a size, and the rest, whose factors are below the number."""
    whole = {monomial: factor // divisor for monomial, factor in size.terms}
    rest = {monomial: factor % divisor for monomial, factor in size.terms}
    return _normal(whole), _normal(rest)


def _quotient_and_number(size: Dim) -> tuple[Quotient | None, int]:
    """The quotient and the number whose sum a size is; None where it is no such."""
    (monomial, factor), *others = size.terms
    if factor != 1 or len(monomial) != 1 or any(rest for rest, _ in others):
        return None, 0
    (atom,) = monomial
    return (atom if isinstance(atom, Quotient) else None), sum(number for _, number in others)


def _wrapped(size: Size) -> str:
    text = str(size)
    return f"({text})" if " " in text or text.startswith("-") else text


def _term_text(monomial: Monomial, factor: int, *, is_negative: bool) -> str:
    if not monomial:
        return str(factor)
    is_alone = len(monomial) == 1 and factor == 1 and not is_negative
    names = [
        f"({atom})" if isinstance(atom, Quotient) and not is_alone else str(atom)
        for atom in monomial
    ]
    return "*".join(names if factor == 1 else [str(factor), *names])


def atoms_of(size: Size) -> tuple[Extent, ...]:
    """The extents that a size depends on, each once."""
    found: dict[Extent, None] = {}
    for monomial, _ in _terms(size):
        for atom in monomial:
            if isinstance(atom, Extent):
                found.setdefault(atom)
            else:
                for inner in (*atoms_of(atom.numerator), *atoms_of(atom.divisor)):
                    found.setdefault(inner)
    return tuple(found)


def value_of(size: Size, extents: Mapping[Extent, Size]) -> Size:
    """The size with extents replaced by sizes; an int where all of them are ints.

    Raises:  KeyError for an extent that is not given.
    """
    total: Size = 0
    for monomial, factor in _terms(size):
        product: Size = factor
        for atom in monomial:
            if isinstance(atom, Extent):
                product = product * extents[atom]
            else:
                below = value_of(atom.divisor, extents)
                product = product * (value_of(atom.numerator, extents) // below)
        total = total + product
    return total


def resized(size: Size, sizes: Callable[[Extent], Size]) -> Size:
    """The size with each extent replaced by what a function says."""
    return value_of(size, {extent: sizes(extent) for extent in atoms_of(size)})


_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*\.(?:\d+|_\w+)|_\w+|//|[-+*()])")


def parse_size(text: str) -> Size:
    """Read what `str` of a size prints.

    Raises:  ValueError that names the place.
    """
    tokens: list[str] = []
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"{text!r} is no size: {text[place:].strip()!r} is not understood")
        tokens.append(match.group(1))
        place = match.end()
    size, rest = _read_sum(tokens)
    if rest:
        raise ValueError(f"{text!r} is no size: {rest[0]!r} is left over")
    return size


def _read_sum(tokens: list[str]) -> tuple[Size, list[str]]:
    total, rest = _read_product(tokens)
    while rest and rest[0] in "+-":
        sign = 1 if rest[0] == "+" else -1
        part, rest = _read_product(rest[1:])
        total = total + part * sign
    return total, rest


def _read_product(tokens: list[str]) -> tuple[Size, list[str]]:
    total, rest = _read_atom(tokens)
    while rest and rest[0] in ("*", "//"):
        operation = rest[0]
        part, rest = _read_atom(rest[1:])
        if operation == "//" and part == 0:
            raise ValueError("a size has a division by zero")
        total = total * part if operation == "*" else total // part
    return total, rest


def _read_atom(tokens: list[str]) -> tuple[Size, list[str]]:
    if not tokens:
        raise ValueError("a size ends too early")
    first, rest = tokens[0], tokens[1:]
    if first == "-":
        size, rest = _read_atom(rest)
        return -size, rest
    if first == "(":
        size, rest = _read_sum(rest)
        if rest[:1] != [")"]:
            raise ValueError("a bracket of a size is not closed")
        return size, rest[1:]
    if first.isdigit():
        return int(first), rest
    if first.startswith("_") and "." not in first:
        return Dim.of(Extent(first, 0)), rest
    if "." not in first:
        raise ValueError(f"{first!r} is no extent; extents are written x.0")
    name, axis = first.split(".")
    return Dim.of(Extent(name, int(axis)) if axis.isdigit() else Extent(name, -1, axis)), rest
