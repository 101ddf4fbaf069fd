"""A graphics processor as the numbers that the time of a launch depends on.

Limits, multiprocessors and rates are those of its target.  All other numbers are assumed, one set
for all cards and one for all processors that run OpenCL: see `Unit`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.base import DType, GpuApi, GpuTarget, knobs


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

    target: GpuTarget
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


def card_of(target: GpuTarget) -> Card:
    """The card that a target stands for."""
    if target.is_processor:
        return Card(target, PROCESSOR_UNIT, _PROCESSOR_LANES, _PROCESSOR_HZ)
    unit = CARD_UNIT
    if target.api is GpuApi.OPENCL or not knobs.DEVICE_GRAPHS.get():
        unit = replace(unit, launch_s=_SINGLE_LAUNCH_S)
    if target.api is GpuApi.OPENCL:
        return Card(target, unit, _OTHER_LANES, _OTHER_HZ)
    lanes, flops = _FEW_LANES.get(target.arch, _LANES), dict(target.flops)[DType.F32]
    return Card(target, unit, lanes, flops / (2.0 * target.multiprocessors * lanes))
