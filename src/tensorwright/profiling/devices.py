"""The rates of a device with its own memory: arithmetic, bandwidth, and launches.

`python -m tensorwright.profiling.devices cuda` (or `opencl`) prints them as JSON for all devices of
a driver.  `doctor` runs it in a separate process, because a faulty driver may end its process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from tensorwright.artifacts import build_program, load_kernel
from tensorwright.base import DType, GpuApi, GpuTarget, Role, Target, now_utc, override
from tensorwright.expr import Load, Value, Var, constant
from tensorwright.loop import Allocate, Buffer, For, LoopProgram, Parameter, Store, block
from tensorwright.machine import MEMORY, Ceilings, Level
from tensorwright.runtime import DeviceFacts, device_facts, device_of, named_target
from tensorwright.runtime.measuring import DeviceRates, measure_rates
from tensorwright.schedule import ForKind, Scope

_CHAINS = 8  # independent sums of a thread
_THREADS = 128
_BLOCKS_PER_UNIT = 16
_LONG_S = 2e-3  # the least time of a measurement, so that its start does not count
_FIRST_ROUNDS, _MOST_ROUNDS = 1 << 10, 1 << 16
_LAUNCHES = 200
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """The measured speed of a device.

    flops_per_s   in f32; a multiply-add counts two      bytes_per_s   of a copy, read and written
    launch_s      seconds of one of many short launches in a row
    """

    flops_per_s: float
    bytes_per_s: float
    launch_s: float

    @property
    def ceilings(self) -> Ceilings:
        """The speed in the form of a processor's ceilings, with one thread."""
        memory = Level(MEMORY, float("inf"), self.bytes_per_s)
        return Ceilings(1, self.flops_per_s, (memory,), now_utc())


@dataclass(frozen=True, slots=True)
class MeasuredDevice:
    """A device, its rates of copies, and its speed."""

    facts: DeviceFacts
    rates: DeviceRates
    speed: DeviceSpeed


def measure_speed(target: Target) -> DeviceSpeed:
    """Measure the device that runs a target's code; it takes a second with PoCL.

    Raises:  MachineError without such a device, and without a compiler for its code.
    """
    assert isinstance(target, GpuTarget), "processors have `measure_ceilings`"
    rates = measure_rates(device_of(target))
    return _speed(target, rates)


def measure_devices(api: GpuApi) -> Iterator[MeasuredDevice]:
    """The devices of a driver without simulators, the preferred one first."""
    for facts in device_facts(api.value):
        if facts.is_simulator:
            continue
        with override(opencl_device=facts.name if api is GpuApi.OPENCL else ""):
            target = named_target(api.value)
            assert isinstance(target, GpuTarget)
            rates = measure_rates(device_of(target))
            yield MeasuredDevice(facts, rates, _speed(target, rates))


def _speed(target: GpuTarget, rates: DeviceRates) -> DeviceSpeed:
    rounds, blocks = _FIRST_ROUNDS, target.multiprocessors * _BLOCKS_PER_UNIT
    taken_s = _seconds(target, blocks, rounds)
    while taken_s < _LONG_S and rounds < _MOST_ROUNDS:
        rounds *= 64
        taken_s = _seconds(target, blocks, rounds)
    flops = 2.0 * _CHAINS * rounds * blocks * _THREADS
    launch_s = _seconds(target, 1, 1, _LAUNCHES) / _LAUNCHES
    return DeviceSpeed(flops / taken_s, 2 * rates.on_device, launch_s)


def _seconds(target: GpuTarget, blocks: int, rounds: int, count: int = 1) -> float:
    """The least seconds of `count` launches in a row, whose threads multiply and add."""
    kernel = build_program(multiply_adds(blocks, rounds), target)
    code, device = load_kernel(kernel), device_of(target)
    numbers = device.memory_of(np.full(_CHAINS, 0.5, np.float32))
    results = device.allocate(4 * blocks * _THREADS)
    workspace = device.allocate(0)
    table = np.array([[numbers.address, results.address]], np.uint64)

    def once() -> float:
        return device.time_calls(code.functions, table, workspace, 1, count=count)

    once()
    return max(1e-9, min(once() for _ in range(_REPEATS)))


def multiply_adds(blocks: int, rounds: int) -> LoopProgram:
    """x (chains) f32 -> y (blocks * threads) f32.

    Each thread computes s = s * x + x in as many sums as x has numbers, and stores their total.
    """
    x = Buffer("x", (_CHAINS,), DType.F32)
    y = Buffer("y", (blocks * _THREADS,), DType.F32)
    sums = Buffer("sums", (_CHAINS,), DType.F32, Scope.LOCAL)
    outer, own, turn = Var("block"), Var("thread"), Var("turn")
    chains = range(_CHAINS)
    begin = [Store(sums, (n,), Load(x, (n,))) for n in chains]
    step = [Store(sums, (n,), Load(sums, (n,)) * Load(x, (n,)) + Load(x, (n,))) for n in chains]
    total: Value = constant(0, DType.F32)
    for n in chains:
        total = total + Load(sums, (n,))
    body = block(
        *begin,
        For(turn, rounds, ForKind.SERIAL, block(*step)),
        Store(y, (outer * _THREADS + own,), total),
    )
    group = For(own, _THREADS, ForKind.THREAD_X, Allocate(sums, body))
    parameters = Parameter(x, Role.INPUT), Parameter(y, Role.OUTPUT)
    return LoopProgram("multiply_adds", parameters, For(outer, blocks, ForKind.BLOCK_X, group))


if __name__ == "__main__":
    print(json.dumps([asdict(each) for each in measure_devices(GpuApi(sys.argv[1]))]))
