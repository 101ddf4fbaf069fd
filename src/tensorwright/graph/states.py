"""Networks whose calls make a state longer, so that past and present are one piece of memory.

    before   present = concat(past, new, axis)     input past, output present
    after    present = transpose(all)              input all, output new, both with `axis` first

The caller keeps `all` with room for more rows, and gives the memory of its last rows as `new`.  So
a call reads what it has just written, and copies nothing.  Steps that read `all` must come after
the step that writes `new`: `verify_plan` checks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tensorwright import expr, ops
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, free_name
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition.steps import (
    BranchCall,
    LoopCall,
    OpaqueCall,
    Partition,
    Step,
    reads_of_step,
    writes_of_step,
)
from tensorwright.graph.partition.views import ALIGNMENT_BYTES
from tensorwright.graph.sizes import counted_size_of, counted_sizes


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """The graph of calls that extend their state in place; its inputs and outputs keep their names.

    states   an input, the output that it becomes, and the axis along which a call makes it longer;
             the input holds all rows, the output the new ones, with the axis first
    """

    graph: Graph
    states: tuple[tuple[str, str, int], ...]


def grow_in_place(graph: Graph) -> InPlace | None:
    """The graph with growing states in place; None where it has none.

    graph   in the layouts in which it is cut into kernels
    """
    growing = _growing(graph)
    if not growing:
        return None
    types, layouts = dict(graph.types), dict(graph.layouts)
    nodes: list[Node] = []
    whole: dict[str, str] = {}
    states: list[tuple[str, str, int]] = []
    for node in graph.nodes:
        if node.outputs[0] not in growing:
            nodes.append(node.renamed(whole))
            continue
        (past, new), (present,) = node.inputs, node.outputs
        axis = node.integer("axis") % len(types[present].shape)
        states.append((past, present, axis))
        order = (axis, *(at for at in range(len(types[present].shape)) if at != axis))
        back = tuple(order.index(at) for at in range(len(order)))
        whole[present] = name = free_name(f"{present}.all", types)
        nodes.append(_transposed(new, present, order))
        nodes.append(_transposed(past, name, back))
        types[name] = types[present]
        types[past], types[present] = (
            ops.TensorType(types[each].dtype, tuple(types[each].shape[at] for at in order))
            for each in (present, new)
        )
        if axis:
            layouts[name] = layouts[new] = Layout(order=order)
    changed = replace(
        graph,
        nodes=tuple(nodes),
        types=MappingProxyType(types),
        layouts=MappingProxyType(layouts),
    )
    return InPlace(changed, tuple(states)) if _tells_sizes(changed, graph.sizes) else None


def for_outputs(parts: Partition, outputs: Sequence[str]) -> Partition | None:
    """The steps that some outputs need; None where that is all, or values decide what runs."""
    needed, steps = set(outputs), list[Step]()
    for step in reversed(parts.steps):
        decides = isinstance(step, OpaqueCall) and counted_size_of(step.node) is not None
        if decides or isinstance(step, BranchCall | LoopCall):
            return None
        if not needed.isdisjoint(writes_of_step(step)):
            needed.update(reads_of_step(step))
            steps.append(step)
    if len(steps) == len(parts.steps):
        return None
    graph = replace(parts.graph, outputs=tuple(outputs))
    return replace(parts, graph=graph, steps=tuple(reversed(steps)))


def _transposed(source: str, result: str, perm: tuple[int, ...]) -> Node:
    return Node("transpose", (source,), (result,), (("perm", perm),))


def _growing(graph: Graph) -> set[str]:
    """The outputs that extend an input, which nothing else reads, by aligned rows."""
    uses = Counter(name for node in graph.nodes for name in node.inputs)
    uses.update(graph.outputs)
    made = {name for node in graph.nodes if _has_kernel(node) for name in node.outputs}
    plain = {name for name in graph.types if graph.layouts.get(name, PLAIN).is_plain}
    copied = {name for node in graph.nodes if not _has_kernel(node) for name in node.inputs}
    growing: dict[str, str] = {}
    for node in graph.nodes:
        if operator_of(node).movement is not ops.Movement.JOIN or len(node.inputs) != 2:
            continue
        (past, new), (present,) = node.inputs, node.outputs
        is_state = past in graph.inputs and uses[past] == 1
        is_result = graph.outputs.count(present) == 1 and new not in graph.outputs
        is_free = new in made and new not in growing.values() and not {present, new} & copied
        is_open = not isinstance(graph.types[past].shape[node.integer("axis")], int)
        is_whole = {past, new, present} <= plain and _has_aligned_rows(graph.types[new], node)
        if is_state and is_result and is_free and is_open and is_whole:
            growing[present] = new
    return set(growing)


def _has_aligned_rows(kind: ops.TensorType, concat: Node) -> bool:
    """Whether each row along the axis of a concat begins where a kernel may begin to write."""
    axis = concat.integer("axis") % len(kind.shape)
    others = [n for at, n in enumerate(ops.sizes_of(kind)) if at != axis]
    return ops.product_of(others) * kind.dtype.size_bytes % ALIGNMENT_BYTES == 0


def _has_kernel(node: Node) -> bool:
    return operator_of(node).meaning is not None


def _tells_sizes(graph: Graph, wanted: Iterable[expr.NamedSize]) -> bool:
    """Whether the inputs still tell each size: past + sequence tells past where another tells
    sequence.
    """
    counted = counted_sizes(graph)
    extents = [n for name in graph.inputs for n in ops.sizes_of(graph.types[name])]
    told: set[expr.NamedSize] = set()
    before = -1
    while before != len(told):
        before = len(told)
        for extent in extents:
            left = set(expr.named_sizes_of(extent)) - told
            told |= left if len(left) == 1 else set()
    return all(size in told or size.name in counted for size in wanted)
