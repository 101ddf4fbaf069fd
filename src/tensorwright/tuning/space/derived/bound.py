"""Sketches for graphics processors: what no rule has decided is bound to blocks and threads, and
what the device would refuse is noted as limits of the decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorwright.base import GpuTarget
from tensorwright.expr import Index
from tensorwright.loop import launches_of, lower, room_of
from tensorwright.schedule import THREADS, ScheduleState
from tensorwright.tuning.space.defaults.grid import bind_rest
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.predicates import is_untouched
from tensorwright.tuning.space.sketch import DeviceLimit, Sketch, SketchBuilder

THREADS_OF_BLOCK = "threads of a block"
_IDLE_LANES = "idle lanes"  # small results may leave more of them idle than is wanted
_IDLE = 4  # at most one of so many lanes of the warps of a block may have no thread


def bound_sketches(derivation: Derivation) -> Iterator[Sketch]:
    """The sketch of a complete derivation; none where its choice by rule is beyond the device."""
    builder = derivation.grow()
    done = frozenset(
        stage.name for stage in builder.state.stages if not is_untouched(builder.state, stage)
    )
    bind_rest(builder, derivation.target, done)
    if derivation.tiles:
        if not keep_to_device(builder, derivation.target, is_full=True):
            return
    yield builder.sketch(", ".join(derivation.notes) or "an element a thread")


def keep_to_device(builder: SketchBuilder, target: GpuTarget, *, is_full: bool = False) -> bool:
    """Note what the device would refuse as limits; False where it would refuse the choice by rule.

    is_full   whether it counts that lanes are idle, too, which small results do not avoid
    """
    defaults = builder.sketch("").defaults
    for limit in device_limits(builder.state, target):
        is_wish = limit.what == _IDLE_LANES
        holds = bool(limit.holds(defaults))
        if not holds and not is_wish:
            return False
        if holds and limit.names and (is_full or not is_wish):
            builder.limits.append(limit)
    return True


def device_limits(state: ScheduleState, target: GpuTarget) -> Iterator[DeviceLimit]:
    """What the device demands of a program with open decisions: threads, lanes that are not idle,
    shared memory.

    The expressions are those of the lowered program, so they are exact for each candidate.
    """
    for nest in launches_of(lower(state, has_barriers=False)).nests:
        threads: Index = prod(nest.extent(kind) for kind in THREADS)
        room: Index = sum(room_of(each) * each.dtype.size_bytes for each in nest.shared)
        wanted = (
            DeviceLimit(THREADS_OF_BLOCK, threads, target.threads_per_block),
            DeviceLimit(_IDLE_LANES, _IDLE * (-threads % target.warp) - threads, 0),
            DeviceLimit("bytes of shared memory", room, target.opt_in_shared_bytes),
        )
        yield from wanted
