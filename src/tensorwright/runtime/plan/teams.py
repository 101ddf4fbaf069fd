"""Choose the number of threads of each step, and the steps that share a team, before a plan runs.

    plan = choose_teams(plan)                       by the work of each step
    plan = choose_teams(plan, seconds_of=predict)   by predicted seconds
    plan = choose_teams(plan, limits={3: 1})        kernel 3 on one thread, by measurement

A short step runs on as few threads as have enough work: handing a piece to another thread and
fetching its results takes a few tenths of a microsecond. All steps between two host steps are one
team, except long stretches on one thread, in which the other threads would only wait.
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
    block_borders,
    is_native,
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
    """The teams; each begins and ends with a step on several threads."""
    for shared in _stretches(steps, plan, seconds_of):
        if len(shared) > 1:
            yield Team(shared[0], shared[-1] + 1)


def _stretches(steps: Sequence[Step], plan: Plan, seconds_of: SecondsOf) -> Iterator[list[int]]:
    """The steps on several threads, cut at host steps and at long waits between them."""
    shared: list[int] = []
    waited_s = 0.0
    borders = set(block_borders(steps))
    for position, step in enumerate(steps):
        if not is_native(step) or position in borders or waited_s > _LONGEST_WAIT_S:
            yield shared
            shared, waited_s = [], 0.0
        if not isinstance(step, KernelStep):
            continue
        if step.most_threads == 1:
            waited_s += seconds_of(step, plan.target)
        else:
            shared.append(position)
            waited_s = 0.0
    yield shared
