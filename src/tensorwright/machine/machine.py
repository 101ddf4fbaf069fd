"""A machine and how it is used, as the numbers that the time of a program depends on.

Caches, registers and instructions are those of its target. The rates of a core are measured
(`runtime.this_machine`) or assumed. All other numbers are assumed, the same for all processors
(`NOMINAL`): so equal machines decide alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import CpuTarget


@dataclass(frozen=True, slots=True)
class Nominal:
    """The assumed numbers of every processor, by the estimates that use them.

    Roofline of programs, layouts
        clock_hz                turns cycles into seconds on every machine. Linux reports the clock
                                of a busy core neither exactly nor repeatably, and a slower machine
                                is slower by about a constant factor
        vectors_per_cycle       multiply-adds of whole vectors of a core
        bytes_per_s             that one core reads from memory
        cache_bytes_per_cycle   that it reads from the second cache, and from the third
        line_cycles             to fetch a line that another core has written or read
        fork_cycles             a statement's share of starting threads, and of waiting for them
        copied_bytes_per_cycle  that a core reads and writes where a network copies tensors
    Steps of networks
        call_s                  to call a kernel, hand its pieces to the threads of a team and wait
                                for the last; near what `runtime.measure_call_costs` measures
        share_s                 the least that a thread must have to do in a step to take part in it
        near_bytes_per_s        that a core moves in a step whose operands lie in the second cache
        flops_per_s_and_byte    of a core in a step, for each byte of a vector
    Operators of networks, on all threads
        all_flops_per_s
        all_bytes_per_s
        cores_to_fill_memory    all cores together read from memory as fast as cores / this number
                                single cores: two of eight in a desktop, sixteen of sixty-four in a
                                server
    """

    clock_hz: float = 3.5e9
    vectors_per_cycle: float = 2.0
    bytes_per_s: float = 32e9
    cache_bytes_per_cycle: tuple[float, float] = (32.0, 12.0)
    line_cycles: float = 20.0
    fork_cycles: float = 1500.0
    copied_bytes_per_cycle: int = 16
    call_s: float = 1e-6
    share_s: float = 2.5e-7
    near_bytes_per_s: float = 80e9
    flops_per_s_and_byte: float = 1.25e9
    all_flops_per_s: float = 2e11
    all_bytes_per_s: float = 4e10
    cores_to_fill_memory: int = 4


NOMINAL = Nominal()


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of a core, per second: operations (an FMA counts as two), and bytes from memory."""

    flops_per_s: float
    bandwidth_bytes_per_s: float

    def __str__(self) -> str:
        memory = f"memory {self.bandwidth_bytes_per_s / 1e9:.0f} GB/s"
        return f"{self.flops_per_s / 1e9:.0f} GFLOP/s; {memory}"

    def stepped(self, flops_steps: int, bandwidth_steps: int) -> Rates:
        """These rates, times powers of two."""
        return Rates(
            self.flops_per_s * 2.0**flops_steps, self.bandwidth_bytes_per_s * 2.0**bandwidth_steps
        )


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, the threads that a program uses there, and where its constants come from.

    target      its caches, cores, registers and instructions
    rates       of one core
    is_cold     constants come from memory in each call, as in a network; else from the caches
    """

    target: CpuTarget
    threads: int
    rates: Rates
    is_cold: bool = False

    @property
    def vectors_per_cycle(self) -> float:
        """Multiply-adds of whole vectors of 4-byte floats that one core does per cycle."""
        return self.rates.flops_per_s / (NOMINAL.clock_hz * 2.0 * self.target.vector_bytes / 4.0)

    @property
    def memory_bytes_per_s(self) -> float:
        """The bytes per second that all threads together read from memory."""
        share = self.threads / NOMINAL.cores_to_fill_memory
        return self.rates.bandwidth_bytes_per_s * max(1.0, share)


def nominal_rates(target: CpuTarget) -> Rates:
    """The assumed rates of a processor without measurements."""
    operations = NOMINAL.vectors_per_cycle * (2.0 if target.fma else 1.0)
    lanes = target.vector_bytes / 4.0
    return Rates(operations * lanes * NOMINAL.clock_hz, NOMINAL.bytes_per_s)


def machine_of(
    target: CpuTarget, threads: int, rates: Rates | None = None, *, is_cold: bool = False
) -> Machine:
    """The machine that a target stands for; with `nominal_rates` if `rates` is None."""
    return Machine(target, threads, rates or nominal_rates(target), is_cold)
