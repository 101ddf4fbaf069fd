"""Products with constant matrices, written out: no loop, no zero, no one, shared parts once.

Of the rows of a matrix that differ only in signs, the terms of equal and those of opposite sign
are summed apart, and of columns that differ only in signs, the terms are paired; code generators
then find the same sums in several rows:
    d4 - 4 d2 + (d3 - 4 d1)   and   d4 - 4 d2 - (d3 - 4 d1)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tensorwright.base import DType
from tensorwright.expr import Index, Relation, Value, compare, constant, select
from tensorwright.schedule.algorithms.toom_cook import Matrix


def row_of_product(matrix: Matrix, row: Index, column: Callable[[int], Value]) -> Value:
    """(matrix v)[row], where v[j] is `column(j)`; which row may be a variable."""
    values = [_combination(matrix, number, column) for number in range(len(matrix))]
    return _chosen(row, values)


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


def _combination(matrix: Matrix, row: int, column: Callable[[int], Value]) -> Value:
    numbers = matrix[row]
    partner = _partner(matrix, row)
    if partner is not None:
        first, second = min(row, partner), max(row, partner)
        agree = [j for j, a in enumerate(matrix[first]) if a and a == matrix[second][j]]
        differ = [j for j, a in enumerate(matrix[first]) if a and a != matrix[second][j]]
        left = _sum([(matrix[first][j], column(j)) for j in agree])
        right = _sum([(matrix[first][j], column(j)) for j in differ])
        return left + right if row == first else left - right
    columns = tuple(zip(*matrix, strict=True))
    terms: list[tuple[Fraction, Value]] = []
    used: set[int] = set()
    for j, number in enumerate(numbers):
        if not number or j in used:
            continue
        twin = _partner(columns, j)
        if twin is None:
            terms.append((number, column(j)))
            continue
        used.add(twin)
        both = column(j) + column(twin) if numbers[twin] == number else column(j) - column(twin)
        terms.append((number, both))
    return _sum(terms)


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
