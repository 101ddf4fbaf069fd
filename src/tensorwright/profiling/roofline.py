"""What a machine can do at most, and what keeps a step from being faster.

    least time of a step = max(operations / peak, sum over its operands: bytes / bandwidth of the
                               nearest cache that still holds them)
    share of the roofline = least time / time

The peak is that of f32 arithmetic with FMAs, the bandwidths those of reading.

Source:   Williams et al., Roofline, CACM 52(4), 2009; caches beside memory as in Ilic et al.,
          Cache-aware roofline model, IEEE CAL 13(1), 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tensorwright.base import Target, detect_target
from tensorwright.profiling.reuse import Operand
from tensorwright.runtime import measure_bandwidth, measure_peak

MEMORY = "memory"
_PEAK_TRIES = 3
_LEAST_BYTES = 1 << 26
_MOST_BYTES = 1 << 28
_EXPLAINED = 0.5


class Bottleneck(Enum):
    """What takes most of a step's time, where it explains half of it."""

    ARITHMETIC = "arithmetic"
    MEMORY = "memory"  # operands come from beyond the last cache
    CACHE = "cache"  # operands come from a cache
    CALLS = "calls, threads"  # calling the kernel, starting threads and waiting for them
    ONE_THREAD = "one thread"  # the others are idle
    HOST = "host operator"  # NumPy
    CODE = "code"  # none of these: latency, dear functions, threads out of balance, a bad schedule


@dataclass(frozen=True, slots=True)
class Level:
    """A cache, or the memory behind all: what it holds for all threads, and how fast it is read."""

    name: str
    size_bytes: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What so many threads reach together; `levels` from the nearest on, the memory last."""

    threads: int
    flops_per_s: float
    levels: tuple[Level, ...]

    def level_of(self, operand: Operand) -> Level:
        """Where an operand lies when its step begins."""
        fits = (each for each in self.levels if operand.distance_bytes <= each.size_bytes)
        return next(fits, self.levels[-1])


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds that a step needs at least: for arithmetic, for operands from the memory and from
    the caches, for its call and its threads.
    """

    arithmetic_s: float = 0.0
    memory_s: float = 0.0
    cache_s: float = 0.0
    calls_s: float = 0.0

    @property
    def moving_s(self) -> float:
        """For all operands."""
        return self.memory_s + self.cache_s

    @property
    def roofline_s(self) -> float:
        """The least time of a step by the roofline, which knows no calls."""
        return max(self.arithmetic_s, self.moving_s)

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(
            self.arithmetic_s + other.arithmetic_s,
            self.memory_s + other.memory_s,
            self.cache_s + other.cache_s,
            self.calls_s + other.calls_s,
        )


def measure_ceilings(target: Target, threads: int) -> Ceilings:
    """Measure the ceilings of this machine for the code of a target; about half a second.

    Raises:  MachineError if the machine cannot run it.
    """
    machine = detect_target()
    caches = (
        ("L2", machine.l2_bytes * min(threads, machine.cores)),
        ("L3", machine.l3_bytes),
    )
    peak = max(measure_peak(target, threads) for _ in range(_PEAK_TRIES))
    far_bytes = min(_MOST_BYTES, max(_LEAST_BYTES, 4 * machine.l3_bytes))
    rate = measure_bandwidth(target, threads, far_bytes)
    levels = [Level(MEMORY, float("inf"), rate)]
    for name, size_bytes in reversed(caches):
        if 0 < size_bytes < levels[0].size_bytes:
            rate = max(rate, measure_bandwidth(target, threads, size_bytes // 2))
            levels.insert(0, Level(name, float(size_bytes), rate))
    return Ceilings(threads, peak, tuple(levels))


def bounds_of(
    ceilings: Ceilings, flops: int, operands: Sequence[Operand], calls_s: float = 0.0
) -> Bounds:
    """What a step needs at least.

    calls_s   for its call and its threads
    """
    memory_s = cache_s = 0.0
    for operand in operands:
        level = ceilings.level_of(operand)
        if level.name == MEMORY:
            memory_s += operand.size_bytes / level.bytes_per_s
        else:
            cache_s += operand.size_bytes / level.bytes_per_s
    return Bounds(flops / ceilings.flops_per_s, memory_s, cache_s, calls_s)


def bottleneck_of(time_s: float, bounds: Bounds, alone: Bounds | None = None) -> Bottleneck:
    """What keeps a kernel or a copy from being faster.

    alone   what one thread needs at least, for a kernel that leaves the other threads idle
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
