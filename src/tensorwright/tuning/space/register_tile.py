"""The innermost loops of a stage: a tile of it that stays in registers, in vectors.

The largest values of decisions and knobs, by kind of machine.

Larger ones have never paid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tensorwright import base, expr, schedule
from tensorwright.expr import Axis
from tensorwright.tuning.space.accesses import is_contiguous, lanes_for
from tensorwright.tuning.space.sketch import SketchBuilder


@dataclass(frozen=True, slots=True)
class TileLimits:
    """The greatest values for machines of a kind.

    rows         of a register tile, along one axis
    block_rows   of a block of rows, and of the tile of a window
    innermost    elements of the innermost tile along the lanes; of a thread along one axis
    whole_fold   the most terms of a reduction that is unrolled whole
    unrolled     terms of a longer one
    iterations   of a parallel loop that balance well
    """

    rows: int
    block_rows: int
    innermost: int
    whole_fold: int
    unrolled: int
    iterations: int


CPU_LIMITS = TileLimits(
    rows=28, block_rows=8, innermost=64, whole_fold=16, unrolled=16, iterations=64
)
GPU_LIMITS = TileLimits(
    rows=8, block_rows=8, innermost=8, whole_fold=16, unrolled=32, iterations=1024
)
TILE_LIMITS: base.ByKind[TileLimits] = {
    base.TargetKind.CPU: (CPU_LIMITS,),
    base.TargetKind.GPU: (GPU_LIMITS,),
}
"""One entry for each kind."""


def limits_of(target: base.TargetProtocol) -> TileLimits:
    """Those of a target's kind.  Raises: MachineError if it has none."""
    (limits,) = base.of_kind(TILE_LIMITS, target, "limits of tiles")
    return limits


def accumulators(target: base.CpuTarget) -> int:
    """The most vectors of a tile that are tried: some more than there are registers.

    With more, every step of the reduction stores and loads vectors, which never pays.
    """
    return target.vector_registers * 6 // 5


def tile_registers(target: base.CpuTarget) -> int:
    """The registers that the sums of a tile and the vectors of its columns share.

    One more holds an element that is spread over all lanes, if a multiply-add cannot do that. If it
    takes any lane of a register, the elements of each row have one of these, too.
    """
    return target.vector_registers - (not target.spreads_operands)


def split_vectors(
    builder: SketchBuilder, name: str, axis: str, width: int
) -> tuple[tuple[str, ...], str]:
    """Split an axis of a stage into vectors: (the loop over them, unless it is one; the lanes)."""
    own = next(each for each in builder.state.stage(name).tensor.axes if each.name == axis)
    if own.length <= width:
        return (), axis
    step = schedule.Split(name, axis, (width,))
    builder.do(step)
    return step.children[:1], step.children[1]


def nest(
    builder: SketchBuilder,
    name: str,
    loops: Iterable[str],
    unrolled: Collection[str],
    vector: str,
) -> None:
    """Put all loops of a stage into their order: plain loops, then unrolled ones, then vectors.

    The innermost unrolled loop is that over the columns of a tile. Inside of the rows it needs one
    broadcast element at a time; with the rows inside, all of them stay alive and the sums spill.
    """
    builder.do(schedule.Reorder(name, (*loops, *unrolled, vector)))
    write_out(builder, name, unrolled, vector)


def interleave(builder: SketchBuilder, name: str, row: str) -> None:
    """Fold all rows of a block at once, so that the chains of operations of rows overlap."""
    *loops, vector = builder.state.stage(name).loops
    builder.do(schedule.Reorder(name, (*(loop for loop in loops if loop != row), row, vector)))
    builder.do(schedule.Unroll(name, row))


def vectorise_last(
    builder: SketchBuilder, name: str, target: base.CpuTarget, most_unrolled: int = 0
) -> None:
    """Vectorize the innermost spatial axis of a stage, if all its reads are contiguous.

    most_unrolled   the most vectors of a fold that are unrolled
    """
    stage = builder.state.stage(name)
    axis = vector_axis(stage)
    if axis is None or axis.name not in stage.loops:
        return
    vectors, vector = split_vectors(builder, name, axis.name, lanes_for(target, stage))
    tile: tuple[str, ...] = (*running_loops(stage), vector)
    few = most_unrolled * lanes_for(target, stage)
    for loop in tile[:-1]:
        builder.do(schedule.Unroll(name, loop))
    if len(tile) == 1 and vectors and stage.tensor.reduction is not None and axis.length <= few:
        builder.do(schedule.Unroll(name, vectors[0]))
        tile = (*vectors, vector)
    loops = builder.state.stage(name).loops
    order = (*(loop for loop in loops if loop not in tile), *tile)
    if loops != order:
        builder.do(schedule.Reorder(name, order))
    builder.do(schedule.Vectorize(name, vector))


def running_loops(stage: schedule.Stage) -> tuple[str, ...]:
    """The loops of a short fold up to each position along an axis: of the axis, then of the fold.

    Unrolled, the sum up to a position is that up to the one before, and one element more.
    """
    tensor, body = stage.tensor, stage.tensor.body
    if len(tensor.reduce_axes) != 1 or not isinstance(body, expr.Select):
        return ()
    (folded,), condition = tensor.reduce_axes, body.condition
    if folded.length > CPU_LIMITS.whole_fold or not isinstance(condition, expr.Compare):
        return ()
    compared = {condition.left, condition.right} - {folded.var}
    own = [axis for axis in tensor.axes if {axis.var} == compared and axis.length == folded.length]
    return (own[0].name, folded.name) if own else ()


def vector_axis(stage: schedule.Stage) -> Axis | None:
    """The innermost spatial axis, if every read along it is contiguous or the same."""
    axes = [axis for axis in stage.tensor.axes if axis.length > 1]
    return axes[-1] if axes and is_contiguous(stage.tensor, axes[-1]) else None


def write_out(builder: SketchBuilder, name: str, unrolled: Iterable[str], vector: str = "") -> None:
    """Unroll loops of a stage, and vectorize another one, if any."""
    for loop in unrolled:
        builder.do(schedule.Unroll(name, loop))
    if vector:
        builder.do(schedule.Vectorize(name, vector))
