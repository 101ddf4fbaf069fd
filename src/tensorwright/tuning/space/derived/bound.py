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
from tensorwright.tuning.space.derived.fetch_variants import fetch_variants
from tensorwright.tuning.space.derived.predicates import is_untouched
from tensorwright.tuning.space.sketch import DeviceLimit, Sketch, SketchBuilder

THREADS_OF_BLOCK = "threads of a block"
_IDLE_LANES = "idle lanes"  # small results may leave more of them idle than is wanted
_IDLE = 4  # at most one of so many lanes of the warps of a block may have no thread


def bound_sketches(derivation: Derivation) -> Iterator[Sketch]:
    """The sketches of a complete derivation, one for each way to fetch the operands of its tiles;
    none where the choice by rule is beyond the device.
    """
    for words, builder in fetch_variants(derivation):
        done = frozenset(
            stage.name for stage in builder.state.stages if not is_untouched(builder.state, stage)
        )
        bind_rest(builder, derivation.target, done)
        family = ", ".join(derivation.notes) or "an element a thread"
        name = f"{family}; {words}" if words else family
        if derivation.tiles:
            sketch = builder.sketch("")
            limits = tuple(device_limits(builder.state, derivation.target))
            kept = [each for each in limits if _holds(each, sketch.defaults)]
            if any(each.what != _IDLE_LANES for each in limits if each not in kept):
                continue  # the device would refuse the choice by rule
            builder.limits += [each for each in kept if each.names]
        yield builder.sketch(name, family)


def _holds(limit: DeviceLimit, decisions: dict[str, int]) -> bool:
    """Whether the choice by rule keeps to a limit."""
    return bool(limit.holds(decisions))


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


def keep_to_device(builder: SketchBuilder, target: GpuTarget) -> bool:
    """Add what the device would refuse to the limits of a sketch; False where it would refuse the
    choice by rule.  A person who wrote a template may want idle lanes.
    """
    defaults = builder.sketch("").defaults
    refused = [each for each in device_limits(builder.state, target) if each.what != _IDLE_LANES]
    builder.limits += [each for each in refused if each.names]
    return all(_holds(each, defaults) for each in refused)
