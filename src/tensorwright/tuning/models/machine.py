"""A machine and how it is used, as the numbers that the time of a program depends on."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import CpuTarget

CLOCK_HZ = 3.5e9
"""Cycles are turned into seconds by this, on every machine: what a clock is at work, the kernel
of Linux tells neither exactly nor twice alike.  A slower machine is slower by about a constant."""

_NOMINAL_BANDWIDTH = 32e9


@dataclass(frozen=True, slots=True)
class Rates:
    """What one core can do: operations per second (an FMA counts as two), and bytes per second
    that it reads from memory.
    """

    flops_per_s: float
    bandwidth_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, the threads that a program uses there, and where its constants come from.

    has_masks   a vector load or store under a mask costs no more than a plain one
    rates       of one core
    is_cold     constants come from memory in each call, as in a network; else from the caches
    """

    vector_bytes: int
    vector_registers: int
    has_masks: bool
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    cores: int
    threads: int
    rates: Rates
    is_cold: bool = False

    @property
    def vectors_per_cycle(self) -> float:
        """Multiply-adds of whole vectors of 4-byte floats that one core does per cycle."""
        return self.rates.flops_per_s / (CLOCK_HZ * 2.0 * self.vector_bytes / 4.0)


def nominal_rates(target: CpuTarget) -> Rates:
    """What is assumed of a processor of which nothing was measured: two multiply-adds a cycle."""
    operations = 4.0 if target.fma else 2.0
    lanes = target.vector_bytes / 4.0
    return Rates(operations * lanes * CLOCK_HZ, _NOMINAL_BANDWIDTH)


def machine_of(
    target: CpuTarget, threads: int, rates: Rates | None = None, *, is_cold: bool = False
) -> Machine:
    """The machine that a target stands for; `nominal_rates` where `rates` is None."""
    return Machine(
        target.vector_bytes,
        target.vector_registers,
        target.has_masks,
        target.l1_bytes,
        target.l2_bytes,
        target.l3_bytes,
        target.cores,
        threads,
        rates or nominal_rates(target),
        is_cold,
    )
