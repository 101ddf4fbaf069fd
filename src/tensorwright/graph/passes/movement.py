"""Merge chains of reshapes and of transpositions; say plainly what takes or joins whole pieces."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import Movement


def merge_reshapes(graph: Graph) -> tuple[Graph, int]:
    """One reshape for a chain of reshape, squeeze and unsqueeze.

    Rewrite:  reshape(squeeze(x), s)    ->    reshape(x, s)
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if operator_of(node).movement is not Movement.RESHAPE:
            return None
        before = copy.producer(node.inputs[0])
        chained = before is not None and before.operator == "reshape"
        if node.operator == "reshape" and not chained:
            return None
        source = before.inputs[0] if before is not None and chained else node.inputs[0]
        shape = graph.types[node.outputs[0]].shape
        return copy.emit("reshape", (source,), node.outputs, shape=shape)

    return rewrite(graph, rule)


def merge_transposes(graph: Graph) -> tuple[Graph, int]:
    """One transposition for two; one that moves only extents of 1 is a reshape.

    Rewrite:  transpose(transpose(x, p), q)    ->    transpose(x, [p[i] for i in q])
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "transpose":
            return None
        shape = copy.type_of(node.inputs[0]).shape
        perm = node.ints("perm") or tuple(reversed(range(len(shape))))
        kept = [n for n in perm if shape[n] != 1]
        if kept == sorted(kept):
            target = graph.types[node.outputs[0]].shape
            return copy.emit("reshape", node.inputs, node.outputs, shape=target)
        before = copy.producer(node.inputs[0])
        if before is None or before.operator != "transpose":
            return None
        first = before.ints("perm") or tuple(reversed(range(len(shape))))
        both = tuple(first[n] for n in perm)
        return copy.emit("transpose", before.inputs, node.outputs, perm=both)

    return rewrite(graph, rule)


def slice_for_gather(graph: Graph) -> tuple[Graph, int]:
    """What is gathered at one position that is known beforehand is a slice, and often no work.

    Rewrite:  gather(x, 3)    ->    reshape(slice(x, 3..4))
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        index = copy.constant(node.inputs[1]) if node.operator == "gather" else None
        if index is None or index.size != 1:
            return None
        shape = copy.type_of(node.inputs[0]).shape
        axis = int(node.attribute_map["axis"]) % len(shape)  # type: ignore[arg-type]
        position = int(index.reshape(()))
        if not -shape[axis] <= position < shape[axis]:
            return None
        position %= shape[axis]
        (piece,) = copy.emit(
            "slice",
            node.inputs[:1],
            (copy.free(f"{node.outputs[0]}.piece"),),
            starts=(position,),
            ends=(position + 1,),
            axes=(axis,),
            steps=(1,),
        )
        return copy.emit(
            "reshape", (piece,), node.outputs, shape=graph.types[node.outputs[0]].shape
        )

    return rewrite(graph, rule)


def reshape_joined(graph: Graph) -> tuple[Graph, int]:
    """Pieces that lie one behind the other are joined before they are reshaped, not after.

    Rewrite:  concat(reshape(x), reshape(y))    ->    reshape(concat(x, y))
    Requires: no extent but 1 is outside of the dimension of the concat, and x and y differ in their
    first extents at most.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "concat" or len(node.inputs) < 2:
            return None
        shape = graph.types[node.outputs[0]].shape
        axis = int(node.attribute_map["axis"]) % len(shape)  # type: ignore[arg-type]
        before = [copy.producer(name) for name in node.inputs]
        sources = [each.inputs[0] for each in before if each and each.operator == "reshape"]
        if len(sources) < len(before) or prod(shape[:axis]) != 1:
            return None
        shapes = [copy.type_of(name).shape for name in sources]
        if len({each[1:] for each in shapes}) > 1 or () in shapes:
            return None
        wish = copy.free(f"{node.outputs[0]}.joined")
        (joined,) = copy.emit("concat", sources, (wish,), axis=0)
        return copy.emit("reshape", (joined,), node.outputs, shape=shape)

    return rewrite(graph, rule)
