"""Assemble an executable from a partitioned graph and a kernel for each workload.

The loop algorithms of opaque nodes are built here. Each constant is packed once for each order in
which kernels read it. Views, and tensors that are parts of other tensors, get no separate memory.

The names that the steps of an executable have in its network; the executable keeps them as text.

A plan says where tensors lie, but not what they are called, and it has no steps for views.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tensorwright import base, expr, ops, runtime
from tensorwright.artifacts.cached_build import build_opaque, opaque_programs, program_of
from tensorwright.artifacts.kernel import Kernel
from tensorwright.codegen import Signature
from tensorwright.graph import (
    PLAIN,
    AliasCall,
    BranchCall,
    CollectCall,
    ConcatInPlace,
    CopyCall,
    Graph,
    KernelCall,
    Layout,
    LoopCall,
    Node,
    OpaqueCall,
    Partition,
    State,
    Step,
    Tensors,
    Workload,
    counted_bounds,
    counted_size_of,
    counted_sizes,
    for_outputs,
    physical_shape,
    to_physical,
)
from tensorwright.loop import Packing, pack

NAMES_SOURCE = "steps"
"""The name of the text among the sources of an executable."""


@dataclass(frozen=True, slots=True)
class StepName:
    """A step that runs: the tensors that it writes, and its workload's key, if it has one."""

    outputs: tuple[str, ...]
    workload: str


@dataclass(frozen=True, slots=True)
class View:
    """A tensor that needs no work: a part of another tensor, or several tensors side by side.

    before   the number of the first step that runs after it
    """

    operator: str
    inputs: tuple[str, ...]
    output: str
    before: int


@dataclass(frozen=True, slots=True)
class StepNames:
    """The steps of a network, in the plan's order; the plan's last copies have no names."""

    steps: tuple[StepName, ...] = ()
    views: tuple[View, ...] = ()


def step_names(partition: Partition) -> StepNames:
    """The names of a partitioned network."""
    steps: list[StepName] = []
    views: list[View] = []
    for step in partition.steps:
        match step:
            case KernelCall(workload, _, outputs):
                steps.append(StepName(outputs, workload.key))
            case OpaqueCall(node):
                steps.append(StepName(node.outputs, ""))
            case CopyCall(output) | CollectCall(output):
                steps.append(StepName((output,), ""))
            case BranchCall(node=node) | LoopCall(node=node):
                steps.append(StepName(node.outputs, ""))
            case AliasCall(output, source, _, node):
                views.append(View(node.operator, (source,), output, len(steps)))
            case ConcatInPlace(output, parts, node):
                names = tuple(name for name, _ in parts)
                views.append(View(node.operator, names, output, len(steps)))
    return StepNames(tuple(steps), tuple(views))


def format_step_names(names: StepNames) -> str:
    """Step names as JSON."""
    return json.dumps(asdict(names))


def read_step_names(sources: Mapping[str, str]) -> StepNames:
    """The names that an executable keeps; empty if it keeps none."""
    text = sources.get(NAMES_SOURCE)
    if text is None:
        return StepNames()
    data = json.loads(text)
    steps = (StepName(tuple(each["outputs"]), each["workload"]) for each in data["steps"])
    views = (
        View(each["operator"], tuple(each["inputs"]), each["output"], each["before"])
        for each in data["views"]
    )
    return StepNames(tuple(steps), tuple(views))


_MOST_RESERVED = 1 << 20
"""Of a size: calls with a greater number get more memory when they come."""


def assemble(
    partition: Partition,
    kernels: Mapping[str, Kernel],
    target: base.Target,
    threads: int | None,
    sources: Sequence[tuple[str, str]] = (),
    thread_limits: Mapping[str, int] = MappingProxyType({}),
    in_place: tuple[Partition, Sequence[State]] | None = None,
) -> runtime.Executable:
    """The executable of a partitioned graph.

    kernels         workload key -> its kernel
    threads         the number for one call; the knob `threads` if None
    sources         texts for people that the executable keeps; the names of its steps are added
    in_place        the network of calls that change their state in place, and the states
    thread_limits   workload key -> the most threads that it uses, as measured; 0 means all
    """
    parts = [partition]
    if in_place is not None:
        parts.append(in_place[0])
        alone = for_outputs(in_place[0], _states_of(partition.graph, in_place[1]))
        parts += [] if alone is None else [alone]
    for each in parts:
        kernels = {**kernels, **build_opaque(each, target)}
    signatures = {key: kernel.signature for key, kernel in kernels.items()}
    keys = tuple(dict.fromkeys(key for each in parts for key in kernel_keys(each, target.kind)))
    plans, arrays = _plans(parts, signatures, keys, target, threads)
    limits = {at: thread_limits[key] for at, key in enumerate(keys) if key in thread_limits}
    if limits:
        plans = tuple(runtime.choose_teams(plan, limits=limits) for plan in plans)
    objects = tuple(kernels[key].object_code for key in keys)
    names = (NAMES_SOURCE, format_step_names(step_names(partition)))
    states = () if in_place is None else in_place[1]
    return runtime.Executable(
        plans[0],
        objects,
        arrays,
        threads=threads,
        sources=(names, *sources),
        sessions=_with_states(plans[1:], states),
    )


def _states_of(graph: Graph, in_place: Sequence[State]) -> tuple[str, ...]:
    """The outputs that become inputs of the next call: those in place, and others by name."""
    inputs, outputs = (
        [_spec(name, graph.types[name]) for name in names]
        for names in (graph.inputs, graph.outputs)
    )
    held = (state.output for state in in_place)
    states = {*held, *runtime.state_pairs(inputs, outputs).values()}
    return tuple(name for name in graph.outputs if name in states)


def _with_states(
    plans: Sequence[runtime.Plan], states: Sequence[State]
) -> tuple[runtime.Plan, ...]:
    """The plans with their states in place; () if a step reads one too early."""
    held = tuple(map(_state, states))
    for plan in plans:
        if runtime.read_too_early(plan.at_capacity, held) is not None:
            return ()
    return tuple(replace(plan, states=held) for plan in plans)


def _state(state: State) -> runtime.GrownState | runtime.WrittenState:
    if state.rows is None:
        return runtime.GrownState(state.input, state.output, state.axis)
    rows = runtime.amount_of(state.rows)
    return runtime.WrittenState(state.input, state.output, state.axis, state.order, rows)


def kernel_keys(partition: Partition, kind: base.TargetKind) -> tuple[str, ...]:
    """The names of a network's kernels, in order: keys of workloads, texts of loop algorithms."""
    return (*(workload.key for workload in partition.workloads), *opaque_programs(partition, kind))


def plan_network(
    partition: Partition,
    signatures: Mapping[str, Signature],
    target: base.Target,
    threads: int | None,
) -> tuple[runtime.Plan, tuple[ops.Array, ...]]:
    """The plan of a partitioned graph, and its constants as kernels read them.

    signatures   kernel key (`kernel_keys`) -> how the kernel is called
    """
    keys = kernel_keys(partition, target.kind)
    (plan,), arrays = _plans((partition,), signatures, keys, target, threads)
    return plan, arrays


def _plans(
    parts: Sequence[Partition],
    signatures: Mapping[str, Signature],
    keys: Sequence[str],
    target: base.Target,
    threads: int | None,
) -> tuple[tuple[runtime.Plan, ...], tuple[ops.Array, ...]]:
    """The plans of forms of one network, which share kernels and constants."""
    constants = _Constants(parts[0].tensors.constants, parts[0].tensors.layouts)
    called = []
    for partition in parts:
        network_calls = NetworkCalls(partition, signatures, keys, target.kind, constants)
        calls = network_calls.of_steps(0, len(partition.steps))
        called.append((calls, tuple(network_calls.parts)))
        for name in partition.graph.outputs:
            constants.argument(name)
    kernels = tuple(runtime.kernel_spec(_with_room(signatures[key])) for key in keys)
    plans = []
    for partition, (calls, inside) in zip(parts, called, strict=True):
        graph, tensors = partition.graph, partition.tensors
        network = runtime.Network(
            graph.name,
            target,
            runtime.usable_threads(threads),
            tuple(_spec(name, graph.types[name]) for name in graph.inputs),
            tuple(_roomy(_spec(name, graph.types[name]), graph) for name in graph.outputs),
            constants.specs,
            kernels,
            tuple(calls),
            tuple((name, _stored_type(tensors, name)) for name in tensors.types),
            inside,
            plan_sizes(graph.sizes, counted_bounds(graph)),
            tuple(_rooms(tensors)),
        )
        plan = runtime.make_plan(network)
        if target.kind is base.TargetKind.CPU:
            plan = runtime.choose_teams(plan)
        plans.append(plan)
    return tuple(plans), tuple(constants.packed.values())


def assemble_workload(
    workload: Workload,
    kernel: Kernel,
    target: base.Target,
    threads: int | None,
    values: Mapping[str, ops.Array] | None = None,
    sources: Sequence[tuple[str, str]] = (),
) -> runtime.Executable:
    """The executable of one workload; the caller gives all inputs except the constants.

    values    the constants by name, each of the type of its input
    sources   as of `assemble`
    """
    constants = _Constants(values or {}, {})
    names = {parameter.name: parameter.name for parameter in kernel.parameters}
    call = _call(workload, 0, kernel.signature, names, constants)
    inputs = _specs(workload.inputs, workload.input_types)
    network = runtime.Network(
        workload.name,
        target,
        runtime.usable_threads(threads),
        tuple(spec for spec in inputs if spec.name not in constants.arrays),
        _specs(workload.outputs, workload.output_types),
        constants.specs,
        (kernel.spec,),
        (call,),
        (),
        sizes=plan_sizes(workload.sizes),
    )
    arrays = tuple(constants.packed.values())
    outputs = tuple(tensor.name for tensor in workload.outputs)
    step = StepNames((StepName(outputs, workload.key),))
    texts = ((NAMES_SOURCE, format_step_names(step)), *sources)
    objects = (kernel.object_code,)
    return runtime.Executable(
        runtime.make_plan(network), objects, arrays, threads=threads, sources=texts
    )


def plan_sizes(
    sizes: Sequence[expr.NamedSize], bounds: Mapping[str, expr.Index] = MappingProxyType({})
) -> tuple[runtime.PlanSize, ...]:
    """The named sizes of a plan, sorted by name.

    bounds   name of a size that a node decides -> its greatest value, by the sizes of the inputs

    If a size has no greatest number, memory is first reserved for its least one; never for more
    than `_MOST_RESERVED`, because the constants of a model may say 1,000,000,000 for "no end".
    """
    return tuple(
        runtime.PlanSize(
            size.name,
            *size.bounds,
            # a tensor of 0 bytes gets no memory
            size.divisor * min(size.most or max(1, size.least), max(size.least, _MOST_RESERVED)),
            runtime.amount_of(bounds[size.name]) if size.name in bounds else None,
        )
        for size in sorted(sizes, key=lambda size: size.name)
    )


class NetworkCalls:
    """Turns the steps of a partition into calls; mutable.

    parts   the tensors of the steps so far that lie in other tensors
    """

    def __init__(
        self,
        partition: Partition,
        signatures: Mapping[str, Signature],
        keys: Sequence[str],
        kind: base.TargetKind,
        constants: _Constants,
    ) -> None:
        self.parts: list[tuple[str, runtime.Inside]] = []
        self._steps = partition.steps
        self._tensors = partition.tensors
        self._signatures = signatures
        self._keys = keys
        self._kind = kind
        self._constants = constants

    def of_steps(self, begin: int, end: int) -> list[runtime.Call | runtime.CopyTensor]:
        """The calls of a block, the steps `begin` to `end`."""
        argument = self._constants.argument
        calls: list[runtime.Call | runtime.CopyTensor] = []
        position = begin
        while position < end:
            step = self._steps[position]
            position += 1
            match step:
                case BranchCall(condition, then, otherwise):
                    middle, last = position + then, position + then + otherwise
                    one, other = self.of_steps(position, middle), self.of_steps(middle, last)
                    calls.append(runtime.BranchStep(argument(condition), len(one), len(other)))
                    calls += [*one, *other]
                    position = last
                case LoopCall(count, condition, iteration, body, counted):
                    block = self.of_steps(position, position + body)
                    most, size = argument(count), len(block)
                    condition = argument(condition)
                    calls.append(
                        runtime.LoopStep(most, condition, iteration, size, counted=counted)
                    )
                    calls += block
                    position += body
                case _:
                    calls += self._of_step(step)
        return calls

    def _of_step(self, step: Step) -> Iterator[runtime.Call | runtime.CopyTensor]:
        """The calls of one step; a step that only says how a tensor lies in memory has none."""
        argument = self._constants.argument
        match step:
            case KernelCall(workload, inputs, outputs):
                names = dict(zip((t.name for t in workload.inputs), inputs, strict=True))
                names |= dict(zip((t.name for t in workload.outputs), outputs, strict=True))
                number, signature = self._keys.index(workload.key), self._signatures[workload.key]
                yield _call(workload, number, signature, names, self._constants)
            case OpaqueCall(node):
                read = tuple(argument(name) for name in node.inputs)
                yield _opaque_call(self._tensors, node, self._kind, self._keys, read)
            case AliasCall(output, source, offset):
                self.parts.append((output, runtime.Inside(argument(source), offset)))
            case ConcatInPlace(output, pieces):
                self.parts += [(name, runtime.Inside(output, offset)) for name, offset in pieces]
            case CopyCall(output, source):
                yield runtime.CopyTensor(argument(source), output)
            case CollectCall(output, source, iteration):
                yield runtime.CollectStep(argument(source), iteration, output)
            case _:
                raise AssertionError("branches and loops have blocks")


class _Constants:
    """The constants that steps read, with each packing of a constant once; mutable."""

    def __init__(self, arrays: Mapping[str, ops.Array], layouts: Mapping[str, Layout]) -> None:
        self.arrays = arrays
        self._layouts = layouts
        self._names: dict[tuple[str, Packing | None], str] = {}
        self._packed: dict[str, ops.Array] = {}

    def argument(self, name: str, packing: Packing | None = None) -> str:
        """The name of a tensor in the plan; a constant has a name for each requested packing."""
        if name not in self.arrays:
            return name
        label = name if packing is None else f"{name}#{len(self._names)}"
        return self._names.setdefault((name, packing), label)

    @property
    def packed(self) -> Mapping[str, ops.Array]:
        """The constants that `argument` was asked for so far, as steps read them, in order."""
        todo = [item for item in self._names.items() if item[1] not in self._packed]
        size_bytes = sum(self.arrays[name].nbytes for (name, _), _ in todo)
        arrays = base.on_all_cores(lambda item: self._pack(*item[0]), todo, size_bytes)
        self._packed |= zip((label for _, label in todo), arrays, strict=True)
        return self._packed

    @property
    def specs(self) -> tuple[runtime.TensorSpec, ...]:
        """Names and types of the packed constants, in order."""
        return tuple(
            runtime.TensorSpec(name, base.DType.from_numpy(array.dtype), array.shape)
            for name, array in self.packed.items()
        )

    def _pack(self, name: str, packing: Packing | None) -> ops.Array:
        array = to_physical(self.arrays[name], self._layouts.get(name, PLAIN))
        packed = array if packing is None else pack(array, packing, _for_kernels)
        return np.ascontiguousarray(packed)


def _for_kernels(shape: tuple[int, ...], dtype: np.dtype[Any]) -> ops.Array:
    """An array that a kernel may read without a copy."""
    return runtime.empty(shape, base.DType.from_numpy(dtype))


def _call(
    workload: Workload,
    number: int,
    signature: Signature,
    names: Mapping[str, str],
    constants: _Constants,
) -> runtime.KernelStep[str]:
    """The call of kernel `number`; `names` maps its parameters to tensors of the network."""
    arguments = tuple(
        constants.argument(names[parameter.name], parameter.packing)
        for parameter in signature.parameters
    )
    outputs = workload.outputs
    flops, moved = (
        runtime.amount_of(ops.open_work(outputs)),
        runtime.amount_of(ops.open_moved_bytes(outputs)),
    )
    return runtime.KernelStep(number, arguments, workload.name, flops, moved)


def _opaque_call(
    graph: Tensors, node: Node, kind: base.TargetKind, keys: Sequence[str], read: tuple[str, ...]
) -> runtime.KernelStep[str] | runtime.HostStep[str]:
    """The call of a node's loop algorithm, or of its NumPy function if it has none."""
    program = program_of(graph, node, kind)
    if program is None:
        label = f"{node.operator} on the host"
        attributes = tuple((name, _with_formulas(value)) for name, value in node.attributes)
        size = counted_size_of(node)
        counted = "" if size is None else size.name
        return runtime.HostStep(node.operator, attributes, read, node.outputs, label, counted)
    types = [graph.types[name] for name in (*node.inputs, *node.outputs)]
    moved = expr.sum_of(
        [ops.product_of(ops.sizes_of(each)) * each.dtype.size_bytes for each in types]
    )
    arguments = (*read, *node.outputs)
    number = keys.index(str(program))
    return runtime.KernelStep(
        number, arguments, node.operator, bytes_moved=runtime.amount_of(moved)
    )


def _with_formulas(value: base.AttributeValue) -> base.AttributeValue:
    """An attribute with its open sizes as formulas of the plan."""
    if isinstance(value, tuple):
        return tuple(map(_with_formulas, value))
    return runtime.amount_of(value) if isinstance(value, base.OpenSize) else value


def _specs(
    tensors: Sequence[expr.Tensor], types: Sequence[ops.TensorType]
) -> tuple[runtime.TensorSpec, ...]:
    pairs = zip(tensors, types, strict=True)
    return tuple(_spec(tensor.name, kind) for tensor, kind in pairs)


def _spec(name: str, kind: ops.TensorType) -> runtime.TensorSpec:
    return runtime.TensorSpec(name, kind.dtype, tuple(map(runtime.amount_of, kind.shape)))


def _roomy(spec: runtime.TensorSpec, graph: Graph) -> runtime.TensorSpec:
    """The output with room for each value of the sizes that nodes decide: 9 for 9 - n."""
    counted = counted_sizes(graph)
    shape = ops.sizes_of(graph.types[spec.name])
    room = tuple(
        expr.room_for(extent)
        if any(each.name in counted for each in expr.named_sizes_of(extent))
        else extent
        for extent in shape
    )
    return spec if room == shape else replace(spec, room=tuple(map(runtime.amount_of, room)))


def _with_room(signature: Signature) -> Signature:
    """The signature with bounds of its scratch memory that are largest for the largest sizes."""
    own, each = signature.workspace_bytes, signature.local_workspace_bytes
    return replace(
        signature, workspace_bytes=expr.room_for(own), local_workspace_bytes=expr.room_for(each)
    )


def _rooms(graph: Tensors) -> Iterator[tuple[str, base.Amount]]:
    """Upper bounds, in bytes, of the tensors that may be larger for smaller named sizes."""
    for name, kind in graph.types.items():
        if kind.is_open:
            size_bytes = ops.product_of(ops.sizes_of(kind)) * kind.dtype.size_bytes
            room_bytes = expr.room_for(size_bytes)
            if room_bytes != size_bytes:
                yield name, runtime.amount_of(room_bytes)


def _stored_type(graph: Tensors, name: str) -> ops.TensorType:
    kind = graph.types[name]
    shape = physical_shape(ops.sizes_of(kind), graph.layouts.get(name, PLAIN))
    return ops.TensorType(kind.dtype, tuple(map(runtime.amount_of, shape)))
