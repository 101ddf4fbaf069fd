"""Choose the number of threads of each step, and the steps that share a team, before a plan runs.

    plan = choose_teams(plan)                       by the work of each step
    plan = choose_teams(plan, seconds_of=predict)   by predicted seconds
    plan = choose_teams(plan, limits={3: 1})        kernel 3 on one thread, by measurement

A short step runs on as few threads as have enough work: handing a piece to another thread and
fetching its results takes a few tenths of a microsecond. All steps between two host steps are one
team, with all iterations of the loops among them, except long stretches on one thread, in which the
other threads would only wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from tensorwright.base import Target, cpu_target, number_in
from tensorwright.machine import NOMINAL
from tensorwright.runtime.plan.plan import (
    BufferRef,
    KernelStep,
    Plan,
    Step,
    Team,
    blocks_of,
    native_steps,
)

SecondsOf: TypeAlias = Callable[[KernelStep[BufferRef], Target], float]
"""Predicts the seconds of a step on one thread."""

Limits: TypeAlias = Mapping[int, int]
"""Number of a kernel -> the most threads on which it runs; 0 is all."""

_LONGEST_WAIT_S = 1e-3
_LEAST_VECTOR_BYTES = 16


def estimate_seconds(step: KernelStep[BufferRef], target: Target) -> float:
    """The estimated time of a step on one thread, if it reads from the second cache."""
    vector_bytes = max(cpu_target(target).vector_bytes, _LEAST_VECTOR_BYTES)
    computing_s = number_in(step.flops) / (NOMINAL.flops_per_s_and_byte * vector_bytes)
    return max(computing_s, number_in(step.bytes_moved) / NOMINAL.near_bytes_per_s)


def choose_teams(
    plan: Plan, seconds_of: SecondsOf = estimate_seconds, limits: Limits = MappingProxyType({})
) -> Plan:
    """The plan with a number of threads for each kernel, and with teams.

    limits   the most threads of some kernels, 0 for all; `seconds_of` decides for the others, with
             typical values of named sizes
    """
    numbers = plan.at({size.name: size.typical for size in plan.sizes})
    limited = tuple(_limited(step, plan, seconds_of, limits) for step in numbers.steps)
    teams = () if plan.threads == 1 else tuple(_teams(limited, plan, seconds_of))
    steps = tuple(map(_as_limited, plan.steps, limited))
    return replace(plan, steps=steps, teams=teams)


def without_teams(plan: Plan) -> Plan:
    """The plan in which each kernel leases as many threads as there are."""
    steps = tuple(
        replace(step, most_threads=0) if isinstance(step, KernelStep) else step
        for step in plan.steps
    )
    return replace(plan, steps=steps, teams=())


def _as_limited(step: Step, limited: Step) -> Step:
    """The step with the number of threads of the other."""
    if isinstance(step, KernelStep) and isinstance(limited, KernelStep):
        return replace(step, most_threads=limited.most_threads)
    return step


def _limited(step: Step, plan: Plan, seconds_of: SecondsOf, limits: Limits) -> Step:
    if not isinstance(step, KernelStep):
        return step
    if step.kernel in limits:
        return replace(step, most_threads=limits[step.kernel])
    count = max(1, math.floor(min(seconds_of(step, plan.target) / NOMINAL.share_s, 1e6)))
    return replace(step, most_threads=0 if count >= plan.threads else count)


def _teams(steps: Sequence[Step], plan: Plan, seconds_of: SecondsOf) -> Iterator[Team]:
    """The teams; each begins and ends with a step on several threads, or with a loop over such."""
    native = native_steps(steps)

    def in_block(begin: int, end: int) -> Iterator[Team]:
        shared: list[tuple[int, int]] = []
        waited_s = 0.0
        for position, blocks in blocks_of(steps, begin, end):
            last = blocks[-1][1] if blocks else position + 1
            kernels = [step for step in steps[position:last] if isinstance(step, KernelStep)]
            alone = [step for step in kernels if step.most_threads == 1]
            alone_s = sum(seconds_of(step, plan.target) for step in alone)
            joins = native[position] and len(alone) < len(kernels) and alone_s <= _LONGEST_WAIT_S
            waited_s += alone_s
            if (blocks and not joins) or not native[position] or waited_s > _LONGEST_WAIT_S:
                yield from _team(steps, shared)
                shared, waited_s = [], 0.0
            if joins:
                shared.append((position, last))
                waited_s = 0.0
            for first, stop in blocks if not native[position] else ():
                yield from in_block(first, stop)
        yield from _team(steps, shared)

    return in_block(0, len(steps))


def _team(steps: Sequence[Step], shared: Sequence[tuple[int, int]]) -> Iterator[Team]:
    """The team of some steps in order, unless one kernel is all of it."""
    if len(shared) > 1 or any(not isinstance(steps[first], KernelStep) for first, _ in shared):
        yield Team(shared[0][0], shared[-1][1])
