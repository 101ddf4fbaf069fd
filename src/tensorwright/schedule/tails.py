"""What tiles promise to those who read them, checked again where a step changes a tile."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from tensorwright import expr
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.intrinsics import (
    difference_of_loops,
    difference_of_operands,
    find_meaning,
)
from tensorwright.schedule.memory_layout import ForKind
from tensorwright.schedule.primitive import Checks
from tensorwright.schedule.sharing import allocation_loop
from tensorwright.schedule.state import (
    After,
    At,
    AtRoot,
    FuseRelation,
    ScheduleState,
    SplitRelation,
    Stage,
    Tail,
    reads_of,
)

_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)


def need_whole_tiles(at: Checks) -> None:
    """Refuse a step after which a tile would not be what a split, a reader or an intrinsic needs.

    Theorem: at the root a stage computes all of its tensor, and a reduction all of its axes, so
    what was checked when it was split stays true; inside another stage it computes what that
    stage's tile needs, which other steps change.
    """
    for stage in at.after.stages:
        placed = not isinstance(stage.placement, AtRoot)
        for relation in _promises(stage) if placed else ():
            total = relation.tile
            try:
                extent = analyse(at.after).nests[stage.name].extents[relation.parent]
            except ValueError:  # an exact division with a rest, in this split or another one
                extent = 0
            if expr.decisions_of(extent, total):
                continue
            has_rest = relation.tail is Tail.EXACT and not is_zero(extent % total)
            if has_rest or not expr.is_nonnegative(extent - total):
                reason = f"{stage.name} is split by {total}, and no whole tile would be left"
                raise at.refuse(reason, "split with tail guard, or after this step")
    for stage in at.after.stages:
        _need_no_tiles_beyond(at, stage)
        _need_box_tiles(at, stage)
        if not isinstance(stage.placement, AtRoot):
            _need_full_tiles_for_readers(at, stage)
    for stage in at.after.stages:
        _need_no_empty_tiles(at, stage)
        _need_finished_operands(at, stage)
        _need_no_overlap_of_readers(at, stage)
        _need_meaning_of_intrinsic(at, stage)


def _need_meaning_of_intrinsic(at: Checks, stage: Stage) -> None:
    """Refuse a step after which the loops that an intrinsic stands for are not its own any more.

    Theorem: it was compared with the part of the tensor that the stage computed then, and it stores
    all of its results.
    """
    if stage.intrinsic is None:
        return
    loop, name = stage.intrinsic
    meaning = find_meaning(name)
    assert meaning is not None, "tensorize has seen a meaning"
    difference = difference_of_loops(meaning, at.after, stage, loop)
    difference = difference or difference_of_operands(meaning, at.after, stage, loop)
    if difference:
        reason = f"{stage.name} is computed by {name}, and {difference}"
        raise at.refuse(reason, "keep its loops as long as they are", (stage.name, loop))


def _need_full_tiles_for_readers(at: Checks, stage: Stage) -> None:
    """Refuse tiles of a placed stage that are cut off where a reader is computed after each.

    Theorem: a reader placed after a tile computes the whole tile, guarded by its tensor's end
    alone. At the root that is where the tiles end; inside another stage they end where its tile
    does, and beyond it nothing has been computed.
    """
    around = _followed_loops(at.after, stage)
    for relation in stage.relations if around else ():
        if not isinstance(relation, SplitRelation) or relation.parent in stage.reduce_loops:
            continue
        total = relation.tile
        extent = analyse(at.after).nests[stage.name].extents[relation.parent]
        if expr.decisions_of(extent, total) or is_zero(extent % total):
            continue
        for loop in around:
            enclosing = stage.loops[: stage.loops.index(loop) + 1]
            if not set(relation.children).isdisjoint(enclosing):
                reason = f"{stage.name} is split by {total}, and a reader would run past its tile"
                raise at.refuse(reason, "split by what divides, or before it is placed")


def _need_no_overlap_of_readers(at: Checks, stage: Stage) -> None:
    """Refuse overlapping tiles around a reader that folds, or reads what all of them store.

    Theorem: two of them store the same number in one element.  A reader after the one would fold
    again what a reader after the other one reads; and it would read an element while the other one
    stores it, unless each tile has a buffer of its own.
    """
    overlapping: list[tuple[Stage, str]] = []
    own = _path(at.after, stage)
    for inner, host in pairwise(own):
        if not isinstance(inner.placement, After):
            return
        around = host.loops[: host.loops.index(inner.placement.loop) + 1]
        overlapping += [(host, loop) for loop in around if loop in host.overlapping_loops]
    is_whole = any(
        each.name in reads_of(stage.tensor) and allocation_loop(at.after, each) is None
        for each in own[1:]
    )
    for host, loop in overlapping:
        if stage.tensor.reduction is not None:
            reason = f"{stage.name} folds, and the tiles of {loop} overlap"
        elif is_whole and host.kind(loop) not in _ORDERED:
            reason = f"tiles of {loop} overlap, and {stage.name} follows each"
        else:
            continue
        raise at.refuse(reason, "split with tail guard", _mark(at.state, host, loop))


def _need_finished_operands(at: Checks, stage: Stage) -> None:
    """Refuse a stage computed after a tile, or in such a stage, that reads what is not finished.

    Theorem: a nest is finished before the next stage at the root begins.  In the stage's own nest,
    parts of tensors are: what is computed in the stage or for it, and of a stage whose tile is
    finished the elements of that tile.  The stage reads these if its index along each axis that the
    tile cuts is its own axis that the tile cuts there.
    """
    own = _path(at.after, stage)
    placed = next((each for each in own if isinstance(each.placement, After)), None)
    if placed is None or not isinstance(placed.placement, After):
        return
    host, here = placed.placement.stage, (placed.placement.stage, placed.placement.loop)
    order = [each.name for each in at.after.stages]
    for load in expr.loads_of(stage.tensor.body):
        if not at.after.has_stage(load.source.name):
            continue
        other = at.after.stage(load.source.name)
        path = _path(at.after, other)
        if path[-1] is not own[-1]:
            if order.index(path[-1].name) > order.index(own[-1].name):
                raise at.refuse(f"{other.name} is computed after {host}", "", here)
        elif isinstance(other.placement, At) or placed in path:
            continue
        elif placed is not stage or not _is_finished(at.after, own, path, load):
            reason = f"{stage.name} reads {other.name} where it is not finished"
            raise at.refuse(reason, "compute it outside of that nest", here)


def _path(state: ScheduleState, stage: Stage) -> list[Stage]:
    """A stage, the one in whose loops it is computed, and so on to the root."""
    path = [stage]
    while not isinstance(path[-1].placement, AtRoot):
        path.append(state.stage(path[-1].placement.stage))
    return path


def _is_finished(
    state: ScheduleState, own: list[Stage], path: list[Stage], load: expr.Load
) -> bool:
    """Whether a stage after a tile may read an element of a stage of the same nest.

    own, path   from the reader, and from what is read, to the root
    """
    if path[0] not in own:
        common = next(each for each in own if each in path)
        mine, theirs = own[own.index(common) - 1], path[path.index(common) - 1]
        order = [each.name for each in state.stages]
        moments = [
            (-common.loops.index(each.placement.loop), order.index(each.name))
            for each in (theirs, mine)
            if isinstance(each.placement, After)
        ]
        if len(moments) < 2 or moments[0] > moments[1]:
            return False
    stage, other = own[0], path[0]
    cut = _cut_axes(state, stage)
    wanted = _cut_axes(state, other)
    return all(
        axis.extent == 1
        or axis.var not in wanted
        or (isinstance(index, expr.Var) and cut.get(index) == wanted[axis.var])
        for axis, index in zip(other.tensor.axes, load.indices, strict=True)
    )


def _cut_axes(state: ScheduleState, stage: Stage) -> dict[expr.Var, expr.Var]:
    """The axes of a stage of which a tile has a part, and the axis of the root that each is."""
    if not isinstance(stage.placement, After):
        return {axis.var: axis.var for axis in stage.tensor.axes}
    host = state.stage(stage.placement.stage)
    of_host = _cut_axes(state, host)
    load = next(each for each in expr.loads_of(stage.tensor.body) if each.source.name == host.name)
    pairs = zip(load.indices, host.tensor.axes, strict=True)
    return {i: of_host[a.var] for i, a in pairs if isinstance(i, expr.Var) and a.var in of_host}


def _need_no_empty_tiles(at: Checks, stage: Stage) -> None:
    """Refuse tiles, as long as an axis or longer, that begin beyond its end, before readers.

    Theorem: tiles as long as the axis start at its beginning, so readers of the second, in which
    nothing is computed, would read all of it.  The outermost loop of a split has no such tiles.
    """
    followed = _followed_loops(at.after, stage)
    if not followed:
        return
    around = _parts_of_loops(stage, stage.loops[: max(map(stage.loops.index, followed)) + 1])
    extents = analyse(at.after).nests[stage.name].extents
    for relation in stage.relations:
        if not isinstance(relation, SplitRelation):
            continue
        tile, whole = 1, extents[relation.parent]
        for child, factor in zip(relation.children[:0:-1], relation.factors[::-1], strict=True):
            if expr.decisions_of(whole) or not isinstance(factor, int):
                break
            if child in around and factor != 1 and not expr.is_nonnegative(whole - tile - 1):
                reason = f"tiles of {child} lie beyond the end of the axis"
                raise at.refuse(reason, "split by less", _mark(at.state, stage, child))
            tile *= factor


def _mark(before: ScheduleState, stage: Stage, loop: str) -> tuple[str, str]:
    """What to mark in the program before a step: the loop, or the stage if the step makes it."""
    return stage.name, loop if loop in before.stage(stage.name).loops else ""


def _parts_of_loops(stage: Stage, leaves: tuple[str, ...]) -> set[str]:
    """Some leaf loops, and all loops of which they are parts."""
    loops = set(leaves)
    for relation in reversed(stage.relations):
        if isinstance(relation, FuseRelation):
            loops.update(relation.parents if relation.child in loops else ())
        elif not loops.isdisjoint(relation.children):
            loops.add(relation.parent)
    return loops


def _need_no_tiles_beyond(at: Checks, stage: Stage) -> None:
    """Refuse a loop that goes beyond its last tile where readers come after each tile.

    Theorem: a reader is guarded by the end of its tensor alone.  Only behind the last tile of an
    axis is that end; a tile behind those of an inner part of the axis lies in the next part, and a
    shifted tile begins inside the axis.  So readers cannot tell that nothing has been computed.
    """
    loops = _followed_loops(at.after, stage)
    innermost = max(map(stage.loops.index, loops), default=-1)
    cut = _parts_of_loops(stage, stage.loops[: innermost + 1])
    ends_with_axis = {axis.name for axis in stage.tensor.axes}
    for relation in stage.relations if loops else ():
        if isinstance(relation, FuseRelation):
            ends_with_axis.add(relation.child)
            continue
        is_last = relation.parent in ends_with_axis
        if is_last:
            ends_with_axis.add(relation.children[0])
        if relation.tail is not Tail.GUARD or relation.parent in stage.reduce_loops:
            continue
        if is_last and relation.parent not in stage.overlapping_loops:
            continue
        extent = analyse(at.after).nests[stage.name].extents[relation.parent]
        if expr.decisions_of(extent, relation.tile) or is_zero(extent % relation.tile):
            continue
        own = _parts_of_loops(stage, (relation.parent,))
        if any(axis.name in cut & own for axis in stage.tensor.axes):
            reason = f"a reader of {stage.name} would run after tiles beyond the last one"
            raise at.refuse(reason, "split by what divides the number of tiles")


def _need_box_tiles(at: Checks, stage: Stage) -> None:
    """Refuse readers after tiles that are not boxes.

    Theorem: a reader computes the box around a tile, and what is read beside the tile has not been
    computed.  The tile of an axis that was split is a range if the loops inside are the innermost
    parts of the axis; other parts are elements at a distance.  Of (5, 7) elements in rows that were
    fused, tiles of 7 are boxes; tiles of 2 are not, since some go on in the next row.
    """
    loops = _followed_loops(at.after, stage)
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
                raise at.refuse(reason, remedy, (stage.name, loop))
            if name not in fused:
                continue
            extents = analyse(at.after).nests[stage.name].extents
            tile = prod((extents[leaf] for leaf in inner), start=1)
            if not _is_box(tile, [extents[parent] for parent in fused[name].parents]):
                reason = f"tiles of {tile} iterations of {name} are not boxes"
                remedy = "fuse the outer parts of its axes only"
                raise at.refuse(reason, remedy, (stage.name, loop))


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


def _is_box(tile: expr.Index, extents: list[expr.Index]) -> bool:
    """Whether `tile` elements in row-major order, from a multiple of `tile` on, are a box."""
    if expr.decisions_of(tile, *extents):
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


def is_zero(remainder: expr.Index) -> bool:
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
