"""Split a reduction over blocks: if a result has few tiles, blocks fold parts of the terms.

A first launch has partial results, which other rules tile as any fold.  A second one folds these.

Source:  Osama et al., Stream-K, PPoPP 2023, section 2 (split-k).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tensorwright.base import GpuTarget
from tensorwright.expr import Axis, Compute
from tensorwright.schedule import AtRoot, Rfactor, Split, Tail
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.predicates import is_untouched
from tensorwright.tuning.space.derived.rule import Verdict
from tensorwright.tuning.space.derived.thread_tiles import plan_threads
from tensorwright.tuning.space.sketch import divisors

_TILE = 32 * 32  # elements of a block that uses its operands well
_TERMS = 128  # of a part: fewer are not worth a second launch
_MOST_PARTS = 32
_WAVES = 4  # blocks for each multiprocessor that are wanted: they wait in turns
_FEWER = 2  # times fewer parts are tried, too


@dataclass(frozen=True, slots=True)
class SplitReductionOverBlocks:
    """Fold parts of a reduction in separate blocks; a sketch for each number of parts."""

    name: str = "reduction split over blocks"

    def applies(self, view: Derivation) -> Verdict:
        """If a multiprocessor has few tiles of a fold, and the fold has terms for more."""
        return Verdict.YES if _parts(view) else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The partial results come next."""
        tensor = view.stage.tensor
        axis = max(tensor.reduce_axes, key=lambda each: each.length)
        derived: list[Derivation] = []
        for parts in _parts(view):
            builder = view.grow()
            exact = axis.length % parts == 0
            tail = Tail.EXACT if exact else Tail.GUARD
            step = Split(view.current, axis.name, (-(-axis.length // parts),), tail)
            builder.do(step)
            builder.do(Rfactor(view.current, step.children[0], 0))
            derived.append(view.then(builder, f"{view.current} split over {parts} blocks"))
        return tuple(derived)


def _parts(view: Derivation) -> tuple[int, ...]:
    """The numbers of parts of a reduction, that by rule first."""
    tensor, name = view.stage.tensor, view.current
    is_free = isinstance(view.stage.placement, AtRoot) and is_untouched(view.state, view.stage)
    if tensor.reduction is None or not is_free or name.endswith(("_rf", "_cache")):
        return ()
    if any(reader.name in view.elements for reader in view.state.readers(name)):
        return ()
    if not all(isinstance(axis.extent, int) for axis in (*tensor.axes, *tensor.reduce_axes)):
        return ()
    wanted = _wanted(tensor, view.target)
    longest = max(tensor.reduce_axes, key=lambda each: each.length)
    terms = prod(axis.length for axis in tensor.reduce_axes)
    most = min(wanted, terms // _TERMS, _MOST_PARTS)
    if most < 2:
        return ()
    first = _divisor(longest, most)
    fewer = _divisor(longest, most // _FEWER)
    return tuple(dict.fromkeys(n for n in (first, fewer) if n > 1))


def _wanted(tensor: Compute, target: GpuTarget) -> int:
    """The number of parts that gives each multiprocessor enough blocks; 1 if the tiles alone do."""
    elements = prod(axis.length for axis in tensor.axes)
    tile = _TILE if plan_threads(tensor, tensor, target) else 1
    tiles = -(-elements // tile)
    waves = 1 if target.is_processor else _WAVES
    return -(-waves * target.multiprocessors // tiles)


def _divisor(axis: Axis, most: int) -> int:
    """The largest number of equal parts, or a power of two if the axis has no such divisors."""
    exact = divisors(axis.length, max(1, most))[-1]
    return exact if 2 * exact > most else min(axis.length, 1 << (max(1, most).bit_length() - 1))
