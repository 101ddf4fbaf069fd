"""Which trace runs for which sizes: a table over some numbers of each size.

    lines      of each size, the numbers at which the table has an entry
    cells      an entry for every combination of these; it is for all sizes that are nearest to it
    tuned      the best trace of each combination for which the workload was tuned
    exact      those of these combinations whose trace gets a program that holds for nothing else

A table is filled from traces that were tuned for points.  Between them the time model says which of
the neighbours' traces and the untuned one runs.

A second trace for small sizes, if that of the typical instance leaves threads or lanes idle.

A loop over an open axis may have fewer iterations than there are threads, or fewer than a vector
has lanes, or a tile has rows.  An instance with such sizes gets its own schedule, which runs up to
the numbers at which the time model still prefers it.  One size alone is tried before several.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise, product
from math import isqrt, prod
from operator import itemgetter
from typing import Protocol, TypeAlias

from tensorwright.expr import Index, NamedSize, named_sizes_of, topological_order, with_sizes
from tensorwright.graph import Workload, bind_workload, least_sizes
from tensorwright.schedule import (
    ForKind,
    OpenSchedule,
    OpenTrace,
    Schedule,
    SizedTrace,
    SizeRange,
    Trace,
    analyse,
    trace_at,
)

_LEAST_GAIN = 0.03  # of the predicted time: what a program for one size must gain
_SAME = 0.02  # of the predicted time: traces that differ by less are alike
_FAR = 4  # times as large: between nearer neighbours a table has no entry
_MOST_CELLS = 24  # between points: each asks for prices

Numbers: TypeAlias = tuple[int, ...]


class Prices(Protocol):
    """The expected seconds of a trace for some sizes; None if unknown."""

    def alone(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        """By a program for these sizes only."""

    def opened(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        """By a program for all sizes."""


@dataclass(frozen=True, slots=True)
class TunedTrace:
    """The best trace for some sizes for which a workload was tuned.

    opens         whether it has a form that holds for all sizes
    is_measured   whether it is on record there; otherwise it is the untuned trace for these sizes
    equals        traces that were measured there, too, and are about as fast
    """

    values: Mapping[str, int]
    trace: Trace
    opens: bool
    is_measured: bool = True
    equals: tuple[Trace, ...] = ()


@dataclass(frozen=True, slots=True)
class SizeTable:
    """As above; combinations are numbers in the order of `lines`, and all tuples are sorted.

    The only cell of a table without lines may have a schedule with ranges of its own.
    """

    lines: tuple[tuple[str, Numbers], ...]
    cells: tuple[tuple[Numbers, Schedule], ...]
    tuned: tuple[tuple[Numbers, Trace], ...] = ()
    exact: tuple[Numbers, ...] = ()

    @classmethod
    def of_one(cls, schedule: Schedule) -> SizeTable:
        """The table of a schedule that runs for all sizes."""
        return cls((), (((), schedule),))

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
        if own in self.exact:
            return dict(self.tuned)[own]
        return trace_at(dict(self.cells)[self.cell_of(values)], values)

    def tuned_at(self, values: Mapping[str, int]) -> Trace | None:
        """The trace for some sizes for which the workload was tuned; None for others."""
        return dict(self.tuned).get(self._numbers(values))

    def with_cell(self, values: Mapping[str, int], schedule: Schedule) -> SizeTable:
        """The table with what another schedule has for some sizes in the cell of these.

        If the cell has the trace of a combination for which the workload was tuned, and the sizes
        are others, this combination keeps its trace by a program of its own.
        """
        cell, cells = self.cell_of(values), dict(self.cells)
        own = trace_at(schedule, values) if self.lines else schedule
        keeps = cell != self._numbers(values) and cells[cell] == dict(self.tuned).get(cell) != own
        cells[cell] = own
        table = replace(self, cells=tuple(sorted(cells.items(), key=itemgetter(0))))
        return table._with_exact(cell) if keeps else table

    def with_exact(self, values: Mapping[str, int]) -> SizeTable:
        """The table with a program of its own for some sizes for which it was tuned."""
        return self._with_exact(self._numbers(values))

    def _with_exact(self, numbers: Numbers) -> SizeTable:
        if numbers not in dict(self.tuned):
            return self
        return replace(self, exact=tuple(sorted({*self.exact, numbers})))

    def without_exact(self, values: Mapping[str, int] | None = None) -> SizeTable:
        """The table without a program of its own for some sizes, or for any if None."""
        own = None if values is None else self._numbers(values)
        kept = () if own is None else tuple(each for each in self.exact if each != own)
        return replace(self, exact=kept)

    def _numbers(self, values: Mapping[str, int]) -> Numbers:
        return tuple(values[name] for name in self.names)

    @property
    def schedule(self) -> Schedule:
        """The traces with their ranges; the trace of most cells comes last, for all the rest."""
        usual = Counter(each for _, each in self.cells).most_common(1)[0][0]
        if isinstance(usual, OpenSchedule):
            return usual
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
                assert not isinstance(trace, OpenSchedule)  # which only a table without lines has
                boxes.append(SizedTrace(tuple(filter(None, ranges)), trace))
        return boxes

    def _range(self, position: int, first: int, last: int) -> SizeRange | None:
        """The range of a size in the cells from one number to another; None: any value."""
        name, numbers = self.lines[position]
        borders = _borders(numbers)
        low = 1 if first == numbers[0] else borders[numbers.index(first) - 1]
        high = None if last == numbers[-1] else borders[numbers.index(last)] - 1
        return None if low == 1 and high is None else SizeRange(name, low, high)


def _borders(numbers: Numbers) -> list[int]:
    """The numbers from which the next entry is nearer than the last, on a logarithmic scale."""
    return [isqrt(low * high - 1) + 1 for low, high in pairwise(numbers)]


def filled_table(
    sizes: Sequence[NamedSize],
    tuned: Sequence[TunedTrace],
    untuned: Schedule,
    prices: Prices,
    *,
    has_exact: bool = True,
) -> SizeTable:
    """The table of a workload with some sizes.

    tuned      at least one, each for other numbers
    untuned    the schedule for all sizes
    prices     by the time model
    has_exact  whether it predicts, too, which traces get a program for their sizes alone

    Of traces that are about as good in several cells the table has few: each makes the kernel
    longer.
    """
    ordered = sorted(sizes, key=lambda size: size.name)
    names = [size.name for size in ordered]
    points = {tuple(each.values[name] for name in names): each for each in tuned}
    lines = _lines(ordered, list(points))
    good: dict[Numbers, tuple[Trace, ...]] = {}
    for numbers in product(*(numbers for _, numbers in lines)):
        values = dict(zip(names, numbers, strict=True))
        own = points.get(numbers)
        if own is not None and own.is_measured and own.opens:
            good[numbers] = (own.trace, *own.equals)
        else:
            near = _near(numbers, points) if own is None else [own]
            good[numbers] = _cheapest(near, trace_at(untuned, values), values, prices)
    cells = _few(good)
    exact = [
        numbers
        for numbers, own in sorted(points.items(), key=itemgetter(0))
        if names and has_exact and _is_better_alone(own, cells[numbers], prices)
    ]
    best = [(numbers, points[numbers].trace) for numbers in sorted(points)]
    return SizeTable(lines, tuple(cells.items()), tuple(best), tuple(exact))


def _few(good: Mapping[Numbers, tuple[Trace, ...]]) -> dict[Numbers, Trace]:
    """One of the good traces of each cell; first the one that is good in most open cells."""
    chosen: dict[Numbers, Trace] = {}
    while len(chosen) < len(good):
        left = {numbers: traces for numbers, traces in good.items() if numbers not in chosen}
        counts = Counter(trace for traces in left.values() for trace in traces)
        best = counts.most_common(1)[0][0]
        chosen |= {numbers: best for numbers, traces in left.items() if best in traces}
    return {numbers: chosen[numbers] for numbers in good}


def _lines(
    sizes: Sequence[NamedSize], points: Sequence[Numbers]
) -> tuple[tuple[str, Numbers], ...]:
    """The numbers of each size in points, its bounds, and means of neighbours, up to a limit."""
    own = [tuple(sorted({numbers[n] for numbers in points})) for n in range(len(sizes))]
    wider: list[Numbers] = []
    widest: list[Numbers] = []
    for numbers, size in zip(own, sizes, strict=True):
        ends = {max(1, size.least) * size.divisor}
        if size.most is not None:
            ends.add(size.most * size.divisor)
        wider.append(tuple(sorted({*numbers, *ends})))
        far = [(low, high) for low, high in pairwise(wider[-1]) if high >= _FAR * low]
        means = (isqrt(low * high) for low, high in far)
        whole = {max(size.divisor, mean - mean % size.divisor) for mean in means}
        widest.append(tuple(sorted({*wider[-1], *whole})))
    fitting = (each for each in (widest, wider) if prod(map(len, each)) <= _MOST_CELLS)
    chosen = next(fitting, own)
    return tuple((size.name, numbers) for size, numbers in zip(sizes, chosen, strict=True))


def _near(numbers: Numbers, points: Mapping[Numbers, TunedTrace]) -> list[TunedTrace]:
    """The two nearest points on a logarithmic scale, of those with the same fixed sizes."""
    for own, others in zip(numbers, zip(*points, strict=True), strict=True):
        if own not in others and len(set(others)) == 1 and len(points) > 1:
            return []

    def distance(point: Numbers) -> float:
        return sum(math.log(a / b) ** 2 for a, b in zip(point, numbers, strict=True))

    return [points[point] for point in sorted(points, key=distance)[:2]]


def _cheapest(
    tuned: Sequence[TunedTrace], untuned: Trace, values: Mapping[str, int], prices: Prices
) -> tuple[Trace, ...]:
    """The traces that are expected to be about the fastest; the untuned one if nothing is known."""
    seconds: dict[Trace, float] = {}
    for trace in (untuned, *(each.trace for each in tuned if each.opens)) if tuned else ():
        expected_s = prices.opened(trace, values)
        if expected_s is not None:
            seconds[trace] = expected_s
    if untuned not in seconds:
        return (untuned,)
    limit_s = (1 + _SAME) * min(seconds.values())
    return tuple(
        trace for trace in sorted(seconds, key=seconds.__getitem__) if seconds[trace] <= limit_s
    )


def _is_better_alone(own: TunedTrace, other: Trace, prices: Prices) -> bool:
    """Whether a trace for its sizes alone is expected to be faster than another for all sizes."""
    if own.is_measured and not own.opens:
        return True
    alone_s, opened_s = prices.alone(own.trace, own.values), prices.opened(other, own.values)
    return alone_s is not None and opened_s is not None and alone_s < (1 - _LEAST_GAIN) * opened_s


_SECOND_TRACE_GAIN = 0.25  # of the predicted time: what a second trace must gain
_LEAST_GAIN_S = 2e-6  # and in seconds: a second trace makes the program larger
_NO_LOSS = (0.0, 0.0)
_SHARES = (1.0, 0.9, 0.75, 0.6)  # of the way to where threads and lanes are busy
_STEPS = 32  # of the way from the least to the typical sizes that are tried


def trace_for_small_sizes(
    workload: Workload,
    opened: OpenTrace,
    threads: int,
    choose: Callable[[Workload], Trace],
    prices: Prices,
) -> SizedTrace | None:
    """A trace for small sizes and the range of these; None if none gains.

    There is no range if the trace is as good for the typical and for the greatest sizes, too.  With
    the other sizes at their least it must be as good, since it runs there, too.

    opened   the trace of the typical instance, for all sizes
    choose   the schedule of an instance
    """
    way = _Way(workload)
    ways = dict.fromkeys(_short_sizes(opened, threads, way))
    for short, start, share in sorted(ways, key=lambda each: len(each[0])):
        for middle in ((start + share) / 2, start):
            small = way.at(short, middle)
            now = prices.opened(opened.trace, small)
            if now is None or now < _LEAST_GAIN_S:
                continue
            trace = choose(bind_workload(workload, small))
            gains = partial(_gains, prices, opened.trace, trace)
            if not _gains_also_alone(gains, way, short, small):
                continue
            others = way.typical, way.typical | {name: way.most[name] for name in short}
            if all(gains(each, least=_NO_LOSS) for each in others):
                return SizedTrace((), trace)
            limits = (way.at(short, start + part * (share - start)) for part in _SHARES)
            last = next((x for x in limits if _gains_also_alone(gains, way, short, x)), small)
            ranges = (SizeRange(name, way.least[name], last[name]) for name in short)
            return SizedTrace(tuple(ranges), trace)
    return None


def _gains(
    prices: Prices,
    before: Trace,
    after: Trace,
    values: Mapping[str, int],
    least: tuple[float, float] = (_SECOND_TRACE_GAIN, _LEAST_GAIN_S),
) -> bool:
    """Whether the second of two traces gains at least a share of the time and some seconds."""
    over, under = prices.opened(before, values), prices.opened(after, values)
    if over is None or under is None:
        return False
    share, seconds = least
    return over - under >= max(share * over, seconds)


def _gains_also_alone(
    gains: Callable[..., bool], way: _Way, short: Sequence[str], values: Mapping[str, int]
) -> bool:
    """Whether a trace gains at some sizes, and does not lose with the least of the others."""
    alone = way.at_least(short, values)
    return gains(values) and (alone is None or gains(alone, least=_NO_LOSS))


class _Way:
    """From the least sizes of a workload to typical ones, on a logarithmic scale; the greatest."""

    def __init__(self, workload: Workload) -> None:
        self.least = least_sizes(workload.sizes)
        self.typical = workload.typical_sizes
        self.most = {s.name: s.most or self.typical[s.name] for s in workload.sizes}
        self._divisors = {size.name: size.divisor for size in workload.sizes}
        tensors = (*workload.inputs, *topological_order(*workload.outputs))
        extents = {n for tensor in tensors for n in tensor.shape if not isinstance(n, int)}
        self._extents = tuple(sorted(extents, key=str))

    def shares(self, names: Iterable[str]) -> list[float]:
        """The steps of the way of some sizes at which no tensor is empty."""
        shares = (step / _STEPS for step in range(_STEPS + 1))
        return [share for share in shares if self._is_full(self.at(names, share))]

    def _is_full(self, values: Mapping[str, int]) -> bool:
        return all(_number(extent, values) >= 1 for extent in self._extents)

    def at(self, names: Iterable[str], share: float) -> dict[str, int]:
        """The typical sizes, with numbers that share of the way for some of them."""
        return {**self.typical, **{name: self._number(name, share) for name in names}}

    def at_least(self, names: Iterable[str], values: Mapping[str, int]) -> dict[str, int] | None:
        """The numbers of some sizes with the least of the others; None if a tensor is empty."""
        numbers = {**self.least, **{name: values[name] for name in names}}
        return numbers if self._is_full(numbers) else None

    def _number(self, name: str, share: float) -> int:
        low, high = self.least[name], self.typical[name]
        number: int = round(low * (high / low) ** share)
        return max(low, number - number % self._divisors[name])


def _short_sizes(
    opened: OpenTrace, threads: int, way: _Way
) -> Iterator[tuple[tuple[str, ...], float, float]]:
    """Sizes, alone or by loop, and the shares of their way that leave lanes, rows of a tile or
    threads idle.
    """
    nests = analyse(opened.state).nests
    loops = [(tile.extent, tile.tile) for tile in (*opened.lanes, *opened.rows)]
    loops += [
        (nests[stage.name].extents.get(loop, 1), threads)
        for stage in opened.state.stages
        for loop, kind in stage.marks
        if kind is ForKind.PARALLEL
    ]
    for extent, needed in loops:
        names = sorted(
            s.name for s in named_sizes_of(extent) if way.least[s.name] < way.typical[s.name]
        )
        for short in [*((name,) for name in names), tuple(names)]:
            start, *shares = way.shares(short) or (1.0,)
            busy = (s for s in (start, *shares) if _number(extent, way.at(short, s)) >= needed)
            share = next(busy, 1.0)
            if share > start:
                yield short, start, share
                break


def _number(extent: Index, values: Mapping[str, int]) -> int:
    number = with_sizes(extent, values)
    assert isinstance(number, int), "all sizes have numbers"
    return number
