"""Nodes that move no data: each output is a piece of the memory of an input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tensorwright import ops
from tensorwright.base import DType, Shape
from tensorwright.expr import Index
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, free_name
from tensorwright.graph.infer import operator_of
from tensorwright.graph.physical import is_row_major, memory_order, outer_extent

ALIGNMENT_BYTES = 64  # every argument of a kernel begins at a multiple of this


def view_offsets(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """The byte of the first input's memory at which each output begins; None if not a view.

    Views are reshapes of tensors that lie in row-major order, copies and transpositions that keep
    the order of the elements in memory, and aligned pieces along the outermost dimension.
    """
    match operator_of(node).movement:
        case ops.Movement.CROP:
            return _piece_offsets(graph, node)
        case ops.Movement.RESHAPE:
            is_same = all(
                is_row_major(ops.sizes_of(graph.types[each]), graph.layouts.get(each, PLAIN))
                for each in (node.inputs[0], node.outputs[0])
            )
        case ops.Movement.COPY:
            is_same = _memory(graph, node.inputs[0]) == _memory(graph, node.outputs[0])
        case ops.Movement.REORDER:
            is_same = "perm" in node.attribute_map and _is_still(graph, node)
        case _:
            return None
    return (0,) if is_same else None


def moves_nothing(graph: Graph, node: Node) -> bool:
    """Whether a node is a view, or a concat whose parts may lie in the memory of the whole."""
    return view_offsets(graph, node) is not None or concat_offsets(graph, node) is not None


def concat_offsets(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """The byte of the output at which each input begins; None if one is not an aligned piece."""
    if operator_of(node).movement is not ops.Movement.JOIN:
        return None
    whole = graph.types[node.outputs[0]]
    axis = _number(node, "axis") % len(whole.shape)
    starts: list[Index] = []
    start: Index = 0
    for name in node.inputs:
        starts.append(start)
        start = start + ops.sizes_of(graph.types[name])[axis]
    return _offsets(graph, node.outputs[0], node.inputs, axis, starts)


def _piece_offsets(graph: Graph, node: Node) -> tuple[int, ...] | None:
    source = ops.sizes_of(graph.types[node.inputs[0]])
    if node.operator == "split":
        axis = _number(node, "axis") % len(source)
        sizes = [ops.sizes_of(graph.types[name])[axis] for name in node.outputs]
        starts: list[Index] = [sum(sizes[:at]) for at in range(len(sizes))]
        return _offsets(graph, node.inputs[0], node.outputs, axis, starts)
    cut = _contiguous_cut(node, source)
    if cut is None:
        return None
    return _offsets(graph, node.inputs[0], node.outputs, cut[0], [cut[1]])


def _contiguous_cut(node: Node, shape: tuple[Index, ...]) -> tuple[int, Index] | None:
    """(dimension, first index) of a slice that shortens one dimension at most, with step 1."""
    taken = ops.slices_taken(shape, node.attribute_map)
    cut = [(axis, first) for axis, (first, n, _) in enumerate(taken) if n != shape[axis]]
    if len(cut) > 1 or any(step != 1 for _, _, step in taken):
        return None
    return cut[0] if cut else (0, 0)


def _offsets(
    graph: Graph, whole: str, parts: tuple[str, ...], axis: int, starts: list[Index]
) -> tuple[int, ...] | None:
    """Byte offsets of parts along the outermost dimension of a tensor.

    None if the dimension is not the outermost one in memory, or if an offset is not aligned or
    depends on a named size.
    """
    layout = graph.layouts.get(whole, PLAIN)
    type_ = graph.types[whole]
    shape = ops.sizes_of(type_)
    if outer_extent(shape, layout, axis) != 1 or 0 in shape:
        return None
    if any(not _lies_alike(graph, part, layout) for part in parts):
        return None
    step = ops.product_of((*shape[:axis], *shape[axis + 1 :])) * type_.dtype.size_bytes
    grain = layout.block if layout.axis == axis else 1
    if any(start % grain != 0 for start in starts):
        return None
    places = [start * step for start in starts]
    offsets = tuple(offset for offset in places if isinstance(offset, int))
    if len(offsets) < len(places):
        return None
    is_inner_blocked = layout.block > 1 and layout.axis != axis
    if any(offset % ALIGNMENT_BYTES for offset in offsets) or is_inner_blocked:
        return None
    return offsets


def _lies_alike(graph: Graph, name: str, layout: Layout) -> bool:
    own = graph.layouts.get(name, PLAIN)
    shape = ops.sizes_of(graph.types[name])
    fits = layout.block == 1 or shape[layout.axis] % layout.block == 0
    return fits and (own == layout or memory_order(shape, own) == memory_order(shape, layout))


def _memory(graph: Graph, name: str) -> tuple[tuple[int, Index], ...]:
    return memory_order(ops.sizes_of(graph.types[name]), graph.layouts.get(name, PLAIN))


def _is_still(graph: Graph, node: Node) -> bool:
    """Whether a transposition leaves the order of the elements as it is."""
    rank = len(graph.types[node.inputs[0]].shape)
    given = node.attribute_map.get("perm", ())
    perm = given if isinstance(given, tuple) and given else tuple(reversed(range(rank)))
    before = tuple((perm.index(at), extent) for at, extent in _memory(graph, node.inputs[0]))
    return before == _memory(graph, node.outputs[0])


def _number(node: Node, name: str) -> int:
    value = node.attribute_map[name]
    return value if isinstance(value, int) else 0


_OF_ROWS = frozenset((ops.Fold.AXES, ops.Fold.AXIS, ops.Fold.TRAILING))


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
    if fold is ops.Fold.AXES:
        given = attributes["axes"]
        listed = given if isinstance(given, tuple) else ()
        axes = [axis % rank for axis in listed if isinstance(axis, int)] or list(range(rank))
    else:
        axis = attributes["axis"]
        first = axis % rank if isinstance(axis, int) and rank else 0
        axes = list(range(first, rank)) if fold is ops.Fold.TRAILING else [first]
    return Rows(shape, frozenset(axes))


def post_dominators(readers: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """For each node the first later one through which every path to the end goes.

    readers  for each node in topological order the nodes that read it; the number of nodes stands
             for the end, to which a node without readers leads
    """
    end = len(readers)
    dominators = [end] * (end + 1)
    depth = [0] * (end + 1)
    for node in reversed(range(end)):
        meeting: int | None = None
        for reader in readers[node]:
            meeting = reader if meeting is None else _meet(meeting, reader, dominators, depth)
        dominators[node] = end if meeting is None else meeting
        depth[node] = depth[dominators[node]] + 1
    return tuple(dominators[:end])


def _meet(a: int, b: int, dominators: Sequence[int], depth: Sequence[int]) -> int:
    """The nearest common ancestor in the tree of post-dominators."""
    while a != b:
        if depth[a] < depth[b]:
            b = dominators[b]
        else:
            a = dominators[a]
    return a


def between(node: int, last: int, readers: Sequence[Sequence[int]]) -> frozenset[int]:
    """The nodes on the paths from `node` (not counted) to its post-dominator `last` (counted)."""
    seen: set[int] = set()
    pending = list(readers[node])
    while pending:
        at = pending.pop()
        if at not in seen:
            seen.add(at)
            if at != last:
                pending.extend(readers[at])
    return frozenset(seen)


def _is_generated(graph: Graph, node: Node) -> bool:
    if node.operator == "cast" and node.inputs[0] in graph.constants:
        return graph.types[node.inputs[0]].dtype is DType.BF16
    return not node.inputs and operator_of(node).meaning is not None


def generate_for_each_reader(graph: Graph) -> Graph:
    """Copy each node that reads nothing, or widens a constant, for each of its readers, whose
    groups can then take it.

    Rewrite:  c = full(); f(c); g(c)    ->    c = full(); f(c); d = full(); g(d)
    The graph is returned as it is if no such node has several readers.
    """
    reads = Counter(name for node in graph.nodes for name in dict.fromkeys(node.inputs))
    reads.update(graph.outputs)
    shared = {
        node.outputs[0]: node
        for node in graph.nodes
        if reads[node.outputs[0]] > 1 and _is_generated(graph, node)
    }
    if not shared:
        return graph
    types, layouts = dict(graph.types), dict(graph.layouts)
    taken = set(graph.outputs).intersection(shared)  # an output keeps the original
    nodes: list[Node] = []
    for node in graph.nodes:
        renamed: dict[str, str] = {}
        for name in dict.fromkeys(node.inputs):
            if name not in shared:
                continue
            if name not in taken:
                taken.add(name)
                continue
            renamed[name] = copy = free_name(name, types, 1, ".")
            types[copy] = types[name]
            if name in layouts:
                layouts[copy] = layouts[name]
            nodes.append(replace(shared[name], outputs=(copy,)))
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        nodes.append(replace(node, inputs=inputs) if renamed else node)
    return replace(
        graph,
        nodes=tuple(nodes),
        types=MappingProxyType(types),
        layouts=MappingProxyType(layouts),
    )
