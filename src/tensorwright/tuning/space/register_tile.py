"""The innermost loops of a stage: a tile of it that stays in registers, in vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tensorwright.base import CpuTarget
from tensorwright.schedule import Reorder, Split, Unroll, Vectorize
from tensorwright.tuning.space.axes.accesses import extent_of
from tensorwright.tuning.space.sketch import SketchBuilder


def accumulators(target: CpuTarget) -> int:
    """How many vectors of a tile may be tried: some more than there are registers.

    Beyond that every step of the reduction stores and loads vectors, which never pays.
    """
    return target.vector_registers * 6 // 5


def tile_registers(target: CpuTarget) -> int:
    """How many registers the sums of a tile and the vectors that its columns read share.

    One more holds an element that is spread over all lanes, where a multiply-add cannot do that.
    """
    return target.vector_registers - (not target.spreads_operands)


def split_vectors(
    builder: SketchBuilder, name: str, axis: str, width: int
) -> tuple[list[str], str]:
    """Split an axis of a stage into vectors: (the loop over them, unless it is one; the lanes)."""
    own = next(each for each in builder.state.stage(name).tensor.axes if each.name == axis)
    if extent_of(own.extent) <= width:
        return [], axis
    step = Split(name, axis, (width,))
    builder.do(step)
    return [step.children[0]], step.children[1]


def nest(
    builder: SketchBuilder,
    name: str,
    loops: Iterable[str],
    unrolled: Collection[str],
    vector: str,
) -> None:
    """Put all loops of a stage into their order: plain loops, then unrolled ones, then vectors."""
    builder.do(Reorder(name, (*loops, *unrolled, vector)))
    write_out(builder, name, unrolled, vector)


def write_out(builder: SketchBuilder, name: str, unrolled: Iterable[str], vector: str) -> None:
    """Unroll loops of a stage, and put another one into vectors."""
    for loop in unrolled:
        builder.do(Unroll(name, loop))
    builder.do(Vectorize(name, vector))
