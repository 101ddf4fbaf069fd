"""Nodes that move no data: each output is a piece of the memory of an input."""

from __future__ import annotations

from tensorwright.expr import Index
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.physical import is_row_major, memory_order, outer_extent
from tensorwright.ops import Movement, product_of, sizes_of, slices_taken

ALIGNMENT_BYTES = 64  # every argument of a kernel begins at a multiple of this


def view_offsets(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """The byte of the first input's memory at which each output begins; None if not a view.

    Views are reshapes of tensors that lie in row-major order, copies and transpositions that keep
    the order of the elements in memory, and aligned pieces along the outermost dimension.
    """
    match operator_of(node).movement:
        case Movement.CROP:
            return _piece_offsets(graph, node)
        case Movement.RESHAPE:
            is_same = all(_is_row_major(graph, each) for each in (node.inputs[0], node.outputs[0]))
        case Movement.COPY:
            is_same = _memory(graph, node.inputs[0]) == _memory(graph, node.outputs[0])
        case Movement.REORDER:
            is_same = "perm" in node.attribute_map and _is_still(graph, node)
        case _:
            return None
    return (0,) if is_same else None


def moves_nothing(graph: Graph, node: Node) -> bool:
    """Whether a node is a view, or a concat whose parts may lie in the memory of the whole."""
    return view_offsets(graph, node) is not None or concat_offsets(graph, node) is not None


def concat_offsets(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """The byte of the output at which each input begins; None if one is not an aligned piece."""
    if operator_of(node).movement is not Movement.JOIN:
        return None
    whole = graph.types[node.outputs[0]]
    axis = _number(node, "axis") % len(whole.shape)
    starts: list[Index] = []
    start: Index = 0
    for name in node.inputs:
        starts.append(start)
        start = start + sizes_of(graph.types[name])[axis]
    return _offsets(graph, node.outputs[0], node.inputs, axis, starts)


def _piece_offsets(graph: Graph, node: Node) -> tuple[int, ...] | None:
    source = sizes_of(graph.types[node.inputs[0]])
    if node.operator == "split":
        axis = _number(node, "axis") % len(source)
        sizes = [sizes_of(graph.types[name])[axis] for name in node.outputs]
        starts: list[Index] = [sum(sizes[:at]) for at in range(len(sizes))]
        return _offsets(graph, node.inputs[0], node.outputs, axis, starts)
    cut = _contiguous_cut(node, source)
    if cut is None:
        return None
    return _offsets(graph, node.inputs[0], node.outputs, cut[0], [cut[1]])


def _contiguous_cut(node: Node, shape: tuple[Index, ...]) -> tuple[int, Index] | None:
    """(dimension, first index) of a slice that shortens one dimension at most, with step 1."""
    taken = slices_taken(shape, node.attribute_map)
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
    shape = sizes_of(type_)
    if outer_extent(shape, layout, axis) != 1 or 0 in shape:
        return None
    if any(not _lies_alike(graph, part, layout) for part in parts):
        return None
    step = product_of((*shape[:axis], *shape[axis + 1 :])) * type_.dtype.size_bytes
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
    shape = sizes_of(graph.types[name])
    fits = layout.block == 1 or shape[layout.axis] % layout.block == 0
    return fits and (own == layout or memory_order(shape, own) == memory_order(shape, layout))


def _is_row_major(graph: Graph, name: str) -> bool:
    return is_row_major(sizes_of(graph.types[name]), graph.layouts.get(name, PLAIN))


def _memory(graph: Graph, name: str) -> tuple[tuple[int, Index], ...]:
    return memory_order(sizes_of(graph.types[name]), graph.layouts.get(name, PLAIN))


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
