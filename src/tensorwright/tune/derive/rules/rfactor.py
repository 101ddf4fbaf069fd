"""Make partial results, so that a fold of many terms into few elements can be parallel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tensorwright.expr import Axis
from tensorwright.schedule import Rfactor, Split, Tail
from tensorwright.tune.derive.derivation import Derivation
from tensorwright.tune.derive.predicates import has_more_reduction_parallelism
from tensorwright.tune.derive.rule import Verdict
from tensorwright.tune.space.common import ENOUGH_ITERATIONS, lanes_for
from tensorwright.tune.space.roles import extent_of
from tensorwright.tune.space.sketch import divisors


class _Factor(Enum):
    OUTER = "outer"  # a partial result for each part of the terms
    INNER = "inner"  # one for each lane


@dataclass(frozen=True, slots=True)
class FactorReduction:
    """Fold in two steps, with the outer or the inner part of the longest axis made spatial."""

    name: str = "factor the reduction"

    def applies(self, view: Derivation) -> Verdict:
        """Where a fold has few elements and many terms, and no rule has made it."""
        is_made_by_rule = view.current.endswith(("_rf", "_cache"))
        if not is_made_by_rule and has_more_reduction_parallelism(view.state, view.current):
            return Verdict.YES
        return Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """A state for each factor; the stage of partial results comes next."""
        tensor = view.stage.tensor
        axis = max(tensor.reduce_axes, key=lambda each: extent_of(each.extent))
        found: list[Derivation] = []
        for factor in _Factor:
            size = _size(axis, factor, view)
            if not 1 < size < extent_of(axis.extent):
                continue
            builder = view.grow()
            is_exact = extent_of(axis.extent) % size == 0
            tail = Tail.EXACT if is_exact else Tail.GUARD
            builder.do(Split(view.current, axis.name, (size,), tail))
            loop = f"{axis.name}_{'o' if factor is _Factor.OUTER else 'i'}"
            builder.do(Rfactor(view.current, loop))
            found.append(view.then(builder, f"{view.current} factored {factor.value}"))
        return tuple(found)


def _size(axis: Axis, factor: _Factor, view: Derivation) -> int:
    """The extent of the inner part."""
    extent = extent_of(axis.extent)
    if factor is _Factor.INNER:
        return lanes_for(view.target, view.stage)
    whole = [n for n in divisors(extent, extent) if extent // n <= ENOUGH_ITERATIONS]
    return min((n for n in whole if n > 1), default=-(-extent // ENOUGH_ITERATIONS))
