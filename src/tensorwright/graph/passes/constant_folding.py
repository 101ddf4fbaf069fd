"""Compute nodes that depend on constants only at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.base import ModelError, OpenSize
from tensorwright.graph.builder import LARGE_BYTES, frozen_array
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.interpret import run_node
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import (
    AT_POSITIONS,
    POSITIONS_INPUT,
    Array,
    Movement,
    Pattern,
    position_fault,
)

_WEIGHTS_BYTES = 32 << 20  # of quantised weights that become numbers
_REARRANGING = frozenset((Movement.COPY, Movement.RESHAPE, Movement.REORDER))


class FoldedConstants:
    """Results of nodes on constants, for graphs that share these: computed once for all graphs.

    Mutable: grows with each graph that is folded, and keeps the arrays.
    """

    def __init__(self) -> None:
        self._results: dict[tuple[object, ...], tuple[tuple[Array, ...], tuple[Array, ...]]] = {}

    def results(self, node: Node, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """The outputs of a node that reads these very arrays."""
        key = node.operator, str(node.attributes), *map(id, arrays)
        if key not in self._results:
            made = tuple(map(frozen_array, run_node(node, arrays)))
            self._results[key] = arrays, made  # the arrays live on, and so do their ids
        return self._results[key][1]


def fold_constants(graph: Graph, folded: FoldedConstants | None = None) -> tuple[Graph, int]:
    """Replace nodes whose inputs are all constants by constants.

    folded   constants of other graphs

    A result over a megabyte that is more than twice as large as the constants of the graph that it
    is made of is left to its readers, for example an `expand`.  There are two exceptions. Quantised
    weights become numbers, unless there are so many that reading them dominates. A generated
    operand of a product counts as its weights, which are packed like others.

    Raises:  ModelError for a constant position outside of what is read or written there.
    """
    origins: dict[str, int] = {}  # of each large folded constant: the bytes that it is made of

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.graphs:
            return None
        _check_positions(copy, node)
        arrays = {name: copy.constant(name) for name in node.inputs}
        given = {name: array for name, array in arrays.items() if array is not None}
        if len(given) < len(arrays) or _is_open(graph, node):
            return None
        size = sum(graph.types[name].size_bytes for name in node.outputs)
        origin = sum(origins.get(name, array.nbytes) for name, array in given.items())
        if not node.inputs and _feeds_product(graph, node.outputs):
            origin = size
        if size > LARGE_BYTES and size > 2 * origin:
            count = sum(prod(graph.types[name].extents) for name in node.outputs)
            if size > _WEIGHTS_BYTES or count > sum(array.size for array in given.values()):
                return None
        operands = tuple(given[name] for name in node.inputs)
        results = run_node(node, operands) if folded is None else folded.results(node, operands)
        names = tuple(
            copy.builder.constant(array, name)
            for name, array in zip(node.outputs, results, strict=True)
        )
        if size > LARGE_BYTES:
            origins.update(dict.fromkeys(names, origin))
        return names

    return rewrite(graph, rule)


def _is_open(graph: Graph, node: Node) -> bool:
    """Whether the result of a node depends on a named size."""
    values = [value for _, value in node.attributes]
    values += [graph.types[name].shape for name in node.outputs]
    listed = (each if isinstance(each, tuple) else (each,) for each in values)
    return any(isinstance(value, OpenSize) for each in listed for value in each)


def _feeds_product(graph: Graph, names: Sequence[str]) -> bool:
    """Whether a product reads one of these tensors, perhaps in another order."""
    for node in graph.nodes:
        if set(names).isdisjoint(node.inputs):
            continue
        operator = operator_of(node)
        if operator.pattern is Pattern.ANCHOR:
            return True
        if operator.movement in _REARRANGING and _feeds_product(graph, node.outputs):
            return True
    return False


def _check_positions(copy: Copy, node: Node) -> None:
    """Refuse constant positions that are outside, before the node is computed with them."""
    if node.operator not in AT_POSITIONS:
        return
    positions = copy.constant(node.inputs[POSITIONS_INPUT])
    if positions is None:
        return
    x = copy.type_of(node.inputs[0])
    fault = position_fault(node.operator, x, positions, node.attribute_map)
    if fault:
        reason = f"in {node.inputs[POSITIONS_INPUT]}, {fault}"
        remedy = "correct the positions in the model: they count from 0, or from -1 backwards"
        raise ModelError(stage="graph", where=node.label, reason=reason, remedy=remedy)
