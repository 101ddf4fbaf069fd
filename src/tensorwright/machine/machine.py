"""A machine and how it is used, as the numbers that the time of a program depends on.

Caches, registers and instructions are those of its target. The rates of a core are measured
(`runtime.this_machine`) or assumed. All other numbers are assumed, the same for all processors
(`NOMINAL`): so equal machines decide alike.

The ceilings of this machine: arithmetic, and reading from each cache and from the memory.

The peak is that of f32 arithmetic with FMAs, the bandwidths those of reading.  They are measured;
other processes make them smaller, never larger.

The fingerprint of a machine, for which a measured time is valid.

The fingerprint consists of the instruction sets, the number of cores and the caches. It does not
have the CPU's name, because LLVM names some machines wrongly and virtual machines choose any name.
Only instruction sets that change generated code count. So a newer Linux kernel, which reports more
flags, does not change the fingerprint.

A graphics processor as the numbers that the time of a launch depends on.

Limits, multiprocessors and rates are those of its target.  All other numbers are assumed, one set
for all cards and one for all processors that run OpenCL: see `Unit`.
"""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path

from tensorwright import base


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

    target: base.CpuTarget
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


def nominal_rates(target: base.CpuTarget) -> Rates:
    """The assumed rates of a processor without measurements."""
    operations = NOMINAL.vectors_per_cycle * (2.0 if target.fma else 1.0)
    lanes = target.vector_bytes / 4.0
    return Rates(operations * lanes * NOMINAL.clock_hz, NOMINAL.bytes_per_s)


def machine_of(
    target: base.CpuTarget, threads: int, rates: Rates | None = None, *, is_cold: bool = False
) -> Machine:
    """The machine that a target stands for; with `nominal_rates` if `rates` is None."""
    return Machine(target, threads, rates or nominal_rates(target), is_cold)


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


def assumed_ceilings(
    machine: base.AssumedMachine, target: base.CpuTarget, threads: int
) -> Ceilings:
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


_FEATURES = {
    "x86_64": (
        "sse4_2 avx f16c fma avx2 avx_vnni avx512f avx512dq avx512bw avx512vl avx512cd avx512ifma "
        "avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16 amx_fp16"
    ).split(),
    "aarch64": (
        "asimd fphp asimdhp asimddp asimdfhm sve sve2 i8mm svei8mm bf16 svebf16 sme sme2"
    ).split(),
}
_AUXILIARY_VECTOR = Path("/proc/self/auxv")
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_LANDMARKS = ("amx_tile", "avx512f", "avx2", "avx", "sve2", "sve", "asimd")


@dataclass(frozen=True, slots=True)
class Hardware:
    """The properties of a machine on which the speed of a program depends.

    features are sorted; caches run from the nearest to the farthest, data and unified ones only.
    """

    machine: str
    cores: int
    features: tuple[str, ...]
    caches: tuple[base.Cache, ...]

    @property
    def fingerprint(self) -> str:
        """Short stable key, "x86_64-2c-avx512f-1a2b3c4d": equal for machines of equal speed."""
        landmark = next((name for name in _LANDMARKS if name in self.features), "base")
        digest = hashlib.sha256(repr(self).encode()).hexdigest()
        return f"{self.machine}-{self.cores}c-{landmark}-{digest[:8]}"

    def __str__(self) -> str:
        lines = [f"{self.machine}, {self.cores} cores", "  features: " + " ".join(self.features)]
        lines += [f"  cache: {cache}" for cache in self.caches]
        return "\n".join(lines)


def detect_hardware(
    machine: str | None = None,
    cores: int | None = None,
    proc_cpuinfo: Path = Path("/proc/cpuinfo"),
    cache_folder: Path = Path("/sys/devices/system/cpu/cpu0/cache"),
) -> Hardware:
    """Describe this machine. Unknown properties are left out, never guessed.

    The arguments are for tests: they replace the files and properties of the running machine.
    """
    name = (machine or platform.machine()).lower()
    name = _MACHINES.get(name, name)
    flags = base.read_flags(proc_cpuinfo)
    if machine is None and name == "aarch64":
        flags |= base.read_arm_flags(_AUXILIARY_VECTOR)
    return Hardware(
        machine=name,
        cores=cores or os.cpu_count() or 1,
        features=tuple(sorted(flags & {*_FEATURES.get(name, ())})),
        caches=base.read_caches(cache_folder),
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """The assumed numbers of a multiprocessor.  Times are in cycles.

    sector_cycles    of memory near it, for 32 bytes        wavefront_cycles   of shared memory
    shared_sector_cycles   of shared memory for 32 bytes, if it has no banks
    latencies        until a load arrives: from near memory, the second cache, memory
    shared_latency   until a load from shared memory arrives
    index_latency    of an operation of an address: most of them wait for the one before
    add_latency      until the next addition may use a sum
    loads_at_once    independent loads that a thread has under way, where a loop is not unrolled
    barrier_cycles   of a block for a barrier
    barrier_thread_cycles   of each thread for a barrier: a processor saves its threads' state
    block_cycles     to start a block, and to end it
    launch_s         to start a launch after the one before, and for that one to end: inside a graph
                     of the driver, as networks run, if there are graphs
    cache_rate       of the second cache, in bandwidths of the memory
    """

    sector_cycles: float
    wavefront_cycles: float
    shared_sector_cycles: float
    latencies: tuple[float, float, float]
    shared_latency: float
    index_latency: float
    add_latency: float
    loads_at_once: float
    barrier_cycles: float
    barrier_thread_cycles: float
    block_cycles: float
    launch_s: float
    cache_rate: float


CARD_UNIT = Unit(
    sector_cycles=0.25,
    wavefront_cycles=1.0,
    shared_sector_cycles=0.0,
    latencies=(35.0, 300.0, 700.0),
    shared_latency=30.0,
    index_latency=4.0,
    add_latency=4.0,
    loads_at_once=4.0,
    barrier_cycles=40.0,
    barrier_thread_cycles=0.0,
    block_cycles=600.0,
    launch_s=3e-6,
    cache_rate=2.0,
)
"""Of NVIDIA's cards from Volta on.

Source:  Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018,
         tables of latencies; NVIDIA, H100 Tensor Core GPU Architecture, for lanes.
"""

PROCESSOR_UNIT = Unit(
    sector_cycles=2.0,
    wavefront_cycles=0.0,
    shared_sector_cycles=2.0,
    latencies=(0.0, 0.0, 0.0),
    shared_latency=0.0,
    index_latency=0.0,
    add_latency=0.0,
    loads_at_once=1.0,
    barrier_cycles=50.0,
    barrier_thread_cycles=10.0,
    block_cycles=3000.0,
    launch_s=2e-5,
    cache_rate=4.0,
)
"""Of a core that runs the threads of a block one after the other, few of them in a vector, and has
no shared memory but its caches; by measurements with PoCL (`benchmarks/device/prices.py`)."""
_PROCESSOR_LANES, _PROCESSOR_HZ = 2.0, 3e9
_OTHER_LANES, _OTHER_HZ = 64.0, 1.2e9  # of cards whose driver does not tell
_LANES = 128.0  # of NVIDIA's cards
_SINGLE_LAUNCH_S = 1.2e-5  # of launches made one by one: the time of the host for each
_FEW_LANES = {"sm_75": 64.0, "sm_80": 64.0}


@dataclass(frozen=True, slots=True)
class Card:
    """A target and its assumed numbers.

    lanes      threads whose multiply-add a multiprocessor runs in one cycle
    clock_hz   with which its lanes reach its peak
    """

    target: base.GpuTarget
    unit: Unit
    lanes: float
    clock_hz: float

    @property
    def units(self) -> int:
        """The number of multiprocessors."""
        return self.target.multiprocessors

    @property
    def threads(self) -> int:
        """Of the host that call a kernel: one, which launches it."""
        return 1


def card_of(target: base.GpuTarget) -> Card:
    """The card that a target stands for."""
    if target.is_processor:
        return Card(target, PROCESSOR_UNIT, _PROCESSOR_LANES, _PROCESSOR_HZ)
    unit = CARD_UNIT
    if target.api is base.GpuApi.OPENCL or not base.knobs.DEVICE_GRAPHS.get():
        unit = replace(unit, launch_s=_SINGLE_LAUNCH_S)
    if target.api is base.GpuApi.OPENCL:
        return Card(target, unit, _OTHER_LANES, _OTHER_HZ)
    lanes, flops = _FEW_LANES.get(target.arch, _LANES), dict(target.flops)[base.DType.F32]
    return Card(target, unit, lanes, flops / (2.0 * target.multiprocessors * lanes))
