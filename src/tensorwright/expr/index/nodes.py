"""Index expressions: exact integers over loop variables, decisions and named sizes.

Conditions are here, too: a comparison is of two indices, and `<` of two indices makes one.

Grammar
    e ::= int | Var | Symbol | Poly | ExactDiv(e, e) | FloorDiv(e, e) | Mod(e, e)
        | Min(e, e) | Max(e, e) | Element(source, (e, ...))
    c ::= bool | Compare(<, <=, ==, !=; e, e) | And(c, ...) | Or(c, ...) | Not(c)

Semantics.  Integers are unbounded.  A `Symbol` is a positive integer that is given before the
program runs: a search chooses a `Decision`, and a caller gives a size (`sizes.py`).  A `Var` gets
its range from a `Bounds` table, never from the node.  Division rounds towards minus infinity and
the modulus has the sign of the divisor, as in Python; the divisor is positive. `ExactDiv(a, b)`
states that b divides a. `Element(source, indices)` reads an integer tensor (a gather); it is opaque
to the simplifier.

Normal form.  Sums of products are one `Poly`: sorted monomials of atoms with integer coefficients,
the constant under the empty monomial.  Expressions of sizes alone are compared more often than
computed: their quotients by a number keep no multiple of that number.  A plain `int` is itself an
expression, so the arithmetic operators are the constructors. Nodes are immutable, and equal nodes
are one object however they were written (`Interned`): they compare and hash by identity. `i == j`
is a condition in the body of a `compute` only (`Symbolic`); so the functions of this module ask
`is_same`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import gcd
from typing import Any, ClassVar, TypeAlias, TypeGuard

import numpy as np

from tensorwright.base import ExpressionError, OpenSize
from tensorwright.expr.symbolic import STAGE, Interned, Symbolic, as_number, noun_of, refused

_REMEMBERED = 1 << 15  # results of each operation
_MOST_FACTORS = 8


class IndexExpr(Interned, Symbolic, OpenSize):
    """Base of every index node that is not a plain int: carries the arithmetic operators.

    Another operand that is not an index (an axis of a tensor) decides the operation itself. A node
    keeps values derived from it: its key for sorting in a monomial, the atoms below it, and the
    variables among these.
    """

    __slots__ = ("_atoms", "_free", "_key")

    noun = "an index"
    as_value = (
        "indices have + - * // % **, minimum and maximum, with integers; cast(i, DType.F32) makes "
        "a value of one"
    )

    @property
    def is_size(self) -> bool:
        """Whether it consists of sizes and numbers alone."""
        return all(map(is_size, parts_of(self)))

    _key: str
    _atoms: tuple[IndexExpr, ...]
    _free: frozenset[Var]

    def __add__(self, other: object) -> Index:
        return _add(self, other) if _is_index(other) else _other_answers(self, other)

    __radd__ = __add__

    def __sub__(self, other: object) -> Index:
        return _add(self, _multiply(other, -1)) if _is_index(other) else _other_answers(self, other)

    def __rsub__(self, other: object) -> Index:
        return _add(other, _multiply(self, -1)) if _is_index(other) else _other_answers(self, other)

    def __mul__(self, other: object) -> Index:
        return _multiply(self, other) if _is_index(other) else _other_answers(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return _multiply(self, -1)

    def __pos__(self) -> Index:
        return self

    def __abs__(self) -> Index:
        return maximum(self, -self)

    def __pow__(self, exponent: object) -> Index:
        if not isinstance(exponent, int) or not 0 <= exponent <= _MOST_FACTORS:
            reason = f"an index is raised to a number from 0 to {_MOST_FACTORS}"
            raise refused(f"({self}) ** {exponent}", reason, self.as_value)
        power: Index = 1
        for _ in range(exponent):
            power = _multiply(power, self)
        return power

    def __truediv__(self, other: object) -> Index:
        raise refused(f"({self}) / {other}", "an index is an integer", "// rounds down")

    def __rtruediv__(self, other: object) -> Index:
        raise refused(f"{other} / ({self})", "an index is an integer", "// rounds down")

    def __floordiv__(self, other: object) -> Index:
        return floor_div(self, other) if _is_index(other) else _other_answers(self, other)

    def __rfloordiv__(self, other: object) -> Index:
        return floor_div(other, self) if _is_index(other) else _other_answers(self, other)

    def __mod__(self, other: object) -> Index:
        return mod(self, other) if _is_index(other) else _other_answers(self, other)

    def __rmod__(self, other: object) -> Index:
        return mod(other, self) if _is_index(other) else _other_answers(self, other)

    def __lt__(self, other: object) -> Condition:
        return (
            compare(Relation.LT, self, other) if _is_index(other) else _other_answers(self, other)
        )

    def __le__(self, other: object) -> Condition:
        return (
            compare(Relation.LE, self, other) if _is_index(other) else _other_answers(self, other)
        )

    def __gt__(self, other: object) -> Condition:
        return (
            compare(Relation.LT, other, self) if _is_index(other) else _other_answers(self, other)
        )

    def __ge__(self, other: object) -> Condition:
        return (
            compare(Relation.LE, other, self) if _is_index(other) else _other_answers(self, other)
        )

    def compares(self, sign: str, other: object) -> Any:
        """A condition; an operand that is not an index decides itself."""
        number = as_number(other)
        if isinstance(number, int):
            return compare(Relation(sign), self, number)
        if isinstance(other, IndexExpr):
            return compare(Relation(sign), self, other)
        return _other_answers(self, other)


Index: TypeAlias = int | IndexExpr


def _other_answers(index: IndexExpr, other: object) -> Any:
    """Leave an operator to the other operand, unless that one cannot take indices."""
    if isinstance(other, (Symbolic, np.ndarray)) or isinstance(as_number(other), int):
        return NotImplemented
    reason = f"{noun_of(other)} meets an index, which takes integers and indices"
    raise refused(index, reason, index.as_value)


def _is_index(operand: object) -> TypeGuard[Index]:
    return isinstance(operand, (int, IndexExpr))


def is_same(left: Index, right: Index) -> bool:
    """Whether two expressions are the same one, also where `==` makes a condition."""
    return left is right or (isinstance(left, int) and isinstance(right, int) and left == right)


def _as_index(operand: Any) -> Index:
    """An index from an index, an axis, or an integer of NumPy."""
    if isinstance(operand, (int, IndexExpr)):
        return operand
    if isinstance(operand, np.integer):
        return int(operand)
    var = getattr(operand, "var", None)
    if isinstance(var, Var):
        return var
    raise refused(noun_of(operand), "it is not an index", IndexExpr.as_value)


Monomial: TypeAlias = tuple[IndexExpr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Var(IndexExpr):
    """A loop variable; equal names are the same variable."""

    name: str

    @property
    def is_size(self) -> bool:
        """It moves with a loop."""
        return False

    def __str__(self) -> str:
        return self.name


class Symbol(IndexExpr):
    """Base of the named positive integers that are given before the program runs.

    is_choice      whether a search chooses it; else it is an extent of a tensor, a size
    least, most    what it may be; None where there is no greatest number
    """

    __slots__ = ()

    is_choice: ClassVar[bool] = False

    @property
    def is_size(self) -> bool:
        """Whether it is an extent of a tensor."""
        return not self.is_choice

    @property
    def least(self) -> int:
        """The least number that it may be."""
        return 1

    @property
    def most(self) -> int | None:
        """The greatest number that it may be, or None."""
        return None

    def times(self, factor: int) -> tuple[int, str]:
        """How a multiple is written: another factor, and a text."""
        return factor, str(self)


@dataclass(frozen=True, slots=True, eq=False)
class Decision(Symbol):
    """A named positive integer that a search binds (a tile size, an unroll depth)."""

    name: str

    is_choice: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Poly(IndexExpr):
    """A sum of monomials with integer coefficients, in sorted order; built by the operators."""

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        if is_size(self):
            return _size_text(self.terms)
        text = ""
        for monomial, coefficient in self.terms:
            factors = [_atom_text(atom) for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.append(str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {'*'.join(factors)}" if text or sign == "-" else "*".join(factors)
        return text.strip() if not text.startswith(" - ") else "-" + text[3:]


@dataclass(frozen=True, slots=True, eq=False)
class ExactDiv(IndexExpr):
    """a / b where b divides a; cancels against b in products."""

    dividend: Index
    divisor: Index

    def __str__(self) -> str:
        return _division_text(self, "/")


@dataclass(frozen=True, slots=True, eq=False)
class FloorDiv(IndexExpr):
    """floor(a / b) for b > 0."""

    dividend: Index
    divisor: Index

    def __str__(self) -> str:
        return _division_text(self, "//")


@dataclass(frozen=True, slots=True, eq=False)
class Mod(IndexExpr):
    """a - b * floor(a / b) for b > 0."""

    dividend: Index
    divisor: Index

    def __str__(self) -> str:
        return _division_text(self, "%")


@dataclass(frozen=True, slots=True, eq=False)
class Min(IndexExpr):
    """The smaller of two."""

    left: Index
    right: Index

    def __str__(self) -> str:
        return f"min({self.left}, {self.right})"


@dataclass(frozen=True, slots=True, eq=False)
class Max(IndexExpr):
    """The larger of two."""

    left: Index
    right: Index

    def __str__(self) -> str:
        return f"max({self.left}, {self.right})"


@dataclass(frozen=True, slots=True, eq=False)
class Element(IndexExpr):
    """An element of an integer tensor used as an index; `source` is a Tensor or a Buffer."""

    source: Any  # Tensor | Buffer: the index language is below both stages
    indices: tuple[Index, ...]

    @property
    def is_size(self) -> bool:
        """Data decide what it is."""
        return False

    def __str__(self) -> str:
        return f"{self.source.name}[{', '.join(map(str, self.indices))}]"


class Relation(Enum):
    """The comparisons of the index sort; the other two are these with swapped sides."""

    __hash__ = object.__hash__  # a member is one object; Enum hashes its name, each time in Python

    LT = "<"
    LE = "<="
    EQ = "=="
    NE = "!="


class Logic(Interned, Symbolic):
    """Base of the conditions that are not plain bools."""

    __slots__ = ()

    noun = "a condition on indices"
    as_value = (
        "all_of(a, b), any_of(a, b) and negate(a) join conditions, select(a, 1.0, value) makes a "
        "value of one"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Logic):
    """A comparison of two index expressions."""

    relation: Relation
    left: Index
    right: Index

    def __str__(self) -> str:
        return f"{self.left} {self.relation.value} {self.right}"


@dataclass(frozen=True, slots=True, eq=False)
class And(Logic):
    """All of the parts; build with `all_of`."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Or(Logic):
    """Any of the parts; build with `any_of`."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({p})" if isinstance(p, And) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Not(Logic):
    """The negation; build with `negate`."""

    part: Condition

    def __str__(self) -> str:
        return f"not ({self.part})"


Condition: TypeAlias = bool | Compare | And | Or | Not


def compare(relation: Relation, left: Index, right: Index) -> Condition:
    """Compare two index expressions; decided at once when the difference is a constant."""
    left, right = _as_index(left), _as_index(right)
    difference = left - right
    if not isinstance(difference, int):
        return Compare(relation, left, right)
    match relation:
        case Relation.LT:
            return difference < 0
        case Relation.LE:
            return difference <= 0
        case Relation.EQ:
            return difference == 0
        case Relation.NE:
            return difference != 0


@lru_cache(maxsize=_REMEMBERED)
def exact_div(dividend: Index, divisor: Index) -> Index:
    """Divide where the caller knows that there is no remainder.

    Raises: ValueError if both are ints and the division is not exact.
    """
    if isinstance(divisor, int) and isinstance(dividend, int):
        if dividend % divisor:
            raise ValueError(f"{divisor} does not divide {dividend}")
        return dividend // divisor
    if is_same(divisor, 1):
        return dividend
    if is_same(dividend, divisor):
        return 1
    quotient, remainder = divide_terms(dividend, divisor)
    return quotient if is_same(remainder, 0) else ExactDiv(dividend, divisor)


@lru_cache(maxsize=_REMEMBERED)
def floor_div(dividend: Index, divisor: Index) -> Index:
    """floor(dividend / divisor), simplified as far as is true without any bounds.

    Raises: ExpressionError for a divisor that is not positive.
    """
    dividend, divisor = _as_index(dividend), _as_index(divisor)
    if isinstance(divisor, int):
        _require_positive(f"({dividend}) // {divisor}", divisor)
        if isinstance(dividend, int):
            return dividend // divisor
    elif _varies(divisor):  # i // i is 1, but for i = 0
        return FloorDiv(dividend, divisor)
    if is_same(divisor, 1):
        return dividend
    quotient, remainder = divide_terms(dividend, divisor)
    if is_same(remainder, 0):
        return quotient
    if is_same(remainder, -1):
        return quotient - 1
    if isinstance(divisor, int) and is_size(remainder):
        return quotient + _floor_div_of_sizes(remainder, divisor)
    if isinstance(remainder, FloorDiv):  # (a // b) // c = a // (b*c)
        return quotient + floor_div(remainder.dividend, _multiply(remainder.divisor, divisor))
    return quotient + _reduced_floor_div(remainder, divisor)


def _floor_div_of_sizes(dividend: Index, divisor: int) -> Index:
    """The quotient of an expression of sizes by a number, in a nearly unique form.

    Rewrite:  (3*n - m + 5) // 2    ->  n - m + 2 + (n + m + 1) // 2
              (n // 2 + 1) // 3     ->  (n + 2) // 6
    """
    terms = terms_of(dividend)
    whole = _build({monomial: scale // divisor for monomial, scale in terms})
    rest = _build({monomial: scale % divisor for monomial, scale in terms})
    (monomial, scale), *others = terms_of(rest) or (((), 0),)
    if scale == 1 and len(monomial) == 1 and not any(more for more, _ in others):
        (inner,) = monomial
        if isinstance(inner, FloorDiv) and (not others or isinstance(inner.divisor, int)):
            number = sum(scale for _, scale in others)
            dividend = _add(inner.dividend, _multiply(inner.divisor, number))
            return _add(whole, floor_div(dividend, _multiply(inner.divisor, divisor)))
    return _add(whole, _reduced_floor_div(rest, divisor))


def _reduced_floor_div(dividend: Index, divisor: Index) -> Index:
    """Cancel a common integer factor: (g*a + r) // (g*b) = (a + r//g) // b for 0 <= r < g."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor
    if isinstance(divisor, int) and isinstance(dividend, Poly):
        common = divisor
        for monomial, coefficient in dividend.terms:
            if monomial:
                common = gcd(common, coefficient)
        if common > 1:
            scaled: dict[Monomial, int] = {}
            for monomial, coefficient in dividend.terms:
                scaled[monomial] = coefficient // common
            return floor_div(_build(scaled), divisor // common)
    return FloorDiv(dividend, divisor)


@lru_cache(maxsize=_REMEMBERED)
def mod(dividend: Index, divisor: Index) -> Index:
    """dividend modulo divisor, simplified as far as is true without any bounds.

    Raises: ExpressionError for a divisor that is not positive.
    """
    dividend, divisor = _as_index(dividend), _as_index(divisor)
    if isinstance(divisor, int):
        _require_positive(f"({dividend}) % {divisor}", divisor)
        if isinstance(dividend, int):
            return dividend % divisor
    elif _varies(divisor):
        return Mod(dividend, divisor)
    if is_same(divisor, 1):
        return 0
    _, remainder = divide_terms(dividend, divisor)
    if isinstance(divisor, int) and is_size(remainder):
        remainder = _build({monomial: scale % divisor for monomial, scale in terms_of(remainder)})
    if isinstance(remainder, int) and isinstance(divisor, int):
        return remainder % divisor
    if is_same(remainder, 0):
        return 0
    if is_same(remainder, -1):
        return divisor - 1
    if isinstance(remainder, Mod) and is_same(remainder.divisor, divisor):
        return remainder
    return Mod(remainder, divisor)


def parts_of(expression: Index) -> tuple[Index, ...]:
    """The operands of an index expression; none of a number or a variable."""
    match expression:
        case Poly(terms):
            return tuple(atom for monomial, _ in terms for atom in monomial)
        case int() | Var() | Symbol():
            return ()
        case ExactDiv(a, b) | FloorDiv(a, b) | Mod(a, b) | Min(a, b) | Max(a, b):
            return (a, b)
        case Element(_, indices):
            return indices
    raise TypeError(f"not an index expression: {expression!r}")


def is_size(expression: Index) -> bool:
    """Whether an expression consists of sizes and numbers alone."""
    return isinstance(expression, int) or expression.is_size


def _varies(expression: Index) -> bool:
    """Whether variables or elements are in an expression, so that it may be 0."""
    return isinstance(expression, (Var, Element)) or any(map(_varies, parts_of(expression)))


class DivisorError(ExpressionError, ZeroDivisionError):
    """The divisor of an index is not positive. It is a ZeroDivisionError, too, as in Python."""


def _require_positive(where: str, divisor: int) -> None:
    if divisor <= 0:
        reason = f"an index is divided by a positive number, not by {divisor}"
        raise DivisorError(stage=STAGE, where=where, reason=reason)


def ceil_div(dividend: Index, divisor: Index) -> Index:
    """ceil(dividend / divisor)."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return -(-dividend // divisor)
    quotient, remainder = divide_terms(dividend, divisor)
    if is_same(remainder, 0):
        return quotient
    return floor_div(dividend + (divisor - 1), divisor)


def minimum(left: Index, right: Index) -> Index:
    """The smaller of two; decided at once when the difference is a constant."""
    left, right = _as_index(left), _as_index(right)
    difference = left - right
    if isinstance(difference, int):
        return left if difference <= 0 else right
    return Min(left, right)


def maximum(left: Index, right: Index) -> Index:
    """The larger of two; decided at once when the difference is a constant."""
    left, right = _as_index(left), _as_index(right)
    difference = left - right
    if isinstance(difference, int):
        return left if difference >= 0 else right
    return Max(left, right)


def terms_of(expression: Index) -> tuple[tuple[Monomial, int], ...]:
    """The monomials of an expression with coefficients; the constant has the empty monomial."""
    if isinstance(expression, Poly):
        return expression.terms
    if isinstance(expression, int):
        return (((), expression),) if expression else ()
    return (((expression,), 1),)


@lru_cache(maxsize=_REMEMBERED)
def divide_terms(dividend: Index, divisor: Index) -> tuple[Index, Index]:
    """Split `dividend` into (q, r) with dividend = q*divisor + r, by terms that divide evenly.

    The constant term contributes its floor quotient when the divisor is an int, so r's constant is
    in [0, divisor).
    """
    if isinstance(divisor, Poly) and len(divisor.terms) > 1:
        return (1, 0) if is_same(dividend, divisor) else (0, dividend)
    ((over, scale),) = tuple(terms_of(divisor))
    quotient: dict[Monomial, int] = {}
    remainder: dict[Monomial, int] = {}
    for monomial, coefficient in terms_of(dividend):
        rest = _without(monomial, over)
        if rest is not None and coefficient % scale == 0:
            quotient[rest] = quotient.get(rest, 0) + coefficient // scale
        elif not monomial and not over:
            quotient[()] = quotient.get((), 0) + coefficient // scale
            remainder[()] = coefficient % scale
        else:
            remainder[monomial] = coefficient
    return _build(quotient), _build(remainder)


def of_terms(terms: Iterable[tuple[Monomial, int]]) -> Index:
    """The sum of monomials, each a different one, with coefficients."""
    return _build(dict(terms))


def sum_of(parts: Iterable[Index]) -> Index:
    """The sum of many expressions, put in order once."""
    total: dict[Monomial, int] = {}
    for part in parts:
        for monomial, coefficient in terms_of(part):
            total[monomial] = total.get(monomial, 0) + coefficient
    return _build(total)


@lru_cache(maxsize=_REMEMBERED)
def _add(left: Index, right: Index) -> Index:
    if isinstance(left, int):
        if isinstance(right, int):
            return left + right
        left, right = right, left
    if isinstance(right, int):
        if right == 0:
            return left
        if isinstance(left, Poly):  # the constant is the last term
            terms = left.terms
            if terms[-1][0]:
                return Poly((*terms, ((), right)))
            total = terms[-1][1] + right
            return Poly((*terms[:-1], ((), total))) if total else _of_sorted(terms[:-1])
        return Poly((((left,), 1), ((), right)))
    return sum_of((left, right))


def _of_sorted(terms: tuple[tuple[Monomial, int], ...]) -> Index:
    """Terms that are sorted, none zero, as an expression; at least one."""
    if len(terms) == 1:
        monomial, coefficient = terms[0]
        if not monomial:
            return coefficient
        if coefficient == 1 and len(monomial) == 1:
            return monomial[0]
    return Poly(terms)


@lru_cache(maxsize=_REMEMBERED)
def _multiply(left: Index, right: Index) -> Index:
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    if is_same(left, 0) or is_same(right, 0):
        return 0
    if isinstance(left, int):
        left, right = right, left
    if isinstance(right, int):
        if right == 1:
            return left
        return _of_sorted(tuple((m, c * right) for m, c in terms_of(left)))
    total: dict[Monomial, int] = {}
    extra: Index = 0
    for left_monomial, left_coefficient in terms_of(left):
        for right_monomial, right_coefficient in terms_of(right):
            coefficient = left_coefficient * right_coefficient
            product = tuple(sorted(left_monomial + right_monomial, key=_sort_key))
            cancelled = _cancel_exact(product)
            if cancelled is None:
                total[product] = total.get(product, 0) + coefficient
            else:
                extra = _add(extra, _multiply(cancelled, coefficient))
    return _add(_build(total), extra)


def _cancel_exact(monomial: Monomial) -> Index | None:
    """(a / b) * b -> a inside one monomial, or None when nothing cancels."""
    for position, atom in enumerate(monomial):
        if isinstance(atom, ExactDiv):
            others = monomial[:position] + monomial[position + 1 :]
            divisor = tuple(terms_of(atom.divisor))
            if len(divisor) == 1 and divisor[0][1] == 1:
                rest = _without(others, divisor[0][0])
                if rest is not None:
                    return _multiply(_build({rest: 1}), atom.dividend)
    return None


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """`monomial` divided by `factors`, or None when they do not all occur."""
    if not factors:
        return monomial
    rest = list(monomial)
    for factor in factors:
        at = next((n for n, each in enumerate(rest) if each is factor), None)
        if at is None:
            return None
        del rest[at]
    return tuple(rest)


def _build(terms: dict[Monomial, int]) -> Index:
    kept = [(monomial, coefficient) for monomial, coefficient in terms.items() if coefficient]
    if not kept:
        return 0
    if len(kept) == 1:
        monomial, coefficient = kept[0]
        if not monomial:
            return coefficient
        if coefficient == 1 and len(monomial) == 1:
            return monomial[0]
    kept.sort(key=_term_key)
    return Poly(tuple(kept))


def _term_key(term: tuple[Monomial, int]) -> tuple[bool, int, list[str]]:
    return _monomial_key(term[0])


@lru_cache(maxsize=_REMEMBERED)
def _monomial_key(monomial: Monomial) -> tuple[bool, int, list[str]]:
    """The constant goes last; of products of sizes, short ones come first."""
    length = len(monomial) if all(map(is_size, monomial)) else 0
    return not monomial, length, [_sort_key(atom) for atom in monomial]


def _sort_key(atom: IndexExpr) -> str:
    try:
        return atom._key
    except AttributeError:
        object.__setattr__(atom, "_key", str(atom))
        return atom._key


def _atom_text(expression: Index) -> str:
    if isinstance(expression, (int, Var, Symbol, Min, Max, Element)):
        return str(expression)
    return f"({expression})"


def _division_text(division: ExactDiv | FloorDiv | Mod, sign: str) -> str:
    if not is_size(division):
        return f"{_atom_text(division.dividend)}{sign}{_atom_text(division.divisor)}"
    above, below = str(division.dividend), str(division.divisor)
    above = f"({above})" if " " in above or above.startswith("-") else above
    below = f"({below})" if " " in below or "*" in below else below
    return f"{above} {sign} {below}"


def _size_text(terms: tuple[tuple[Monomial, int], ...]) -> str:
    """A sum of sizes as `parse_size` reads it: 2*n*m - n // 2 + 1."""
    text = ""
    for monomial, scale in terms:
        factor, factors = abs(scale), []
        for atom in monomial:
            is_quotient = isinstance(atom, (ExactDiv, FloorDiv, Mod))
            is_alone = len(monomial) == 1 and scale == 1
            written = f"({atom})" if is_quotient and not is_alone else str(atom)
            if isinstance(atom, Symbol):
                factor, written = atom.times(factor)
            factors.append(written)
        if factor != 1 or not factors:
            factors.insert(0, str(factor))
        text += f" {'-' if scale < 0 else '+'} {'*'.join(factors)}"
    return text[3:] if text.startswith(" + ") else "-" + text[3:]
