"""The ceilings of a machine, and the bottlenecks of steps.

    least time of a step = max(operations / peak, sum over its operands: bytes / bandwidth of the
                               nearest cache that still holds them)
    share of the roofline = least time / time

Peak and bandwidths are measured (`machine/ceilings.py`).  Other running programs make them too low,
and the shares too high.

Source:   Williams et al., Roofline, CACM 52(4), 2009; caches beside memory as in Ilic et al.,
          Cache-aware roofline model, IEEE CAL 13(1), 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tensorwright.machine import MEMORY, Ceilings
from tensorwright.profiling.reuse import Operand

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
