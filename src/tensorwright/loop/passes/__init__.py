"""Passes over loop nests, one file each. Read `simplify.py` first, then `partition.py`.

Every program goes through `run_passes`; after that, `run_target_passes` runs the passes that depend
on the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tensorwright.base import ByKind, CpuTarget, GpuTarget, Target, TargetKind, dump, knobs, of_kind
from tensorwright.loop.ir import LoopProgram
from tensorwright.loop.passes.barriers import place_barriers
from tensorwright.loop.passes.partition import cut_at_breakpoints, partition_loops
from tensorwright.loop.passes.promote import (
    expand_guarded_calls, hoist_conditions, promote_accumulators,
)
from tensorwright.loop.passes.simplify import simplify_loops
from tensorwright.loop.passes.verify import check_group_limits, verify
from tensorwright.loop.passes.version import unroll_guarded, version_guards
from tensorwright.loop.passes.whole_vectors import order_tiles, widen_local_buffers

Machine = TypeVar("Machine", bound=Target)


@dataclass(frozen=True, slots=True)
class Pass:
    """A transformation of loop nests that keeps the results."""

    name: str
    run: Callable[[LoopProgram], LoopProgram]


SIMPLIFY = Pass("simplify", simplify_loops)
HOIST = Pass("hoist", hoist_conditions)
VERSION = Pass("version", version_guards)
PARTITION = Pass("partition", partition_loops)
BREAKPOINTS = Pass("breakpoints", cut_at_breakpoints)
UNROLL_GUARDED = Pass("unroll_guarded", unroll_guarded)
EXPAND_CALLS = Pass("expand_calls", expand_guarded_calls)
WIDEN = Pass("widen", widen_local_buffers)

DEFAULT_PIPELINE = (
    *(SIMPLIFY, HOIST, UNROLL_GUARDED, VERSION, PARTITION, BREAKPOINTS),
    *(HOIST, EXPAND_CALLS, WIDEN),  # HOIST again, for conditions that cuts uncover
)


def run_passes(program: LoopProgram, passes: Sequence[Pass] = DEFAULT_PIPELINE) -> LoopProgram:
    """Run passes in order; the knob `dump` shows each result, the knob `verify` checks it.

    Raises:  InternalError if a pass breaks the program and the knob `verify` is on.
    """
    dump("loop", "lowered", program.__str__)
    check = knobs.VERIFY.get()
    for step in passes:
        program = step.run(program)
        if check:
            verify(program, allow_decisions=True)
        dump("loop", step.name, program.__str__)
    return program


@dataclass(frozen=True, slots=True)
class TargetPass(Generic[Machine]):
    """A pass that asks what the target has, over a program that the others have gone through."""

    name: str
    run: Callable[[LoopProgram, Machine], LoopProgram]


CPU_PASSES: tuple[TargetPass[CpuTarget], ...] = (
    TargetPass("promote_accumulators", promote_accumulators),
    TargetPass("order_tiles", order_tiles),
)
GPU_PASSES: tuple[TargetPass[GpuTarget], ...] = (
    TargetPass("promote_accumulators", promote_accumulators),
    TargetPass("group_limits", check_group_limits),
)
TARGET_PASSES: ByKind[TargetPass[Any]] = {
    TargetKind.CPU: CPU_PASSES,
    TargetKind.GPU: GPU_PASSES,
}


def run_target_passes(program: LoopProgram, target: Target) -> LoopProgram:
    """As `run_passes`, the passes of the target's kind."""
    for step in of_kind(TARGET_PASSES, target, "passes of loops"):
        program = step.run(program, target)
        if knobs.VERIFY.get():
            verify(program)
        dump("loop", step.name, program.__str__)
    return program
