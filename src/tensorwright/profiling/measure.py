"""Time the steps of a network while it runs, and name the bottleneck of each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median
from typing import Any

import numpy as np

from tensorwright import base, runtime
from tensorwright.artifacts import StepNames, read_step_names
from tensorwright.compile_options import CompileArguments
from tensorwright.compiling import compile
from tensorwright.graph import Program
from tensorwright.machine import Ceilings, LoadWatch, MachineState, kept_ceilings, refine_ceilings
from tensorwright.ops import Array
from tensorwright.pipeline import Model
from tensorwright.processes import hold_turn
from tensorwright.profiling import roofline
from tensorwright.profiling.devices import measure_speed
from tensorwright.profiling.report import Profile, StepKind, StepProfile
from tensorwright.runtime.measuring import CallCosts, measure_call_costs, measure_ceilings
from tensorwright.schedule import SkipZeros, UseAlgorithm, parse_schedule, steps_of

_BUDGET_S = 3.0
_LEAST_RUNS = 10
_MOST_RUNS = 2000
_WARM_UP_RUNS = 3
_MOST_TRIES = 3  # to measure the roofline, while a step is above it
_STARTS_THREADS = b"GOMP_parallel"


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(CompileArguments):
    """The options of `profile`, beside those of `compile` for what it compiles.

    inputs    arrays by name; inputs that are not given are random, drawn from `seed`
    repeats   the number of runs; if None, as many as take 3 seconds
    at        values of named sizes; a size that is left out is 1 if it counts samples, else a
              number between its bounds
    """

    inputs: Mapping[str, Any] | None = None
    repeats: int | None = None
    at: Mapping[str, int] | None = None
    seed: int | None = None


@base.takes_options(ProfileOptions)
def profile(program: runtime.Executable | Model | Program, how: ProfileOptions) -> Profile:
    """Time each step of a network as it runs among the others, and name its bottleneck.

    program   an executable, the path of a saved one, or any input of `compile`

    Runs with timed steps and runs that are timed as a whole take turns; times are medians. On a
    device, its own clock times each launch. The roofline is measured afterwards, and again while a
    step is above it. Other running programs make it too low, so the highest measured rates are kept
    and used. The roofline of a device is measured once, and not kept.
    Raises:  UsageError for fewer than one repeat; InputError for inputs that do not fit; the errors
             of `compile` and `load`; MachineError if there is no device for its code.
    """
    repeats = how.repeats
    if repeats is not None and repeats < 1:
        raise base.UsageError(
            stage="profile",
            where="argument repeats",
            reason=f"{repeats} runs cannot be timed",
            remedy="give 1 or more, or None for as many as take 3 seconds",
        )
    executable = _executable(program, how)
    chosen = executable.chosen_sizes(**(how.at or {}))
    executable = executable.at(**chosen) if chosen else executable
    arrays = _arrays(executable, how)
    with hold_turn():
        watch = LoadWatch()
        samples = _measure(executable, arrays, repeats)
        others = watch.load()
        if not isinstance(executable.target, base.CpuTarget):
            return replace(_of_device(executable, samples), at=tuple(chosen.items()))
        kept = kept_ceilings(executable.target, executable.threads)
        costs = measure_call_costs(executable.threads)
        for _ in range(_MOST_TRIES):
            now, ceilings, alone = _measure_machine(executable)
            report = make_profile(executable, samples, ceilings, alone, costs)
            if not report.above_roofline:
                break
    state = MachineState(others, now, kept)
    return replace(report, at=tuple(chosen.items()), state=state)


def _of_device(executable: runtime.Executable, samples: Samples) -> Profile:
    """The profile on a device, whose ceilings are measured once."""
    speed = measure_speed(executable.target)
    costs = CallCosts(0.0, speed.launch_s, 0.0, 0.0)
    return make_profile(executable, samples, speed.ceilings, speed.ceilings, costs)


def _measure_machine(executable: runtime.Executable) -> tuple[Ceilings, Ceilings, Ceilings]:
    """The present ceilings; the maxima of the present and the kept ones; those of one thread."""
    target, threads = base.cpu_target(executable.target), executable.threads
    now = measure_ceilings(target, threads)
    best = refine_ceilings(target, now)
    alone = refine_ceilings(target, measure_ceilings(target, 1)) if threads > 1 else best
    return now, best, alone


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds of whole runs, and of each step (runs, steps) in runs that were timed by step."""

    networks_s: tuple[float, ...]
    steps_s: tuple[tuple[float, ...], ...]


def make_profile(
    executable: runtime.Executable,
    samples: Samples,
    ceilings: Ceilings,
    alone: Ceilings,
    costs: CallCosts,
) -> Profile:
    """The profile that follows from measurements.

    alone   the ceilings of one thread
    """
    plan = executable.plan.at_capacity
    names = read_step_names(executable.sources)
    schedules = _schedules(executable.sources)
    network_s = median(samples.networks_s)
    rows: list[StepProfile] = []
    positions = _positions(plan.steps)
    for number, (step, operands) in enumerate(
        zip(plan.steps, roofline.operands_of(plan), strict=True)
    ):
        measured_s = median(times[number] for times in samples.steps_s)
        is_host = not runtime.is_native(step)
        time_s = measured_s if is_host else max(0.0, measured_s - costs.clock_s)
        has_threads = (
            isinstance(step, runtime.KernelStep)
            and _STARTS_THREADS in executable.objects[step.kernel]
        )
        bounds, bottleneck = _explain(step, operands, time_s, has_threads, ceilings, alone, costs)
        outputs, workload = _names_of(names, positions[number])
        rows.append(
            StepProfile(
                number=number,
                label=step.label,
                kind=_kind(step),
                outputs=outputs,
                workload=workload,
                time_s=time_s,
                share=time_s / network_s if network_s > 0 else 0.0,
                flops=_flops(step),
                bytes_moved=roofline.moved_bytes_of(step),
                bounds=bounds,
                bottleneck=bottleneck,
                is_tuned=schedules.get(workload, (None, ""))[0],
                saves_by=schedules.get(workload, (None, ""))[1],
            )
        )
    return Profile(
        name=plan.name,
        target=plan.target.name,
        threads=ceilings.threads,
        runs=len(samples.networks_s),
        network_s=network_s,
        fluctuation_s=_fluctuation(samples),
        steps=tuple(rows),
        views=names.views,
        ceilings=ceilings,
        costs=costs,
    )


def _fluctuation(samples: Samples) -> float:
    """The median of the sums minus the sum of the medians."""
    medians: list[float] = [median(times) for times in zip(*samples.steps_s, strict=True)]
    sums = [sum(times) for times in samples.steps_s]
    return median(sums) - sum(medians)


def _executable(
    program: runtime.Executable | Model | Program, how: ProfileOptions
) -> runtime.Executable:
    if isinstance(program, runtime.Executable):
        return program
    if isinstance(program, str | os.PathLike) and runtime.is_executable(program):
        return runtime.load(program, how.threads)
    return compile(program, how)


def _arrays(executable: runtime.Executable, how: ProfileOptions) -> dict[str, Any]:
    """The given inputs, and random ones; the executable refuses unknown names."""
    seed = base.knobs.SEED.get() if how.seed is None else how.seed
    generator = np.random.default_rng(seed)
    drawn: dict[str, Array] = {
        spec.name: runtime.random_array(spec, generator) for spec in executable.inputs
    }
    return drawn | dict(how.inputs or {})


def _measure(
    executable: runtime.Executable, arrays: Mapping[str, Any], repeats: int | None
) -> Samples:
    bound = executable.bind(arrays)
    for _ in range(_WARM_UP_RUNS):
        bound.run_timed()
    networks_s: list[float] = []
    steps_s: list[tuple[float, ...]] = []
    end = time.perf_counter() + _BUDGET_S
    while not _is_enough(len(networks_s), repeats, end):
        bound.run()  # wakes the threads, which fell asleep since the last run
        networks_s.append(bound.run_seconds())
        bound.run()
        steps_s.append(bound.run_timed())
    return Samples(tuple(networks_s), tuple(steps_s))


def _is_enough(runs: int, repeats: int | None, end: float) -> bool:
    if repeats is not None:
        return runs >= repeats
    return runs >= _MOST_RUNS or (runs >= _LEAST_RUNS and time.perf_counter() > end)


def _explain(
    step: runtime.Step,
    operands: tuple[roofline.Operand, ...],
    time_s: float,
    has_threads: bool,
    ceilings: Ceilings,
    alone: Ceilings,
    costs: CallCosts,
) -> tuple[roofline.Bounds, roofline.Bottleneck]:
    flops = _flops(step)
    if not runtime.is_native(step):
        return roofline.bounds_of(ceilings, flops, operands), roofline.Bottleneck.HOST
    calls_s = costs.step_s + (costs.threads_s if has_threads else 0.0)
    bounds = roofline.bounds_of(ceilings, flops, operands, calls_s)
    if has_threads or ceilings.threads == 1:
        return bounds, roofline.bottleneck_of(time_s, bounds)
    one = roofline.bounds_of(alone, flops, operands, calls_s)
    if time_s < costs.threads_s:  # more threads would not help
        return bounds, roofline.bottleneck_of(time_s, one)
    return bounds, roofline.bottleneck_of(time_s, bounds, one)


def _kind(step: runtime.Step) -> StepKind:
    match step:
        case runtime.KernelStep():
            return StepKind.KERNEL
        case runtime.CopyStep() | runtime.CollectStep():
            return StepKind.COPY
        case _:
            return StepKind.HOST


def _flops(step: runtime.Step) -> int:
    return base.number_in(step.flops) if isinstance(step, runtime.KernelStep) else 0


def _positions(steps: Sequence[runtime.Step]) -> tuple[int | None, ...]:
    """The number of each step among the steps of the network; None for a copy between memories."""
    moves = [
        isinstance(step, runtime.CopyStep)
        and isinstance(step.source, runtime.DeviceRef)
        is not isinstance(step.destination, runtime.DeviceRef)
        for step in steps
    ]
    before = accumulate((not moved for moved in moves), initial=0)
    return tuple(None if moved else count for moved, count in zip(moves, before, strict=False))


def _names_of(names: StepNames, number: int | None) -> tuple[tuple[str, ...], str]:
    """The outputs and the workload of a step; copies of outputs come last and have none."""
    if number is None or number >= len(names.steps):
        return (), ""
    return names.steps[number].outputs, names.steps[number].workload


def _schedules(sources: Mapping[str, str]) -> dict[str, tuple[bool | None, str]]:
    """For each workload by its key: whether its schedule was measured, and its `saves_by`."""
    rows = json.loads(sources.get("schedules", "[]"))
    return {row["key"]: (row["tuned"], _saves_by(row.get("trace", ""))) for row in rows}


def _saves_by(trace: str) -> str:
    """As `StepProfile.saves_by`; "" if this version cannot read the trace."""
    try:
        steps = steps_of(parse_schedule(trace))
    except (base.UsageError, base.ScheduleError):
        return ""
    for step in steps:
        if isinstance(step, UseAlgorithm) and step.algorithm.startswith("winograd"):
            return "Winograd's algorithm"
    return "skipping zeros" if any(isinstance(step, SkipZeros) for step in steps) else ""
