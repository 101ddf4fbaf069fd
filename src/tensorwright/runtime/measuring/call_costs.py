"""Measure the cost of an empty step: of reading the clock, of a call, of threads.

A separate executable measures them in the way in which networks are timed.  Its steps copy no
bytes, or have threads without work.

The rates of moving bytes to a device, on it, and from it.

Time executables in turns, so that a disturbance affects all equally.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tensorwright.base import Array, CpuTarget, DType, detect_target
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.runtime.device import Device
from tensorwright.runtime.executable import Executable
from tensorwright.runtime.frame import Bound
from tensorwright.runtime.native.jit import object_code_of
from tensorwright.runtime.native.pool import usable_threads
from tensorwright.runtime.plan.plan import (
    CopyStep,
    InputRef,
    KernelSpec,
    KernelStep,
    OutputRef,
    Plan,
    Step,
    Team,
    TensorSpec,
)

_RUNS = 60
_MANY = 257
_SHAPE = (16,)


@dataclass(frozen=True, slots=True)
class CallCosts:
    """Costs in seconds.

    clock_s     a reading of the clock      step_s   an empty step
    enter_s     entering a run from Python, and starting its team
    threads_s   giving work to the awake threads of a team and waiting for them; 0 on one thread
    """

    clock_s: float
    step_s: float
    enter_s: float
    threads_s: float


def measure_call_costs(threads: int | None = None) -> CallCosts:
    """Medians of a few short runs, some milliseconds in all."""
    count = usable_threads(threads)
    one, many = _bound(_copies(1), count), _bound(_copies(_MANY), count)
    enter_one_s, many_s = _median_run(one), _median_run(many)
    step_s = max(0.0, (many_s - enter_one_s) / (_MANY - 1))
    timed_s = _median_step(many)
    threads_s = 0.0
    if count > 1:
        regions: list[Step] = [KernelStep(0, (), "nothing") for _ in range(_MANY)]
        threads_s = max(0.0, _median_step(_bound([*_copies(1), *regions], count)) - timed_s)
    clock_s = max(0.0, timed_s - step_s)
    return CallCosts(clock_s, step_s, max(0.0, enter_one_s - step_s), threads_s)


def _copies(count: int) -> list[Step]:
    """A plan that copies the output, followed by empty steps."""
    whole = CopyStep(InputRef(0), OutputRef(0), 4 * _SHAPE[0])
    return [whole, *(CopyStep(InputRef(0), OutputRef(0), 0) for _ in range(count - 1))]


def _bound(steps: list[Step], threads: int) -> Bound:
    target: CpuTarget = detect_target()
    x, y = (TensorSpec(name, DType.F32, _SHAPE) for name in "xy")
    kernels = (KernelSpec("nothing", ()),)
    teams = (Team(0, len(steps)),)
    plan = Plan("nothing", target, threads, (x,), (y,), (), kernels, tuple(steps), teams=teams)
    code = object_code_of(_nothing(), target)
    program = Executable(plan, (code,), (), threads=threads)
    return program.bind({"x": np.zeros(_SHAPE, np.float32)})


def _nothing() -> str:
    """LLVM IR of a kernel whose threads have no work."""
    module = Module()
    body = NativeFunction(module, "body", (Kind.POINTER,), is_internal=True)
    body.finish()
    kernel = NativeFunction(module, "nothing", (Kind.POINTER, Kind.POINTER, Kind.I32))
    arguments, _, threads = kernel.parameters
    flags = kernel.number(0, Kind.I32)
    kernel.do("GOMP_parallel", kernel.address_of(body), arguments, threads, flags)
    kernel.finish()
    return module.text()


def _median_run(bound: Bound) -> float:
    return median([bound.run_seconds() for _ in range(_RUNS)])


def _median_step(bound: Bound) -> float:
    """The median of the steps' times, without the first, which the last run may disturb."""
    bound.run_timed()
    return median(time_s for _ in range(_RUNS) for time_s in bound.run_timed()[1:])


_COPIED_BYTES = 1 << 24
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """How fast bytes move, in bytes per second; the seconds until a short copy is done."""

    to_device: float
    on_device: float
    from_device: float
    round_trip_s: float


def measure_rates(device: Device) -> DeviceRates:
    """Copy some megabytes in each direction, and take the best of a few times."""
    array = np.zeros(_COPIED_BYTES, np.uint8)
    one, other = device.allocate(array.nbytes), device.allocate(array.nbytes)
    short = np.zeros(64, np.uint8)
    to_s = _best(lambda: device.copy_in(array, one))
    on_s = min(device.time(lambda: device.copy(one, other)) for _ in range(_REPEATS))
    from_s = _best(lambda: device.copy_out(other, array))
    trip_s = _best(lambda: device.copy_in(short, one))
    to, on, back = (array.nbytes / max(each, 1e-9) for each in (to_s, on_s, from_s))
    return DeviceRates(to, on, back, trip_s)


def _best(work: Callable[[], object]) -> float:
    """The least seconds of a few calls, each of which is done on return."""
    times_s: list[float] = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - start)
    return min(times_s)


_LEAST_ROUNDS = 2


def seconds_in_turns(
    executables: Sequence[Executable],
    inputs: Mapping[str, Array],
    *,
    rounds: int,
    limit_s: float,
    should_stop: Callable[[], bool] | None = None,
) -> list[float] | None:
    """The typical seconds of one run of each; the arguments are those of `samples_in_turns`."""
    samples = samples_in_turns(executables, inputs, rounds, limit_s, should_stop)
    return None if samples is None else [typical_seconds(taken) for taken in samples]


def samples_in_turns(
    executables: Sequence[Executable],
    inputs: Mapping[str, Array],
    rounds: int,
    limit_s: float,
    should_stop: Callable[[], bool] | None = None,
) -> list[list[float]] | None:
    """Seconds of each executable, one number for each turn; None if `should_stop` became true.

    rounds    turns of each      limit_s   seconds after which no turn begins, except the first two
    """
    deadline = time.monotonic() + limit_s
    runs = [executable.bind(dict(inputs)) for executable in executables]
    samples: list[list[float]] = [[] for _ in runs]
    for number in range(rounds):
        for run, taken in zip(runs, samples, strict=True):
            if should_stop is not None and should_stop():
                return None
            run.run()
            taken.append(run.run_seconds())
        if number + 1 >= _LEAST_ROUNDS and time.monotonic() > deadline:
            break
    return samples


def typical_seconds(times: Sequence[float]) -> float:
    """The median of the faster half, because other load only adds time."""
    return statistics.median(faster_half(times))


def faster_half(times: Sequence[float]) -> list[float]:
    """The smaller half of some times, including the middle one."""
    return sorted(times)[: (len(times) + 1) // 2]
