"""The promises of split tails, checked again where a step changes what a stage computes."""

from __future__ import annotations

from math import prod

from tensorwright.expr import Index, decisions_of, is_nonnegative
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.primitive import refuse
from tensorwright.schedule.state import (
    After,
    AtRoot,
    FuseRelation,
    ScheduleState,
    SplitRelation,
    Stage,
    Tail,
)


def need_whole_tiles(step: object, before: ScheduleState, after: ScheduleState) -> None:
    """Refuse a step after which a split that is exact or shifted would not have whole tiles.

    Theorem: at the root a stage computes all of its tensor, and a reduction all of its axes, so
    what was checked when it was split stays true; inside another stage it computes what that
    stage's tile needs, which other steps change.
    """
    for stage in after.stages:
        _need_no_tiles_beyond(step, before, after, stage)
        _need_box_tiles(step, before, after, stage)
        if isinstance(stage.placement, AtRoot):
            continue
        for relation in _promises(stage):
            total = relation.tile
            try:
                extent = analyse(after).nests[stage.name].extents[relation.parent]
            except ValueError:  # an exact division with a rest, in this split or another one
                extent = 0
            if decisions_of(extent, total):
                continue
            has_rest = relation.tail is Tail.EXACT and not is_zero(extent % total)
            if has_rest or not is_nonnegative(extent - total):
                reason = f"{stage.name} is split by {total}, and no whole tile would be left"
                raise refuse(step, before, reason, "split with tail guard, or after this step")
        _need_full_tiles_for_readers(step, before, after, stage)


def _need_full_tiles_for_readers(
    step: object, before: ScheduleState, after: ScheduleState, stage: Stage
) -> None:
    """Refuse tiles of a placed stage that are cut off where a reader is computed after each.

    Theorem: a reader placed after a tile computes the whole tile, guarded by its tensor's end
    alone. At the root that is where the tiles end; inside another stage they end where its tile
    does, and beyond it nothing has been computed.
    """
    around = _followed_loops(after, stage)
    for relation in stage.relations if around else ():
        if not isinstance(relation, SplitRelation) or relation.parent in stage.reduce_loops:
            continue
        total = relation.tile
        extent = analyse(after).nests[stage.name].extents[relation.parent]
        if decisions_of(extent, total) or is_zero(extent % total):
            continue
        for loop in around:
            enclosing = stage.loops[: stage.loops.index(loop) + 1]
            if not set(relation.children).isdisjoint(enclosing):
                reason = f"{stage.name} is split by {total}, and a reader would run past its tile"
                raise refuse(step, before, reason, "split by what divides, or before it is placed")


def _need_no_tiles_beyond(
    step: object, before: ScheduleState, after: ScheduleState, stage: Stage
) -> None:
    """Refuse a loop that goes beyond its last tile where readers come after each tile.

    Theorem: a reader is guarded by the end of its tensor alone.  Only behind the last tile of an
    axis is that end; a tile behind those of an inner part of the axis lies in the next part, and a
    shifted tile begins inside the axis.  So readers cannot tell that nothing has been computed.
    """
    loops = _followed_loops(after, stage)
    ends_with_axis = {axis.name for axis in stage.tensor.axes}
    for relation in stage.relations if loops else ():
        if isinstance(relation, FuseRelation):
            ends_with_axis.add(relation.child)
            continue
        is_last = relation.parent in ends_with_axis
        if is_last:
            ends_with_axis.add(relation.children[0])
        if relation.tail is not Tail.GUARD:
            continue
        if is_last and relation.parent not in stage.overlapping_loops:
            continue
        extent = analyse(after).nests[stage.name].extents[relation.parent]
        if decisions_of(extent, relation.tile) or is_zero(extent % relation.tile):
            continue
        innermost = max(map(stage.loops.index, loops))
        if not set(relation.children).isdisjoint(stage.loops[: innermost + 1]):
            reason = f"a reader of {stage.name} would run after tiles beyond the last one"
            raise refuse(step, before, reason, "split by what divides the number of tiles")


def _need_box_tiles(
    step: object, before: ScheduleState, after: ScheduleState, stage: Stage
) -> None:
    """Refuse readers after tiles that are not boxes.

    Theorem: a reader computes the box around a tile, and what is read beside the tile has not been
    computed.  The tile of an axis that was split is a range if the loops inside are the innermost
    parts of the axis; other parts are elements at a distance.  Of (5, 7) elements in rows that were
    fused, tiles of 7 are boxes; tiles of 2 are not, since some go on in the next row.
    """
    loops = _followed_loops(after, stage)
    fused = {each.child: each for each in stage.relations if isinstance(each, FuseRelation)}
    for name in (*(axis.name for axis in stage.tensor.axes), *fused) if loops else ():
        leaves = _leaves(stage, name)
        for loop in loops:
            around = stage.loops[: stage.loops.index(loop) + 1]
            outer = tuple(leaf for leaf in leaves if leaf in around)
            inner = leaves[len(outer) :]
            if not outer or not inner:
                continue
            if outer != leaves[: len(outer)]:
                late = next(leaf for leaf in leaves if leaf not in around)
                reason = f"tiles of {name} are not ranges: {late} is inside {outer[-1]}"
                remedy = f"keep the order {', '.join(leaves)}"
                raise refuse(step, before, reason, remedy, (stage.name, loop))
            if name not in fused:
                continue
            extents = analyse(after).nests[stage.name].extents
            tile = prod((extents[leaf] for leaf in inner), start=1)
            if not _is_box(tile, [extents[parent] for parent in fused[name].parents]):
                reason = f"tiles of {tile} iterations of {name} are not boxes"
                remedy = "fuse the outer parts of its axes only"
                raise refuse(step, before, reason, remedy, (stage.name, loop))


def _followed_loops(state: ScheduleState, stage: Stage) -> list[str]:
    """The loops of a stage after whose tiles readers are computed."""
    placements = [each.placement for each in state.stages if isinstance(each.placement, After)]
    return [placement.loop for placement in placements if placement.stage == stage.name]


def _leaves(stage: Stage, loop: str) -> tuple[str, ...]:
    """The leaf loops that a loop was split into, outermost first."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            return tuple(leaf for child in relation.children for leaf in _leaves(stage, child))
    return (loop,) if loop in stage.loops else ()


def _is_box(tile: Index, extents: list[Index]) -> bool:
    """Whether `tile` elements in row-major order, from a multiple of `tile` on, are a box."""
    if decisions_of(tile, *extents):
        return True
    for extent in reversed(extents):
        if not isinstance(tile, int) or not isinstance(extent, int):
            return tile == 1 or extent == 1
        if tile <= extent:
            return extent % tile == 0
        if tile % extent:
            return False
        tile //= extent
    return True


def is_zero(remainder: Index) -> bool:
    """Whether what is left over is 0 for all values of the named sizes in it."""
    return isinstance(remainder, int) and remainder == 0


def _promises(stage: Stage) -> tuple[SplitRelation, ...]:
    return tuple(
        relation
        for relation in stage.relations
        if isinstance(relation, SplitRelation)
        and relation.tail is not Tail.GUARD
        and relation.parent not in stage.reduce_loops
    )
