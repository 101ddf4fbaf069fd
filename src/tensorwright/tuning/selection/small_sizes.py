"""A second trace for small sizes, if that of the typical instance leaves threads or lanes idle.

A loop over an open axis may have fewer iterations than there are threads, or fewer than a vector
has lanes.  An instance with such sizes gets its own schedule, which runs up to the numbers at which
the time model still prefers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tensorwright.expr import Index, NamedSize, named_sizes_of, with_sizes
from tensorwright.graph import Workload, bind_workload, least_sizes, representative
from tensorwright.schedule import ForKind, OpenTrace, SizedTrace, SizeRange, Trace, analyse
from tensorwright.tuning.selection.size_table import Prices

_LEAST_GAIN = 0.25  # of the predicted time: what a second trace must gain
_LEAST_GAIN_S = 2e-6  # and in seconds: a second trace makes the program larger
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

    opened   the trace of the typical instance, for all sizes
    choose   the schedule of an instance
    """
    way = _Way(workload.sizes)
    for short, share in dict.fromkeys(_short_sizes(opened, threads, way)):
        small = way.at(short, share / 2)
        now = prices.opened(opened.trace, small)
        if now is None or now < _LEAST_GAIN_S:
            continue
        trace = choose(bind_workload(workload, small))
        if not _gains(prices, opened.trace, trace, small):
            continue
        limits = (way.at(short, part * share) for part in _SHARES)
        last = next((each for each in limits if _gains(prices, opened.trace, trace, each)), small)
        ranges = (SizeRange(name, way.least[name], last[name]) for name in short)
        return SizedTrace(tuple(ranges), trace)
    return None


def _gains(prices: Prices, before: Trace, after: Trace, values: Mapping[str, int]) -> bool:
    over, under = prices.opened(before, values), prices.opened(after, values)
    if over is None or under is None:
        return False
    return over - under > max(_LEAST_GAIN * over, _LEAST_GAIN_S)


class _Way:
    """From the least sizes of a workload to the typical ones, on a logarithmic scale."""

    def __init__(self, sizes: Sequence[NamedSize]) -> None:
        self.least = least_sizes(sizes)
        self.typical = representative(sizes)
        self._divisors = {size.name: size.divisor for size in sizes}

    def at(self, names: Iterable[str], share: float) -> dict[str, int]:
        """The typical sizes, with numbers that share of the way for some of them."""
        return {**self.typical, **{name: self._number(name, share) for name in names}}

    def _number(self, name: str, share: float) -> int:
        low, high = self.least[name], self.typical[name]
        number: int = round(low * (high / low) ** share)
        return max(low, number - number % self._divisors[name])


def _short_sizes(
    opened: OpenTrace, threads: int, way: _Way
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Sizes, alone or by loop, that leave lanes or threads idle up to a share of the way."""
    nests = analyse(opened.state).nests
    loops = [(tile.extent, tile.tile) for tile in opened.lanes]
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
            shares = (step / _STEPS for step in range(_STEPS + 1))
            busy = (share for share in shares if _number(extent, way.at(short, share)) >= needed)
            share = next(busy, 1.0)
            if share > 0:
                yield short, share
                break


def _number(extent: Index, values: Mapping[str, int]) -> int:
    number = with_sizes(extent, values)
    assert isinstance(number, int), "all sizes have numbers"
    return number
