"""Remove nodes that no output depends on, and nodes that change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

from tensorwright import ops
from tensorwright.base import DType, ModelError, OpenSize
from tensorwright.expr import NamedSize
from tensorwright.graph.builder import LARGE_BYTES, frozen_array
from tensorwright.graph.graph import Graph, Node, digest
from tensorwright.graph.infer import operator_of
from tensorwright.graph.interpret import run_node
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.graph.sizes import counted_size_of, sizes_used

_HELD = frozenset(
    {
        *((DType.BOOL, held) for held in DType),
        (DType.I32, DType.I64),
        (DType.I32, DType.F64),
        (DType.I16, DType.F32),
        (DType.F16, DType.F32),
        (DType.F32, DType.F64),
    }
)
"""(a type, one that holds all of its numbers)."""


def remove_identities(graph: Graph) -> tuple[Graph, int]:
    """Let the readers of a node that changes nothing read its input.

    Rewrite:  y = identity(x); f(y)    ->    f(x)
    The same for casts to the same type, reshapes to the same shape, empty pads, full slices, single
    concats, and casts there and back through a type that holds all numbers of the first.
    """
    outputs = frozenset(graph.outputs)
    fixed = outputs.union(graph.inputs)

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if len(node.inputs) != 1 or len(node.outputs) != 1:
            return None
        (output,) = node.outputs
        if node.operator == "cast":
            before = copy.producer(node.inputs[0])
            if before is not None and before.operator == "cast":
                first, held = (copy.type_of(each.inputs[0]) for each in (before, node))
                if first == graph.types[output] and (first.dtype, held.dtype) in _HELD:
                    return before.inputs
        if node.operator == "identity" and output in outputs and node.inputs[0] in fixed:
            return None  # it gives the value of another name to an output
        source = copy.type_of(node.inputs[0])
        if source != graph.types[output]:
            return None
        changes_nothing = operator_of(node).is_identity(source, node.attribute_map)
        return node.inputs if changes_nothing else None

    return rewrite(graph, rule)


def remove_dead_code(graph: Graph) -> tuple[Graph, int]:
    """Drop nodes and constants that no output depends on; inputs stay, they are the signature.

    A node that decides a size is needed where the size is.  The count is that of the nodes.
    """
    needed = set(graph.outputs)
    deciding = {
        node.outputs[0]: size for node in graph.nodes if (size := counted_size_of(node)) is not None
    }
    sizes: set[NamedSize] = set()
    kept = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs) or deciding.get(node.outputs[0]) in sizes:
            kept.append(node)
            needed.update(node.inputs)
            sizes.update(sizes_used(node, graph.types) if deciding else ())
    dropped = len(graph.nodes) - len(kept)
    constants = {name: array for name, array in graph.constants.items() if name in needed}
    if not dropped and len(constants) == len(graph.constants):
        return graph, 0
    alive = {*graph.inputs, *constants, *(name for node in kept for name in node.outputs)}
    return (
        replace(
            graph,
            nodes=tuple(reversed(kept)),
            constants=MappingProxyType(constants),
            types=MappingProxyType({n: t for n, t in graph.types.items() if n in alive}),
            layouts=MappingProxyType({n: v for n, v in graph.layouts.items() if n in alive}),
        ),
        dropped,
    )


# Larger constants are compared by identity: hashing weights costs more than it saves.
_SMALL_BYTES = 1 << 16


def merge_common_subexpressions(graph: Graph) -> tuple[Graph, int]:
    """Merge nodes with the same operator, inputs and attributes.

    Rewrite:  a = f(x); b = f(x); g(a, b)    ->    a = f(x); g(a, a)
    Constants count as the same input where they are the same small array.
    """
    keys: dict[str, object] = {}
    for name, array in graph.constants.items():
        keys[name] = digest(array) if array.nbytes <= _SMALL_BYTES else name
    seen: dict[object, tuple[str, ...]] = {}

    def rule(_: Copy, node: Node) -> Sequence[str] | None:
        inputs = tuple(keys.get(name, name) for name in node.inputs)
        # repr tells 0.0 from -0.0 and 1 from True, and finds nan equal to nan
        key = (node.operator, inputs, repr(node.attributes), node.graphs)
        first = seen.setdefault(key, node.outputs)
        return None if first == node.outputs else first

    return rewrite(graph, rule)


_WEIGHTS_BYTES = 32 << 20  # of quantised weights that become numbers
_REARRANGING = frozenset((ops.Movement.COPY, ops.Movement.RESHAPE, ops.Movement.REORDER))


class FoldedConstants:
    """Results of nodes on constants, for graphs that share these: computed once for all graphs.

    Mutable: grows with each graph that is folded, and keeps the arrays.
    """

    def __init__(self) -> None:
        self._results: dict[
            tuple[object, ...], tuple[tuple[ops.Array, ...], tuple[ops.Array, ...]]
        ] = {}

    def results(self, node: Node, arrays: tuple[ops.Array, ...]) -> tuple[ops.Array, ...]:
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
        is_wider = node.operator == "cast" and copy.type_of(node.inputs[0]).dtype is DType.BF16
        is_packed = node.operator == "dequantize_blocks" or is_wider
        if is_packed and _feeds_one_product(graph, node.outputs[0]):
            return None  # its kernel takes them apart, in registers
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


def _feeds_one_product(graph: Graph, name: str) -> bool:
    """Whether one node reads a tensor, and it is a product, perhaps of another order of it."""
    readers = [node for node in graph.nodes if name in node.inputs]
    return len(readers) == 1 and name not in graph.outputs and _feeds_product(graph, [name])


def _feeds_product(graph: Graph, names: Sequence[str]) -> bool:
    """Whether a product reads one of these tensors, perhaps in another order."""
    for node in graph.nodes:
        if set(names).isdisjoint(node.inputs):
            continue
        operator = operator_of(node)
        if operator.pattern is ops.Pattern.ANCHOR:
            return True
        if operator.movement in _REARRANGING and _feeds_product(graph, node.outputs):
            return True
    return False


def _check_positions(copy: Copy, node: Node) -> None:
    """Refuse constant positions that are outside, before the node is computed with them."""
    own = operator_of(node)
    if not own.has_positions:
        return
    positions = copy.constant(node.inputs[ops.POSITIONS_INPUT])
    if positions is None:
        return
    x = copy.type_of(node.inputs[0])
    fault = ops.position_fault(own, x, positions, node.attribute_map)
    if fault:
        reason = f"in {node.inputs[ops.POSITIONS_INPUT]}, {fault}"
        remedy = "correct the positions in the model: they count from 0, or from -1 backwards"
        raise ModelError(stage="graph", where=node.label, reason=reason, remedy=remedy)
