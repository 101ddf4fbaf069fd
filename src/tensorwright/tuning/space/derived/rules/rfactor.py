"""Make partial results, so that a fold of many terms into few elements can be parallel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tensorwright.expr import Axis
from tensorwright.schedule import Rfactor, Split, Tail
from tensorwright.tuning.space.axes.accesses import lanes_for
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.predicates import (
    contiguous_axis,
    has_data_reuse,
    has_more_reduction_parallelism,
)
from tensorwright.tuning.space.derived.rule import Verdict
from tensorwright.tuning.space.sketch import divisors
from tensorwright.tuning.space.tile_limits import limits_of


class _Factor(Enum):
    OUTER = "outer"  # a partial result for each part of the terms
    INNER = "inner"  # one for each lane


@dataclass(frozen=True, slots=True)
class FactorReduction:
    """Fold in two steps, with the outer or the inner part of the longest axis made spatial."""

    name: str = "factor the reduction"

    def applies(self, view: Derivation) -> Verdict:
        """If a fold has few elements and many terms, or contiguous terms but no such elements."""
        if view.current.endswith(("_cache", "_rf_rf")):
            return Verdict.NO
        if view.current.endswith("_rf"):
            return Verdict.YES_AND_SKIP_REST if _lacks_lanes(view) else Verdict.NO
        enough = limits_of(view.target).iterations
        is_apt = has_more_reduction_parallelism(view.state, view.current, enough)
        return Verdict.YES if is_apt else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """A state for each factor; the stage of partial results comes next."""
        axes = view.stage.tensor.reduce_axes
        longest = max(axes, key=lambda each: each.length)
        contiguous = contiguous_axis(view.stage.tensor, axes)
        inner = longest if contiguous is None else contiguous
        states: list[Derivation] = []
        for factor in (_Factor.INNER,) if view.current.endswith("_rf") else tuple(_Factor):
            axis = inner if factor is _Factor.INNER else longest
            size = _size(axis, factor, view)
            if not 1 < size < axis.length:
                continue
            builder = view.grow()
            is_exact = axis.length % size == 0
            tail = Tail.EXACT if is_exact else Tail.GUARD
            builder.do(Split(view.current, axis.name, (size,), tail))
            loop = f"{axis.name}_{'o' if factor is _Factor.OUTER else 'i'}"
            builder.do(Rfactor(view.current, loop))
            states.append(view.then(builder, f"{view.current} factored {factor.value}"))
        return tuple(states)


def _lacks_lanes(view: Derivation) -> bool:
    """Whether vectors cannot lie along the elements of a fold, but along its terms."""
    tensor = view.stage.tensor
    if has_data_reuse(view.state, view.current):
        return False
    if contiguous_axis(tensor, tensor.axes) is not None:
        return False
    axis = contiguous_axis(tensor, tensor.reduce_axes)
    return axis is not None and axis.length >= 2 * lanes_for(view.target, view.stage)


def _size(axis: Axis, factor: _Factor, view: Derivation) -> int:
    """The extent of the inner part."""
    extent = axis.length
    if factor is _Factor.INNER:
        return lanes_for(view.target, view.stage)
    enough = limits_of(view.target).iterations
    whole = [n for n in divisors(extent, extent) if extent // n <= enough]
    return min((n for n in whole if n > 1), default=-(-extent // enough))
