"""Time several graphs of one network in turns: in tensorwright, or in another runtime.

Prices of networks on a device with its own memory, measured on the device.

For a given time, each new kernel is built with the schedule that it would get, and is measured.
The price of a later kernel is an estimate times a factor.  The estimate is the time of its
operations and bytes at the measured rates of the device.  The factor is the median ratio of
measured times to such estimates.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tensorwright.artifacts import build_cached, load_kernel
from tensorwright.base import GpuTarget, Target, TensorwrightError, number_in
from tensorwright.graph import (
    AliasCall,
    ConcatInPlace,
    Graph,
    KernelCall,
    Workload,
    bind_workload,
    partition,
    random_inputs,
    representative,
    writes_of_step,
)
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.ops import moved_bytes, work
from tensorwright.peers.process import compare_versions
from tensorwright.pipeline import cut, finish
from tensorwright.profiling import DeviceSpeed
from tensorwright.records import Records, RecordStore, Setting, opened
from tensorwright.rewriting import networks
from tensorwright.runtime import Executable, usable_threads
from tensorwright.runtime.measuring import seconds_in_turns
from tensorwright.tuning.selection import Chooser

_TURNS = 40
_TURNS_S = 4.0


def seconds_here(
    graphs: Sequence[Graph], target: Target, threads: int | None, records: Records | None
) -> Sequence[float]:
    """Seconds of an executable of each simplified graph, with the schedules on record."""
    executables: list[Executable] = []
    with opened(records) as store:
        for graph in graphs:
            parts = cut(graph, target, threads)
            executables.append(finish(parts, target, threads, store))
    inputs = random_inputs(parts.graph)
    times = seconds_in_turns(executables, inputs, rounds=_TURNS, limit_s=_TURNS_S)
    assert times is not None, "nothing stops the runs"
    return times


def seconds_elsewhere(
    graphs: Sequence[Graph], runtime: str, threads: int | None
) -> Sequence[float]:
    """Seconds of each graph as an ONNX model in another runtime.

    Raises:  MachineError if the other runtime is not installed, or fails.
    """
    with tempfile.TemporaryDirectory(prefix="tensorwright-trial-") as folder:
        paths: list[str] = []
        for number, graph in enumerate(graphs):
            paths.append(f"{folder}/{number}.onnx")
            save_onnx(graph, paths[-1])
        inputs = random_inputs(graphs[0])
        return compare_versions(runtime, paths, inputs, usable_threads(threads)).times_s


_REPEATS = 3
_COUNT = 4  # calls that are timed together


@dataclass(slots=True)
class DevicePrices:
    """Prices on a device; equal workloads have equal prices.

    store   the records of measured schedules
    until   the moment at which measuring ends
    """

    target: GpuTarget
    store: RecordStore
    speed: DeviceSpeed
    until: float
    _seconds: dict[str, float] = field(default_factory=dict)
    _ratios: list[float] = field(default_factory=list)
    _operators: dict[networks.TypedOperator, float] = field(default_factory=dict)

    def kernels_of(self, graph: Graph) -> tuple[networks.PricedKernel, ...]:
        """The kernels of a simplified network."""
        kernels: list[networks.PricedKernel] = []
        for step in partition(graph).steps:
            match step:
                case KernelCall(workload):
                    sized = bind_workload(workload, representative(workload.sizes))
                    names = tuple(name for node in step.nodes for name in node.outputs)
                    kernels.append(networks.PricedKernel(self.price(sized), names))
                case AliasCall() | ConcatInPlace():
                    kernels.append(networks.PricedKernel(0.0, (step.output,)))
                case _:
                    kernels.append(networks.PricedKernel(self.speed.launch_s, writes_of_step(step)))
        return tuple(kernels)

    def seconds(self, use: networks.TypedOperator) -> float:
        """Seconds of an application of an operator; 0 if all of its inputs are constants."""
        speed = self.speed
        quick = networks.Roofline(speed.flops_per_s, speed.bytes_per_s, speed.launch_s).seconds(use)
        if use.operator not in networks.ANCHORS or not quick:
            return quick
        if use not in self._operators:
            self._operators[use] = networks.network_seconds(self, networks.network_of(use)) or quick
        return self._operators[use]

    def price(self, workload: Workload) -> float:
        """Seconds of a workload with its schedule, measured or estimated."""
        if workload.key not in self._seconds:
            least_s = self._least_seconds(workload)
            taken_s = self._measured(workload) if time.monotonic() < self.until else None
            if taken_s is None:
                taken_s = least_s * math.exp(float(np.median(self._ratios or [0.0])))
            else:
                self._ratios.append(math.log(taken_s / least_s))
            self._seconds[workload.key] = taken_s
        return self._seconds[workload.key]

    def _least_seconds(self, workload: Workload) -> float:
        moved = moved_bytes(workload.outputs) / self.speed.bytes_per_s
        return self.speed.launch_s + max(work(workload.outputs) / self.speed.flops_per_s, moved)

    def _measured(self, workload: Workload) -> float | None:
        """Seconds of a call on zeros; None if the workload cannot be built or run alone."""
        try:
            schedule = Chooser(Setting(self.target, 1), self.store).choose(workload).schedule
            kernel = build_cached(workload, schedule, self.target)
            code = load_kernel(kernel)
            sizes = [number_in(each.size_bytes) for each in kernel.spec.arguments]
            memory = [code.device.memory_of(np.zeros(size, np.uint8)) for size in sizes]
            workspace = code.device.allocate(kernel.spec.scratch_bytes(1))
        except (TensorwrightError, MemoryError):
            return None
        table = np.array([[each.address for each in memory]], np.uint64)
        times_s = [
            code.device.time_calls(code.functions, table, workspace, 1, count=_COUNT) / _COUNT
            for _ in range(_REPEATS)
        ]
        return max(1e-9, min(times_s))
