"""Constants: compute what depends on them alone when the program is built, write out small ones."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.expr import Axis, loads_of
from tensorwright.schedule import FoldConstant, Reorder, Unroll, Vectorize
from tensorwright.tuning.space.axes.accesses import (
    count_of,
    elements_of,
    is_contiguous,
    reads_along,
)
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.rule import Verdict
from tensorwright.tuning.space.steps import constant_stages

_MOST_ELEMENTS = 64  # of a constant whose numbers are written out
_MOST_COPIES = 2048  # of the body


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """Leave a stage that depends on a constant alone to the builder of the program."""

    name: str = "fold constant"

    def applies(self, view: Derivation) -> Verdict:
        """If the stage reads one constant, which nothing else reads, and nothing more."""
        is_one = view.current in constant_stages(view.state)
        return Verdict.YES_AND_SKIP_REST if is_one else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The stage gone, its tensor a constant."""
        builder = view.grow()
        builder.do(FoldConstant(view.current))
        return (view.then(builder),)


@dataclass(frozen=True, slots=True)
class SimplifyConstants:
    """Unroll the loops of a fold that move a small constant: the transforms of Winograd."""

    name: str = "simplify constant tensors"

    def applies(self, view: Derivation) -> Verdict:
        """If a fold reads a small constant, and all of its terms can be unrolled."""
        return Verdict.YES_AND_SKIP_REST if moved_axes(view) else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """Other axes outside, contiguous ones in lanes, the rest unrolled."""
        tensor = view.stage.tensor
        moved = moved_axes(view)
        others = [axis for axis in tensor.axes if axis not in moved]
        lanes = [axis for axis in others if is_contiguous(tensor, axis)][-1:]
        outer = [axis.name for axis in others if axis not in lanes]
        unrolled = [axis.name for axis in (*moved, *tensor.reduce_axes)]
        inner = [axis.name for axis in lanes]
        builder = view.grow()
        builder.do(Reorder(view.current, (*outer, *unrolled, *inner)))
        for loop in unrolled:
            builder.do(Unroll(view.current, loop))
        for loop in inner:
            builder.do(Vectorize(view.current, loop))
        return (view.then(builder, f"{view.current} unrolled"),)


def moved_axes(view: Derivation) -> tuple[Axis, ...]:
    """The axes of the stage that a small constant moves along; none if unrolling does not pay."""
    tensor = view.stage.tensor
    small = [
        load
        for load in loads_of(tensor.body)
        if load.source.name in view.state.constants and elements_of(load.source) <= _MOST_ELEMENTS
    ]
    if tensor.reduction is None or not small:
        return ()
    moved = tuple(
        axis
        for axis in tensor.axes
        if axis.extent != 1 and any(reads_along(load, axis.var) for load in small)
    )
    copies = count_of((*moved, *tensor.reduce_axes))
    others = [axis for axis in tensor.axes if axis not in moved and axis.extent != 1]
    return moved if copies <= _MOST_COPIES and others else ()
