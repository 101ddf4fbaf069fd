"""Measure the cost of an empty step: of reading the clock, of a call, of threads.

A separate executable measures them in the way in which networks are timed.  Its steps copy no
bytes, or have threads without work.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from tensorwright.base import CpuTarget, DType, detect_target
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.runtime.bound_call import Bound
from tensorwright.runtime.executable import Executable
from tensorwright.runtime.native.own_code import object_code_of
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
