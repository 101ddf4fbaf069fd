"""The ceilings of this machine: arithmetic, and reading from each cache and from the memory.

The peak is that of f32 arithmetic with FMAs, the bandwidths those of reading.  They are measured;
other processes make them smaller, never larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.base import AssumedMachine, CpuTarget
from tensorwright.machine.machine import NOMINAL, nominal_rates

MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Level:
    """A cache or the memory: its bytes for all threads, and the rate of reading."""

    name: str
    size_bytes: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The rates of some threads together; `levels` from the nearest on, the memory last.

    when   they were measured, UTC; "" if unknown
    """

    threads: int
    flops_per_s: float
    levels: tuple[Level, ...]
    when: str = ""

    def level_at(self, distance_bytes: float) -> Level:
        """The nearest level that still holds data after touching `distance_bytes` of others."""
        fits = (each for each in self.levels if distance_bytes <= each.size_bytes)
        return next(fits, self.levels[-1])

    @property
    def day(self) -> str:
        """Of the measurement, "2026-01-31"."""
        return self.when[:10]

    def __str__(self) -> str:
        rates = ", ".join(f"{each.name} {each.bytes_per_s / 1e9:.0f}" for each in self.levels)
        return f"{self.flops_per_s / 1e9:.0f} GFLOP/s" + (f"; {rates} GB/s" if rates else "")


def assumed_ceilings(machine: AssumedMachine, target: CpuTarget, threads: int) -> Ceilings:
    """The ceilings of a machine that is assumed, for the code of a target."""
    cores = min(threads, machine.cores)
    units = min(1.0, machine.fused_bytes / (NOMINAL.vectors_per_cycle * target.vector_bytes))
    filled = max(1.0, cores / NOMINAL.cores_to_fill_memory)
    levels = (
        Level("L2", machine.l2_kib * 1024.0 * cores, machine.l2_bytes_per_s * cores),
        Level("L3", machine.l3_kib * 1024.0, machine.l3_bytes_per_s * cores),
        Level(MEMORY, float("inf"), machine.memory_bytes_per_s * filled),
    )
    return Ceilings(threads, units * nominal_rates(target).flops_per_s * cores, levels)


def better_of(one: Ceilings, other: Ceilings) -> Ceilings:
    """The higher of each rate, because other processes make rates smaller.

    The moment is that of `other` if it has raised any.
    """
    rates = {level.name: level for level in other.levels}
    levels = tuple(
        max(level, rates.get(level.name, level), key=lambda each: each.bytes_per_s)
        for level in one.levels or other.levels
    )
    best = Ceilings(one.threads, max(one.flops_per_s, other.flops_per_s), levels, one.when)
    return best if best == one else replace(best, when=other.when)
