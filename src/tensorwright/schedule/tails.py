"""What the tails of splits promise, checked again where a step changes what a stage computes."""

from __future__ import annotations

from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.primitive import refuse
from tensorwright.schedule.state import AtRoot, ScheduleState, SplitRelation, Stage, Tail


def need_whole_tiles(step: object, before: ScheduleState, after: ScheduleState) -> None:
    """Refuse a step after which a split that is exact or shifted would not have whole tiles.

    Theorem: at the root a stage computes all of its tensor, and a reduction all of its axes, so
    what was checked when it was split stays true; inside another stage it computes what that
    stage's tile needs, which other steps change.
    """
    for stage in after.stages:
        if isinstance(stage.placement, AtRoot):
            continue
        for relation in _promises(stage):
            try:
                extent = analyse(after).nests[stage.name].extents[relation.parent]
            except ValueError:  # an exact division with a rest, in this split or another one
                extent = 0
            total = _product(relation)
            if not isinstance(extent, int) or total is None:
                continue
            if extent < total or (relation.tail is Tail.EXACT and extent % total):
                reason = f"{stage.name} is split by {total}, and no whole tile would be left"
                raise refuse(step, before, reason, "split with tail guard, or after this step")


def _promises(stage: Stage) -> tuple[SplitRelation, ...]:
    return tuple(
        relation
        for relation in stage.relations
        if isinstance(relation, SplitRelation)
        and relation.tail is not Tail.GUARD
        and relation.parent not in stage.reduce_loops
    )


def _product(relation: SplitRelation) -> int | None:
    total = 1
    for factor in relation.factors:
        if not isinstance(factor, int):
            return None
        total *= factor
    return total
