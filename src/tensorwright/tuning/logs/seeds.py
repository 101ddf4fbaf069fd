"""Configurations of other tuners' templates as schedules of ours.

A line fits a template that has all of its knobs; knobs that only the template has are as the rule
chooses.  AutoTVM's names for the axes of its operators are ours under `SAME`, and a split into
fewer parts is one with tiles of 1 between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tensorwright.base import Target
from tensorwright.expr import Decision
from tensorwright.records.logs import AutoTvmLine, LoggedEntity
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.knobs import Entity, Knob
from tensorwright.tuning.space.sketch import Sketch
from tensorwright.tuning.space.templates import template_sketches
from tensorwright.tuning.strategies import Candidate
from tensorwright.tuning.strategies.random_search import candidate_of

SAME = {
    "conv": {"tile_oh": "tile_h", "tile_ow": "tile_w", "unroll_kw": "unroll_taps"},
    "depthwise": {"tile_oh": "tile_h", "tile_ow": "tile_w", "unroll_kw": "unroll_taps"},
    "dense": {"tile_y": "tile_i", "tile_x": "tile_j"},
}
"""What a knob of a task of AutoTVM is called here, by the beginning of the task's name."""


def seed_of(line: AutoTvmLine, state: ScheduleState, target: Target) -> Candidate | str:
    """The schedule that a line stands for, by the first template that it fits; or why none does."""
    entities = [_renamed(entity, line.task) for entity in line.entities]
    reasons: dict[str, str] = {}
    for sketch in template_sketches(state, target):
        found = _fit(entities, sketch)
        if isinstance(found, dict):
            return candidate_of(sketch, tuple(sorted(found.items())))
        reasons.setdefault(sketch.family, found)
    told = "; ".join(f"{family}: {reason}" for family, reason in reasons.items())
    return told or "no template speaks of this program"


def _renamed(entity: LoggedEntity, task: str) -> LoggedEntity:
    names = next((names for start, names in SAME.items() if task.startswith(start)), {})
    return LoggedEntity(names.get(entity.name, entity.name), entity.kind, entity.value)


def _fit(entities: Iterable[LoggedEntity], sketch: Sketch) -> dict[str, int] | str:
    """The decisions of a sketch in which its knobs are as some entities say; or what is not."""
    knobs = {knob.name: knob for knob in sketch.knobs}
    decisions = sketch.defaults
    for entity in entities:
        knob = knobs.get(entity.name)
        if knob is None:
            return f"there is no knob {entity.name}"
        taken = _taken(knob, entity)
        if taken is None:
            return f"{entity} is no value of it"
        decisions |= taken
    if sketch.genes_of(decisions) is None:
        return f"{_strange(sketch, decisions)} is not tried"
    if not sketch.is_valid(decisions):
        return "the tiles do not fit into registers"
    return decisions


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


def _strange(sketch: Sketch, decisions: Mapping[str, int]) -> str:
    """The first choice of a sketch that does not have what decisions say."""
    for choice in sketch.choices:
        row = tuple(decisions[name] for name in choice.names)
        if row not in choice.values:
            return ", ".join(f"{name} {decisions[name]}" for name in choice.names)
    return "this"
