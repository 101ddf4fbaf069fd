"""The rows that row operators fold, and the tensors that belong to the same rows."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import Shape
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.ops import Fold

_OF_ROWS = frozenset((Fold.AXES, Fold.AXIS, Fold.TRAILING))


@dataclass(frozen=True, slots=True)
class Rows:
    """A tensor of `shape` as rows: each runs over the dimensions `axes` and is folded alone."""

    shape: Shape
    axes: frozenset[int]

    def has_shape(self, shape: Shape) -> bool:
        """Whether such a tensor has one element for each element of the rows, or for each row."""
        kept = tuple(1 if at in self.axes else n for at, n in enumerate(self.shape))
        dropped = tuple(n for at, n in enumerate(self.shape) if at not in self.axes)
        return shape in (self.shape, kept, dropped)


def is_row_operator(node: Node) -> bool:
    """Whether a node folds whole dimensions (and not windows)."""
    return operator_of(node).fold in _OF_ROWS


def rows_of(graph: Graph, node: Node) -> Rows:
    """The rows that a row operator folds."""
    shape = graph.types[node.inputs[0]].shape
    rank = len(shape)
    attributes = node.attribute_map
    fold = operator_of(node).fold
    if fold is Fold.AXES:
        given = attributes["axes"]
        listed = given if isinstance(given, tuple) else ()
        axes = [axis % rank for axis in listed if isinstance(axis, int)] or list(range(rank))
    else:
        axis = attributes["axis"]
        first = axis % rank if isinstance(axis, int) and rank else 0
        axes = list(range(first, rank)) if fold is Fold.TRAILING else [first]
    return Rows(shape, frozenset(axes))
