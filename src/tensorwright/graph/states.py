"""Networks whose calls extend or write a state, so that past and present are one piece of memory.

    before   present = concat(past, new, axis)     input past, output present
    after    present = transpose(all)              input all, output new, both with `axis` first

The caller keeps `all` with room for more rows, and gives the memory of its last rows as `new`.  So
a call reads what it has just written, and copies nothing.  Steps that read `all` must come after
the step that writes `new`: `verify_plan` checks it.

    before   present = scatter(past, places, rows)
    after    the same with `shared`: the caller gives the memory of past as that of present

A cache of a fixed length is written so, by TensorScatter for one.  If the model turns the cache
before and back afterwards, the caller keeps it turned.
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


@dataclass(frozen=True, slots=True)
class State:
    """An input, and the output that it becomes.

    axis    the dimension of the network's tensor along which a call writes rows
    order   its dimensions in the order of memory
    rows    how many a call writes into a state of fixed length; None if it makes the state longer:
            then the input holds all rows, the output the new ones, and `axis` is first in `order`
    """

    input: str
    output: str
    axis: int
    order: tuple[int, ...]
    rows: expr.Index | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """The graph of calls that change their state in place; its inputs and outputs keep their names.

    A state has the same name, and in memory the order of its `State`.
    """

    graph: Graph
    states: tuple[State, ...]


def states_in_place(graph: Graph) -> InPlace | None:
    """The graph with states in place; None where it has none.

    graph   in the layouts in which it is cut into kernels
    """
    written, more = _written_in_place(graph)
    grown, states = _grown_in_place(written)
    states = (*states, *more)
    return InPlace(grown, states) if states and _tells_sizes(grown, graph.sizes) else None


def _grown_in_place(graph: Graph) -> tuple[Graph, tuple[State, ...]]:
    """The graph with the states in place that calls make longer."""
    growing = _growing(graph)
    if not growing:
        return graph, ()
    types, layouts = dict(graph.types), dict(graph.layouts)
    nodes: list[Node] = []
    whole: dict[str, str] = {}
    states: list[State] = []
    for node in graph.nodes:
        if node.outputs[0] not in growing:
            nodes.append(node.renamed(whole))
            continue
        (past, new), (present,) = node.inputs, node.outputs
        axis = node.integer("axis") % len(types[present].shape)
        order = (axis, *(at for at in range(len(types[present].shape)) if at != axis))
        states.append(State(past, present, axis, order))
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
    return changed, tuple(states)


def _written_in_place(graph: Graph) -> tuple[Graph, tuple[State, ...]]:
    """The graph with the states in place into which calls write rows."""
    nodes = {node.outputs[0]: node for node in graph.nodes}
    types = dict(graph.types)
    states: list[State] = []
    for node in graph.nodes:
        state = _written_state(graph, node)
        if state is None:
            continue
        states.append(state)
        (source, *others), (result,) = node.inputs, node.outputs
        types[state.input] = types[state.output] = types[source]
        attributes = tuple(sorted({**node.attribute_map, "reduction": ops.SHARED}.items()))
        inputs = (state.input, *others)
        nodes[result] = replace(node, inputs=inputs, attributes=attributes)
        if result != state.output:
            del nodes[source]
            whole = free_name(f"{state.output}.all", types)
            types[whole] = graph.types[state.output]
            for names in ({state.output: whole}, {result: state.output}):
                nodes = {key: each.renamed(names) for key, each in nodes.items()}
    changed = replace(graph, nodes=tuple(nodes.values()), types=MappingProxyType(types))
    return changed, tuple(states)


def _written_state(graph: Graph, node: Node) -> State | None:
    """The state into which a node writes rows, if nothing else reads what they replace.

    The node reads it as it is, or turned, and then turns it back.
    """
    if not operator_of(node).has_positions or node.attribute_map.get("reduction") != "none":
        return None
    made = {each.outputs[0]: each for each in graph.nodes}
    past, present = node.inputs[0], node.outputs[0]
    tensors, order = {past, present}, tuple(range(len(graph.types[past].shape)))
    if past in made and made[past].operator == "transpose":
        order, turned = made[past].ints("perm"), present
        past = made[past].inputs[0]
        back = _transposed(turned, "", tuple(order.index(at) for at in range(len(order))))
        ends = (each for each in graph.nodes if replace(each, outputs=("",)) == back)
        present = next((each.outputs[0] for each in ends), "")
        if turned in graph.outputs:
            return None
    uses = Counter(name for each in graph.nodes for name in each.inputs)
    uses.update(graph.outputs)
    tensors |= {past, present}
    is_state = past in graph.inputs and graph.outputs.count(present) == 1
    is_alone = uses[past] == uses[node.inputs[0]] == 1
    is_plain = all(graph.layouts.get(name, PLAIN).is_plain for name in tensors)
    if not (is_state and is_alone and is_plain):
        return None
    asked = ops.sizes_of(graph.types[node.inputs[1]])
    if node.operator == "scatter_elements":
        axis = node.integer("axis") % len(order)
        return State(past, present, order[axis], order, asked[axis])
    count = ops.number_of(asked[-1])
    rows = asked[-2] if len(asked) > 1 else 1
    return State(past, present, order[count - 1], order, rows)


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
    """Whether inputs tell each size: past + sequence tells past if another tells sequence."""
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
