"""Configurations of other tuners' templates as schedules of ours.

A line fits a template that has all of its knobs; knobs that only the template has are as the rule
chooses, or as small as they can be where tiles would not fit into registers.  AutoTVM's names for
the axes of its operators are ours under `SAME`, and a split into fewer parts is one with tiles of 1
between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from math import prod

from tensorwright.base import CpuTarget
from tensorwright.expr import Decision
from tensorwright.records.logs import AutoTvmLine, LoggedEntity
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.population.candidate import candidate_of
from tensorwright.tuning.space.knobs import Entity, Knob
from tensorwright.tuning.space.sketch import Sketch
from tensorwright.tuning.space.templates import template_sketches

SAME = {
    "conv": {"tile_oh": "tile_h", "tile_ow": "tile_w", "unroll_kw": "unroll_taps"},
    "depthwise": {"tile_oh": "tile_h", "tile_ow": "tile_w", "unroll_kw": "unroll_taps"},
    "dense": {"tile_y": "tile_i", "tile_x": "tile_j"},
}
"""What a knob of a task of AutoTVM is called here, by the beginning of the task's name."""


@dataclass(frozen=True, slots=True)
class _Misfit:
    """Why a sketch does not fit; `is_other` where another structure of its template may."""

    reason: str
    is_other: bool = False


def seed_of(line: AutoTvmLine, state: ScheduleState, target: CpuTarget) -> Candidate | str:
    """The schedule that a line stands for, by the first template that it fits; or why none does."""
    names = next((names for start, names in SAME.items() if line.task.startswith(start)), {})
    misfits: dict[str, _Misfit] = {}
    for sketch in template_sketches(state, target):
        found = _fit(line.entities, names, sketch)
        if not isinstance(found, _Misfit):
            return candidate_of(sketch, tuple(sorted(found.items())))
        known = misfits.get(sketch.family)
        if known is None or (known.is_other and not found.is_other):
            misfits[sketch.family] = found
    told = "; ".join(f"{family}: {misfit.reason}" for family, misfit in misfits.items())
    return told or "no template speaks of this program"


def _fit(
    entities: Iterable[LoggedEntity], names: Mapping[str, str], sketch: Sketch
) -> dict[str, int] | _Misfit:
    """The decisions of a sketch in which its knobs are as some entities say.

    names   what a knob is called here, where it is not as there
    """
    knobs = {knob.name: knob for knob in sketch.knobs}
    decisions = sketch.defaults
    named: set[str] = set()
    for entity in entities:
        knob = knobs.get(names.get(entity.name, entity.name))
        if knob is None:
            return _Misfit(f"no knob {entity.name}")
        taken = _taken(knob, entity)
        if taken is None:
            return _Misfit(f"{entity} is none of its values", is_other=not knob.is_open)
        decisions |= taken
        named |= taken.keys()
        choices = [choice for choice in sketch.choices if set(choice.names) & taken.keys()]
        rows = [tuple(decisions[name] for name in choice.names) for choice in choices]
        if any(row not in choice.values for row, choice in zip(rows, choices, strict=True)):
            return _Misfit(f"{entity} is none of its values")
    if sketch.is_valid(decisions):
        return decisions
    decisions |= _smallest(sketch, named)
    if sketch.is_valid(decisions):
        return decisions
    return _Misfit("the tiles do not fit into registers")


def _smallest(sketch: Sketch, named: Set[str]) -> dict[str, int]:
    """The smallest tiles that other choices of a sketch than those of some decisions have."""
    found: dict[str, int] = {}
    for choice in sketch.choices:
        if not named & set(choice.names):
            found |= dict(zip(choice.names, min(choice.values, key=prod), strict=True))
    return found


def _taken(knob: Knob, entity: LoggedEntity) -> dict[str, int] | None:
    """The decisions in which a knob is as an entity says; None where it cannot be."""
    if knob.entity.value != entity.kind:
        return None
    wanted = entity.value if isinstance(entity.value, tuple) else (entity.value,)
    parts = knob.value if isinstance(knob.value, tuple) else (knob.value,)
    if knob.entity is Entity.SPLIT:
        wanted, parts = wanted[1:], parts[1:]
        wanted = (*(1 for _ in range(len(parts) - len(wanted))), *wanted)
    if len(wanted) != len(parts):
        return None
    found: dict[str, int] = {}
    for part, value in zip(parts, wanted, strict=True):
        if isinstance(part, Decision) and isinstance(value, int):
            found[part.name] = value
        elif part != value:
            return None
    return found
