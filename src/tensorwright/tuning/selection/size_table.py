"""Which trace runs for which sizes: a table over some numbers of each size.

    lines      of each size, the numbers at which the table has an entry
    cells      an entry for every combination of these; it is for all sizes that are nearest to it
    tuned      the best trace of each combination for which the workload was tuned
    exact      those of these combinations whose trace gets a program that holds for nothing else

A table is filled from traces that were tuned for points.  Between them the time model says which of
the neighbours' traces runs, and the untuned trace stays where none is expected to be faster.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, product
from math import isqrt, prod
from operator import itemgetter
from typing import Protocol, TypeAlias

from tensorwright.expr import NamedSize
from tensorwright.schedule import OpenSchedule, Schedule, SizedTrace, SizeRange, Trace

_LEAST_GAIN = 0.03  # of the predicted time: what a choice that was not measured must gain
_FAR = 4  # times as large: between nearer neighbours a table has no entry
_MOST_CELLS = 24  # between points: each asks for prices

Numbers: TypeAlias = tuple[int, ...]


class Prices(Protocol):
    """What a trace is expected to take for some sizes, in seconds; None where that is not known."""

    def alone(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        """By a program for these sizes only."""

    def opened(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        """By a program for all sizes."""


@dataclass(frozen=True, slots=True)
class TunedTrace:
    """The best trace for some sizes for which a workload was tuned.

    opens         whether it has a form that holds for all sizes
    is_measured   whether it is on record there; otherwise it is the untuned trace for these sizes
    """

    values: Mapping[str, int]
    trace: Trace
    opens: bool
    is_measured: bool = True


@dataclass(frozen=True, slots=True)
class SizeTable:
    """As above; combinations are numbers in the order of `lines`, and all tuples are sorted."""

    lines: tuple[tuple[str, Numbers], ...]
    cells: tuple[tuple[Numbers, Trace], ...]
    tuned: tuple[tuple[Numbers, Trace], ...] = ()
    exact: tuple[Numbers, ...] = ()

    @classmethod
    def of_one(cls, trace: Trace) -> SizeTable:
        """The table of a trace that runs for all sizes."""
        return cls((), (((), trace),))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sizes."""
        return tuple(name for name, _ in self.lines)

    def cell_of(self, values: Mapping[str, int]) -> Numbers:
        """The cell of some sizes."""
        return tuple(
            numbers[sum(values[name] >= border for border in _borders(numbers))]
            for name, numbers in self.lines
        )

    def at(self, values: Mapping[str, int]) -> Trace:
        """The trace that runs for some sizes."""
        own = self._numbers(values)
        return (
            dict(self.tuned)[own] if own in self.exact else dict(self.cells)[self.cell_of(values)]
        )

    def tuned_at(self, values: Mapping[str, int]) -> Trace | None:
        """The trace for some sizes for which the workload was tuned; None for others."""
        return dict(self.tuned).get(self._numbers(values))

    def with_cell(self, values: Mapping[str, int], trace: Trace) -> SizeTable:
        """The table with another trace in the cell of some sizes.

        If the cell is that of a combination for which the workload was tuned, and the sizes are
        others, this combination keeps its trace by a program of its own.
        """
        cell, own = self.cell_of(values), self._numbers(values)
        cells = {**dict(self.cells), cell: trace}
        table = replace(self, cells=tuple(sorted(cells.items(), key=itemgetter(0))))
        return table if cell == own else table._with_exact(cell)

    def with_exact(self, values: Mapping[str, int]) -> SizeTable:
        """The table with a program of its own for some sizes for which it was tuned."""
        return self._with_exact(self._numbers(values))

    def _with_exact(self, numbers: Numbers) -> SizeTable:
        if numbers not in dict(self.tuned):
            return self
        return replace(self, exact=tuple(sorted({*self.exact, numbers})))

    def without_exact(self, values: Mapping[str, int] | None = None) -> SizeTable:
        """The table without a program of its own for some sizes, or for any where None."""
        own = None if values is None else self._numbers(values)
        kept = () if own is None else tuple(each for each in self.exact if each != own)
        return replace(self, exact=kept)

    def _numbers(self, values: Mapping[str, int]) -> Numbers:
        return tuple(values[name] for name in self.names)

    @property
    def schedule(self) -> Schedule:
        """The traces with their ranges; the trace of most cells comes last, for all the rest."""
        usual = Counter(trace for _, trace in self.cells).most_common(1)[0][0]
        tuned = dict(self.tuned)
        variants = [
            SizedTrace(tuple(map(SizeRange, self.names, numbers, numbers)), tuned[numbers])
            for numbers in self.exact
        ]
        variants += [each for each in self._boxes() if each.trace != usual]
        return OpenSchedule((*variants, SizedTrace((), usual))) if variants else usual

    def _boxes(self) -> list[SizedTrace]:
        """The cells; neighbours along the last size with the same trace are one."""
        boxes: list[SizedTrace] = []
        for _, row in groupby(self.cells, key=lambda cell: cell[0][:-1]):
            for trace, run in groupby(row, key=lambda cell: cell[1]):
                numbers = [each[0] for each in run]
                ranges = map(self._range, range(len(self.lines)), numbers[0], numbers[-1])
                boxes.append(SizedTrace(tuple(filter(None, ranges)), trace))
        return boxes

    def _range(self, position: int, first: int, last: int) -> SizeRange | None:
        """What a size is in the cells from one number to another; None where it may be anything."""
        name, numbers = self.lines[position]
        borders = _borders(numbers)
        low = 1 if first == numbers[0] else borders[numbers.index(first) - 1]
        high = None if last == numbers[-1] else borders[numbers.index(last)] - 1
        return None if low == 1 and high is None else SizeRange(name, low, high)


def _borders(numbers: Numbers) -> list[int]:
    """Where the next number is nearer than the one before, on a logarithmic scale."""
    return [isqrt(low * high - 1) + 1 for low, high in pairwise(numbers)]


def filled_table(
    sizes: Sequence[NamedSize], tuned: Sequence[TunedTrace], untuned: Trace, prices: Prices
) -> SizeTable:
    """The table of a workload with some sizes.

    tuned     at least one, each for other numbers
    untuned   the trace that holds for all sizes
    prices    by the time model
    """
    names = sorted(size.name for size in sizes)
    by_numbers = {tuple(each.values[name] for name in names): each for each in tuned}
    ordered = sorted(sizes, key=lambda size: size.name)
    lines = _lines(ordered, list(by_numbers))
    cells: dict[Numbers, Trace] = {}
    exact: list[Numbers] = []
    every = list(product(*(numbers for _, numbers in lines)))
    for numbers in every:
        values = dict(zip(names, numbers, strict=True))
        own = by_numbers.get(numbers)
        if own is not None and own.is_measured and own.opens:
            cells[numbers] = own.trace
        elif own is not None:
            cells[numbers] = _cheapest([own], untuned, values, prices)
        else:
            near = _nearest(numbers, by_numbers, 2 if len(names) == 1 else 1)
            cells[numbers] = _cheapest(near, untuned, values, prices)
        if names and own is not None and _is_better_alone(own, cells[numbers], values, prices):
            exact.append(numbers)
    best = [(numbers, by_numbers[numbers].trace) for numbers in sorted(by_numbers)]
    return SizeTable(lines, tuple(cells.items()), tuple(best), tuple(exact))


def _lines(
    sizes: Sequence[NamedSize], points: Sequence[Numbers]
) -> tuple[tuple[str, Numbers], ...]:
    """The numbers of each size that points have, with the ends of its bounds and the means of
    neighbours, as far as this makes no more than some cells.
    """
    own = [tuple(sorted({numbers[n] for numbers in points})) for n in range(len(sizes))]
    wider = [_with_ends(numbers, size) for numbers, size in zip(own, sizes, strict=True)]
    widest = [_with_means(numbers, size) for numbers, size in zip(wider, sizes, strict=True)]
    fitting = (each for each in (widest, wider) if prod(map(len, each)) <= _MOST_CELLS)
    chosen = next(fitting, own)
    return tuple((size.name, numbers) for size, numbers in zip(sizes, chosen, strict=True))


def _with_ends(numbers: Numbers, size: NamedSize) -> Numbers:
    ends = {max(1, size.least) * size.divisor}
    if size.most is not None:
        ends.add(size.most * size.divisor)
    return tuple(sorted({*numbers, *ends}))


def _with_means(numbers: Numbers, size: NamedSize) -> Numbers:
    means = [isqrt(low * high) for low, high in pairwise(numbers) if high >= _FAR * low]
    whole = {max(size.divisor, mean - mean % size.divisor) for mean in means}
    return tuple(sorted({*numbers, *whole}))


def _nearest(numbers: Numbers, tuned: Mapping[Numbers, TunedTrace], count: int) -> list[TunedTrace]:
    """The nearest points on a logarithmic scale."""

    def distance(point: Numbers) -> float:
        return sum(math.log(a / b) ** 2 for a, b in zip(point, numbers, strict=True))

    return [tuned[point] for point in sorted(tuned, key=distance)[:count]]


def _cheapest(
    tuned: Sequence[TunedTrace], untuned: Trace, values: Mapping[str, int], prices: Prices
) -> Trace:
    """The trace that is expected to be the fastest; the untuned one unless another gains."""
    best, limit_s = untuned, prices.opened(untuned, values)
    if limit_s is None:
        return untuned
    limit_s *= 1 - _LEAST_GAIN
    for each in tuned:
        expected_s = prices.opened(each.trace, values) if each.opens else None
        if expected_s is not None and expected_s < limit_s:
            best, limit_s = each.trace, expected_s
    return best


def _is_better_alone(
    own: TunedTrace, other: Trace, values: Mapping[str, int], prices: Prices
) -> bool:
    """Whether a trace is expected to be faster in a program for its sizes alone than another one in
    a program for all sizes.
    """
    if own.is_measured and not own.opens:
        return True
    alone_s, opened_s = prices.alone(own.trace, values), prices.opened(other, values)
    return alone_s is not None and opened_s is not None and alone_s < (1 - _LEAST_GAIN) * opened_s
