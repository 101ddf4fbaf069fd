"""Cut a graph into steps: kernels, opaque calls, and statements about the memory of tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensorwright.base import InternalError, dump, knobs
from tensorwright.expr import Index, is_joined_shape, is_nonnegative
from tensorwright.graph.graph import PLAIN, Graph, Node
from tensorwright.graph.infer import operator_of, verify
from tensorwright.graph.partition.by_price import Price, regroup
from tensorwright.graph.partition.grouping import Limits, group_nodes
from tensorwright.graph.partition.nesting import Nesting, elide_concats
from tensorwright.graph.partition.proposals import Nodes
from tensorwright.graph.partition.short import store_short
from tensorwright.graph.partition.steps import (
    AliasCall,
    BranchCall,
    CollectCall,
    ConcatInPlace,
    CopyCall,
    KernelCall,
    LoopCall,
    OpaqueCall,
    Partition,
    Step,
    Tensors,
    reads_of_step,
    writes_of_step,
)
from tensorwright.graph.partition.views import (
    generate_for_each_reader,
    moves_nothing,
    view_offsets,
)
from tensorwright.graph.physical import physical_shape
from tensorwright.graph.sizes import bytes_of
from tensorwright.graph.workload import Workload, build_workload
from tensorwright.ops import TensorType, sizes_of


def verify_partition(parts: Partition) -> Partition:
    """Check a partition and return it.

    Requires: every node of the graph is in one step; every tensor is written once, before it is
              read; the outputs of the graph are written; kernels read and write the physical types
              of their workloads; the tensors of opaque nodes are plain; an alias lies inside its
              source; the parts of a concat in place lie side by side and fill it.
    Raises:   InternalError that names the step, and what `verify` raises for the graph.
    """
    graph = verify(parts.graph)
    _check_nodes(parts)
    written: set[str] = {*graph.inputs, *parts.tensors.constants}
    often = _written_often(parts)
    for step in parts.steps:
        where = f"step of {(writes_of_step(step) or reads_of_step(step))[0]}"
        _check_order(step, where, written, often)
        _check_types(parts.tensors, step, where)
        written.update(writes_of_step(step))
    for name in graph.outputs:
        if name not in written:
            raise _fail(f"output {name}", "no step writes it")
    return parts


def _fail(where: str, reason: str) -> InternalError:
    return InternalError(stage="verify", where=where, reason=reason)


def _nodes(step: Step) -> Sequence[Node]:
    if isinstance(step, CopyCall | CollectCall):
        return ()
    return step.nodes if isinstance(step, KernelCall) else (step.node,)


def _own_steps(parts: Partition) -> Iterator[Step]:
    """The steps of the graph itself, not those of graphs that its nodes hold."""
    position = 0
    while position < len(parts.steps):
        step = parts.steps[position]
        yield step
        position += 1
        match step:
            case BranchCall(_, then, otherwise):
                position += then + otherwise
            case LoopCall(body=body):
                position += body


def _written_often(parts: Partition) -> set[str]:
    """The tensors that several steps may write: results of branches, carried values of loops."""
    calls = (step for step in parts.steps if isinstance(step, BranchCall | LoopCall | CopyCall))
    return {name for step in calls for name in (*step.node.outputs, *writes_of_step(step))}


def _check_nodes(parts: Partition) -> None:
    """Check that each node is in one step; all aliases of a node, as of a `split`, are one."""
    own = tuple(_own_steps(parts))
    steps = Counter(node.outputs[0] for step in own for node in _nodes(step))
    aliases = Counter(step.node.outputs[0] for step in own if isinstance(step, AliasCall))
    for node in parts.graph.nodes:
        first = node.outputs[0]
        times = steps[first] - max(0, aliases[first] - 1)
        if times != 1:
            raise _fail(node.label, f"it is in {times} steps")


def _check_order(step: Step, where: str, written: set[str], often: set[str]) -> None:
    for name in reads_of_step(step):
        if name not in written:
            raise _fail(where, f"it reads {name}, which no step before it writes")
    for name in writes_of_step(step):
        if name in written - often:
            raise _fail(where, f"{name} is written a second time")


def _check_types(graph: Tensors, step: Step, where: str) -> None:
    match step:
        case KernelCall(workload, inputs, outputs):
            for names, types in ((inputs, workload.input_types), (outputs, workload.output_types)):
                stored = tuple(_stored(graph, name) for name in names)
                if not all(map(_is_stored_as, types, stored)):
                    wanted, given = (", ".join(map(str, each)) for each in (types, stored))
                    raise _fail(where, f"workload {workload.name} has {wanted}, the step {given}")
        case OpaqueCall(node):
            for name in (*node.inputs, *node.outputs):
                if name in graph.layouts:
                    raise _fail(where, f"{name} has layout {graph.layouts[name]} in an opaque step")
        case AliasCall(output, source, offset):
            _check_inside(graph, output, offset, source, where)
        case ConcatInPlace(output, pieces):
            end: Index = 0
            for name, offset in pieces:
                if offset != end:
                    raise _fail(where, f"{name} begins at byte {offset}, not at {end}")
                _check_inside(graph, name, offset, output, where)
                end = end + bytes_of(graph.types[name])
            room = bytes_of(graph.types[output])
            if end != room:
                raise _fail(where, f"its parts fill {end} of {room} bytes")


def _check_inside(graph: Tensors, part: str, offset: int, whole: str, where: str) -> None:
    size, room = bytes_of(graph.types[part]), bytes_of(graph.types[whole])
    if offset < 0 or not is_nonnegative(room - size - offset):
        raise _fail(where, f"{part} takes bytes {offset} to {offset + size} of {room} in {whole}")


def _is_stored_as(read: TensorType, stored: TensorType) -> bool:
    """Whether a workload's type fits that of a tensor, with joined axes or without."""
    same_dtype = read.dtype is stored.dtype
    return same_dtype and is_joined_shape(sizes_of(read), sizes_of(stored))


def _stored(graph: Tensors, name: str) -> TensorType:
    type_ = graph.types[name]
    return TensorType(type_.dtype, physical_shape(sizes_of(type_), graph.layouts.get(name, PLAIN)))


DEFAULT_LIMITS = Limits()


def usual_groups(graph: Graph) -> tuple[Nodes, ...]:
    """The groups of the criteria alone, within the usual limits."""
    return group_nodes(graph, (concat.node for concat in elide_concats(graph)), DEFAULT_LIMITS)


def kernels_of_groups(graph: Graph, groups: Iterable[Nodes]) -> Iterator[Workload]:
    """The workloads of those groups that become kernels: views and opaque nodes do not."""
    for nodes in groups:
        is_kernel = operator_of(nodes[-1]).meaning is not None
        if is_kernel and (len(nodes) > 1 or not moves_nothing(graph, nodes[0])):
            yield build_workload(graph, nodes).workload


def partition(
    graph: Graph, limits: Limits = DEFAULT_LIMITS, price: Price | None = None
) -> Partition:
    """The steps that compute a graph, under its layouts, in an order in which they can run.

    price   decides the open questions of the criteria; without it the criteria alone decide

    Equal workloads are one object. A node that nothing reads gets a step, too: remove dead code
    first. The knob `dump` shows the result, the knob `verify` checks it.
    """
    graph, widened = store_short(generate_for_each_reader(graph), price)
    in_place = elide_concats(graph)
    by_output = {concat.output: concat for concat in in_place}
    workloads: dict[str, Workload] = {}
    steps: list[Step] = []
    groups = group_nodes(graph, (concat.node for concat in in_place), limits, widened)
    if price is not None:
        groups = _by_price(graph, groups, by_output, limits, price)
    nesting = Nesting(graph, lambda nested: partition(nested, limits, price))
    for nodes in groups:
        if nodes[-1].graphs:
            steps.extend(nesting.steps(nodes[-1]))
        else:
            steps.extend(_steps_of(graph, nodes, by_output, workloads))
    parts = Partition(graph, tuple(steps), nesting.tensors)
    dump("partition", "", parts.describe)
    return verify_partition(parts) if knobs.VERIFY.get() else parts


def likely_workloads(graph: Graph) -> tuple[Workload, ...]:
    """The workloads that `partition` probably prices or returns, in the order in which it does."""
    asked: list[Workload] = []

    def price(workload: Workload) -> float:
        asked.append(workload)
        return 0.0  # equal prices change no group

    parts = partition(graph, price=price)
    return tuple({each.key: each for each in (*asked, *parts.workloads)}.values())


def _by_price(
    graph: Graph,
    groups: tuple[Nodes, ...],
    in_place: Mapping[str, ConcatInPlace],
    limits: Limits,
    price: Price,
) -> tuple[Nodes, ...]:
    """The groups after the decision of open questions; the knob `dump` shows the decisions."""
    alone = {node.outputs[0] for node in graph.nodes if view_offsets(graph, node) is not None}
    alone.update(node.outputs[0] for node in graph.nodes if operator_of(node).meaning is None)
    return regroup(graph, groups, frozenset(alone | in_place.keys()), limits, price)


def _steps_of(
    graph: Graph,
    nodes: tuple[Node, ...],
    in_place: dict[str, ConcatInPlace],
    workloads: dict[str, Workload],
) -> tuple[Step, ...]:
    node = nodes[-1]
    if len(nodes) == 1:
        if node.outputs[0] in in_place:
            return (in_place[node.outputs[0]],)
        offsets = view_offsets(graph, node)
        if offsets is not None:
            pairs = zip(node.outputs, offsets, strict=True)
            return tuple(AliasCall(name, node.inputs[0], offset, node) for name, offset in pairs)
        if operator_of(node).meaning is None:
            return (OpaqueCall(node),)
    bound = build_workload(graph, nodes)
    shared = workloads.setdefault(bound.workload.key, bound.workload)
    return (KernelCall(shared, bound.inputs, bound.outputs, nodes),)
