"""Compute at compile time what depends on constants only."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.base import ModelError
from tensorwright.graph.builder import frozen_array
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.interpret import run_node
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import AT_POSITIONS, POSITIONS_INPUT, Array, position_fault

_SMALL_BYTES = 1 << 20
_WEIGHTS_BYTES = 32 << 20  # of codes that become numbers


class FoldedConstants:
    """What nodes made of constants, for graphs that share these: computed once for all of them.

    Mutable: grows with each graph that is folded, and keeps the arrays.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], tuple[tuple[Array, ...], tuple[Array, ...]]] = {}

    def results(self, node: Node, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """The outputs of a node that reads these very arrays."""
        key = node.operator, str(node.attributes), *map(id, arrays)
        if key not in self._found:
            made = tuple(map(frozen_array, run_node(node, arrays)))
            self._found[key] = arrays, made  # the arrays live on, and so do their ids
        return self._found[key][1]


def fold_constants(graph: Graph, known: FoldedConstants | None = None) -> tuple[Graph, int]:
    """Replace nodes whose inputs are all constants by constants.

    known   of other graphs

    Not where the result is over a megabyte and much larger than the inputs, as an `expand` may be;
    but codes of weights become numbers, unless these are so many that to read them is the work.

    Raises:  ModelError for a constant position outside of what is read or written there.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        _check_positions(copy, node)
        arrays = tuple(copy.constant(name) for name in node.inputs)
        given = tuple(array for array in arrays if array is not None)
        if len(given) < len(arrays):
            return None
        size = sum(graph.types[name].size_bytes for name in node.outputs)
        if size > _SMALL_BYTES and size > 2 * sum(array.nbytes for array in given):
            count = sum(prod(graph.types[name].shape) for name in node.outputs)
            if size > _WEIGHTS_BYTES or count > sum(array.size for array in given):
                return None
        results = run_node(node, given) if known is None else known.results(node, given)
        return tuple(
            copy.builder.constant(array, name)
            for name, array in zip(node.outputs, results, strict=True)
        )

    return rewrite(graph, rule)


def _check_positions(copy: Copy, node: Node) -> None:
    """Refuse positions that are constant and outside, before anything answers with them."""
    if node.operator not in AT_POSITIONS:
        return
    positions = copy.constant(node.inputs[POSITIONS_INPUT])
    if positions is None:
        return
    x = copy.type_of(node.inputs[0])
    fault = position_fault(node.operator, x, positions, node.attribute_map)
    if fault:
        reason = f"in {node.inputs[POSITIONS_INPUT]}, {fault}"
        raise ModelError(stage="graph", where=node.label, reason=reason)
