"""One tree of decisions, as LightGBM writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright.base import RecordError

MOST_LEAVES = 1 << 15  # so that 16 bits can number the nodes, leaves included
_GREATEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree.  A row goes to `left` where its feature is at most the threshold.

    features, thresholds, left, right   one for each inner node, the root first; a child that is
                                        negative is the leaf ~child
    leaves                              the value of each leaf
    """

    features: tuple[int, ...]
    thresholds: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    leaves: tuple[float, ...]

    def __post_init__(self) -> None:
        nodes = len(self.leaves) - 1
        sides = (self.features, self.thresholds, self.left, self.right)
        if not 1 <= len(self.leaves) <= MOST_LEAVES or any(len(side) != nodes for side in sides):
            raise fault(f"{len(self.leaves)} leaves do not match its nodes")
        if min(self.features, default=0) < 0:
            raise fault("a feature has a negative number")
        expected = [*range(-len(self.leaves), 0), *range(1, nodes)]
        if sorted((*self.left, *self.right)) != expected * (nodes > 0):
            raise fault("its nodes do not form a tree")
        if any(child >= 0 and child <= n for n, child in self._children()):
            raise fault("a node comes before its parent")
        numbers = (*self.thresholds, *self.leaves)
        if not all(-_GREATEST <= number <= _GREATEST for number in numbers):
            raise fault("a number is not finite")

    def _children(self) -> Iterator[tuple[int, int]]:
        yield from enumerate(self.left)
        yield from enumerate(self.right)


def fault(reason: str) -> RecordError:
    """The error for a tree."""
    return RecordError(stage="cost model", where="tree", reason=reason, remedy="train it again")
