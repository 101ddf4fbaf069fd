"""The ceilings of a machine, and the bottlenecks of steps.

    least time of a step = max(operations / peak, sum over its operands: bytes / bandwidth of the
                               nearest cache that still holds them)
    share of the roofline = least time / time

Peak and bandwidths are measured (`machine/machine.py`).  Other running programs make them too low,
and the shares too high.

Source:   Williams et al., Roofline, CACM 52(4), 2009; caches beside memory as in Ilic et al.,
          Cache-aware roofline model, IEEE CAL 13(1), 2014.

Reuse distances: the bytes that were touched since the last use of each operand of a step.

A network runs repeatedly, so the last use may be in the previous run.  An operand with a distance
of a few kilobytes is in a near cache; the distance of weights is a whole run.

Source:   Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2),
          1970 (stack distance); here bytes that are touched twice in between count twice, but
          the distance is never more than the bytes of the whole network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from tensorwright import runtime
from tensorwright.base import number_in
from tensorwright.machine import MEMORY, Ceilings


@dataclass(frozen=True, slots=True)
class Operand:
    """The data that a step reads or writes in one span of memory.

    size_bytes      the touched bytes of the span
    distance_bytes  the size of a cache that still holds the data, including the data
    """

    size_bytes: int
    distance_bytes: int


def operands_of(plan: runtime.Plan) -> tuple[tuple[Operand, ...], ...]:
    """The operands of each step, if the network has run before."""
    spans = [
        tuple(s for s in runtime.spans_of_step(plan, step) if s[1] < s[2]) for step in plan.steps
    ]
    whole_bytes = plan.arena_bytes + sum(
        spec.size_bytes for spec in (*plan.inputs, *plan.outputs, *plan.constants)
    )
    history = _History()
    results: list[tuple[Operand, ...]] = []
    for run in range(2):
        results = []
        for step, places in zip(plan.steps, spans, strict=True):
            distances = [history.distance_bytes(span) for span in places]
            sizes = _sizes(step, places)
            history.touch(places, sum(sizes))
            if run == 0:
                continue
            step_bytes = sum(sizes)
            results.append(
                tuple(
                    Operand(size, min(whole_bytes, distance + step_bytes))
                    for size, distance in zip(sizes, distances, strict=True)
                )
            )
    return tuple(results)


def _sizes(step: runtime.Step, places: tuple[runtime.Span, ...]) -> list[int]:
    """The touched size of each span.

    A kernel may move less than its operands hold, if it looks up rows of a table.  The difference
    is subtracted from the largest operand.
    """
    sizes = [end - begin for _, begin, end in places]
    if isinstance(step, runtime.KernelStep) and sizes:
        spare = max(0, sum(sizes) - number_in(step.bytes_moved))
        largest = sizes.index(max(sizes))
        sizes[largest] -= min(spare, sizes[largest])
    return sizes


def moved_bytes_of(step: runtime.Step) -> int:
    """The bytes that a step of any kind moves at least."""
    match step:
        case runtime.KernelStep():
            return number_in(step.bytes_moved)
        case runtime.HostStep(inputs=inputs, outputs=outputs):
            return sum(typed.type.size_bytes for typed in (*inputs, *outputs))
        case runtime.CopyStep(size_bytes=size_bytes):
            return 2 * number_in(size_bytes)
        case runtime.CollectStep(source):
            return 2 * source.type.size_bytes
        case _:
            return 0


@dataclass(slots=True)
class _History:
    """The last use of each span, by a clock that counts touched bytes; mutable."""

    clock_bytes: int = 0
    _touched: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

    def distance_bytes(self, span: runtime.Span) -> int:
        """The bytes touched since the last use of any part of a span; all bytes if unused."""
        name, begin, end = span
        times = (
            when
            for first, last, when in self._touched.get(name, ())
            if first < end and begin < last
        )
        return self.clock_bytes - max(times, default=0)

    def touch(self, places: tuple[runtime.Span, ...], size_bytes: int) -> None:
        """Note that a step touches these spans, `size_bytes` bytes in all."""
        self.clock_bytes += size_bytes
        for name, begin, end in places:
            kept = [
                each
                for each in self._touched.get(name, ())
                if not (begin <= each[0] and each[1] <= end)
            ]
            self._touched[name] = [*kept, (begin, end, self.clock_bytes)]


_EXPLAINED = 0.5


class Bottleneck(Enum):
    """The cause of at least half of a step's time."""

    ARITHMETIC = "arithmetic"
    MEMORY = "memory"  # operands come from beyond the last cache
    CACHE = "cache"  # operands come from a cache
    CALLS = "calls, threads"  # calling the kernel, starting threads and waiting for them
    ONE_THREAD = "one thread"  # the others are idle
    HOST = "host operator"  # NumPy computes it
    CODE = "code"  # another cause: latency, expensive functions, unbalanced threads, a bad schedule


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least seconds of a step: arithmetic, operands from memory and from caches, the call."""

    arithmetic_s: float = 0.0
    memory_s: float = 0.0
    cache_s: float = 0.0
    calls_s: float = 0.0

    @property
    def moving_s(self) -> float:
        """The least seconds for all operands."""
        return self.memory_s + self.cache_s

    @property
    def roofline_s(self) -> float:
        """The least time of a step by the roofline, without its call."""
        return max(self.arithmetic_s, self.moving_s)

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(
            self.arithmetic_s + other.arithmetic_s,
            self.memory_s + other.memory_s,
            self.cache_s + other.cache_s,
            self.calls_s + other.calls_s,
        )


def bounds_of(
    ceilings: Ceilings, flops: int, operands: Sequence[Operand], calls_s: float = 0.0
) -> Bounds:
    """The least time of a step.

    calls_s   seconds of its call and its threads
    """
    memory_s = cache_s = 0.0
    for operand in operands:
        level = ceilings.level_at(operand.distance_bytes)
        if level.name == MEMORY:
            memory_s += operand.size_bytes / level.bytes_per_s
        else:
            cache_s += operand.size_bytes / level.bytes_per_s
    return Bounds(flops / ceilings.flops_per_s, memory_s, cache_s, calls_s)


def bottleneck_of(time_s: float, bounds: Bounds, alone: Bounds | None = None) -> Bottleneck:
    """The bottleneck of a kernel or a copy.

    alone   the least time of one thread, for a kernel that leaves the other threads idle
    """
    least_s = _EXPLAINED * time_s
    if bounds.roofline_s + bounds.calls_s >= least_s:
        moving = Bottleneck.MEMORY if bounds.memory_s >= bounds.cache_s else Bottleneck.CACHE
        named = (
            (bounds.arithmetic_s, Bottleneck.ARITHMETIC),
            (bounds.moving_s, moving),
            (bounds.calls_s, Bottleneck.CALLS),
        )
        return max(named, key=lambda pair: pair[0])[1]
    if alone is not None and alone.roofline_s + alone.calls_s >= least_s:
        return Bottleneck.ONE_THREAD
    return Bottleneck.CODE
