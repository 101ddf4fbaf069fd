"""Products with constant matrices, written out without loops, zeros and ones; shared parts once.

Rows of a matrix that differ only in signs sum their terms of equal sign and those of opposite sign
separately. Columns that differ only in signs pair their terms. Code generators then find the same
sums in several rows:
    d4 - 4 d2 + (d3 - 4 d1)   and   d4 - 4 d2 - (d3 - 4 d1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tensorwright.base import DType
from tensorwright.expr import Index, Relation, Value, compare, constant, select
from tensorwright.schedule.algorithms.toom_cook import Matrix


def row_of_product(matrix: Matrix, row: Index, column: Callable[[int], Value]) -> Value:
    """(matrix v)[row], where v[j] is `column(j)`; `row` may be a variable."""
    return _chosen(row, [each.value(column) for each in _rows(matrix)])


def entry(matrix: Matrix, row: Index, column: Index, dtype: DType) -> Value:
    """matrix[row, column], both of which may be variables."""
    rows = [
        _chosen(column, [constant(float(number), dtype) for number in numbers])
        for numbers in matrix
    ]
    return _chosen(row, rows)


def _chosen(position: Index, values: list[Value]) -> Value:
    """values[position] as a chain of selections."""
    *first, chosen = values
    for number in range(len(first) - 1, -1, -1):
        chosen = select(compare(Relation.EQ, position, number), first[number], chosen)
    return chosen


@dataclass(frozen=True, slots=True)
class _Term:
    """A number times a column, or times the sum or the difference of two."""

    number: Fraction
    column: int
    other: int | None = None
    is_difference: bool = False

    def value(self, column: Callable[[int], Value]) -> Value:
        """The factor of the number."""
        if self.other is None:
            return column(self.column)
        first, second = column(self.column), column(self.other)
        return first - second if self.is_difference else first + second


@dataclass(frozen=True, slots=True)
class _Row:
    """How a row is summed: left, or left + right, or left - right."""

    left: tuple[_Term, ...]
    right: tuple[_Term, ...] = ()
    is_difference: bool = False

    def value(self, column: Callable[[int], Value]) -> Value:
        left = _sum([(term.number, term.value(column)) for term in self.left])
        if not self.right:
            return left
        right = _sum([(term.number, term.value(column)) for term in self.right])
        return left - right if self.is_difference else left + right


@lru_cache(maxsize=64)
def _rows(matrix: Matrix) -> tuple[_Row, ...]:
    """How each row of a matrix is summed."""
    return tuple(_row(matrix, number) for number in range(len(matrix)))


def _row(matrix: Matrix, row: int) -> _Row:
    numbers = matrix[row]
    partner = _partner(matrix, row)
    if partner is not None:
        first, second = matrix[min(row, partner)], matrix[max(row, partner)]
        agree = tuple(_Term(a, j) for j, a in enumerate(first) if a and a == second[j])
        differ = tuple(_Term(a, j) for j, a in enumerate(first) if a and a != second[j])
        return _Row(agree, differ, is_difference=row > partner)
    columns = tuple(zip(*matrix, strict=True))
    terms: list[_Term] = []
    used: set[int] = set()
    for j, number in enumerate(numbers):
        if not number or j in used:
            continue
        twin = _partner(columns, j)
        if twin is not None:
            used.add(twin)
        terms.append(_Term(number, j, twin, twin is not None and numbers[twin] != number))
    return _Row(tuple(terms))


def _partner(matrix: Matrix, row: int) -> int | None:
    """Another row with the same numbers, some but not all of opposite sign."""
    for other, numbers in enumerate(matrix):
        pairs = [(a, b) for a, b in zip(matrix[row], numbers, strict=True) if a or b]
        same = all(abs(a) == abs(b) for a, b in pairs)
        if same and any(a != b for a, b in pairs) and any(a == b for a, b in pairs):
            return other
    return None


def _sum(terms: list[tuple[Fraction, Value]]) -> Value:
    """The sum of numbers times values; those that are added first, so that nothing is negated."""
    ordered = sorted(terms, key=lambda term: (term[0] < 0, abs(term[0]) != 1))
    number, total = ordered[0]
    if number != 1:
        total = total * float(number)
    for number, value in ordered[1:]:
        term = value if abs(number) == 1 else value * float(abs(number))
        total = total + term if number > 0 else total - term
    return total
