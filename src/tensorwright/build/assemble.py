"""Put built kernels together: a partitioned graph and a kernel for each workload, an executable.

Constants are packed here, once, into the order in which their kernel reads them.  Tensors that
partitioning made views or parts of others get no memory of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tensorwright.base import DType, Target
from tensorwright.build.kernel import Kernel
from tensorwright.expr import Tensor
from tensorwright.graph import (
    PLAIN,
    AliasCall,
    ConcatInPlace,
    Graph,
    HostCall,
    KernelCall,
    Partition,
    Workload,
    physical_shape,
    to_physical,
)
from tensorwright.loop import Packing, Role, pack
from tensorwright.ops import Array, TensorType, work
from tensorwright.runtime import (
    Executable,
    Inside,
    Network,
    TensorSpec,
    make_plan,
    usable_threads,
)
from tensorwright.runtime import HostCall as RunOnHost
from tensorwright.runtime import KernelCall as RunKernel


def assemble(
    partition: Partition,
    kernels: Mapping[str, Kernel],
    target: Target,
    threads: int | None,
    sources: Sequence[tuple[str, str]] = (),
) -> Executable:
    """The executable of a partitioned graph.

    kernels   workload key -> its kernel
    threads   how many the kernels use; the knob `threads` where None
    sources   texts to keep with it (the schedules, for people)
    """
    graph = partition.graph
    constants = _Constants(graph)
    keys = [workload.key for workload in partition.workloads]
    calls: list[RunKernel | RunOnHost] = []
    parts: list[tuple[str, Inside]] = []
    for step in partition.steps:
        match step:
            case KernelCall(workload):
                calls.append(_run_kernel(step, keys.index(workload.key), kernels, constants))
            case HostCall(node):
                inputs = tuple(constants.plain(name) for name in node.inputs)
                label = f"{node.operator} on the host"
                calls.append(RunOnHost(node.operator, node.attributes, inputs, node.outputs, label))
            case AliasCall(output, source, offset):
                parts.append((output, Inside(constants.plain(source), offset)))
            case ConcatInPlace(output, pieces):
                parts += [(name, Inside(output, offset)) for name, offset in pieces]
    for name in graph.outputs:
        constants.plain(name)
    network = Network(
        graph.name,
        target,
        usable_threads(threads),
        tuple(_spec(graph, name) for name in graph.inputs),
        tuple(_spec(graph, name) for name in graph.outputs),
        constants.specs,
        tuple(kernels[key].spec for key in keys),
        tuple(calls),
        tuple((name, _stored_type(graph, name)) for name in graph.types),
        tuple(parts),
    )
    objects = tuple(kernels[key].object_code for key in keys)
    arrays = tuple(constants.packed.values())
    return Executable(make_plan(network), objects, arrays, threads=threads, sources=sources)


def assemble_workload(
    workload: Workload,
    built: Kernel,
    target: Target,
    threads: int | None,
    constants: Mapping[str, Array] | None = None,
) -> Executable:
    """The executable of one workload, whose inputs are the caller's but for its constants.

    constants   a value for each of them, of its type
    """
    values = constants or {}
    packed: list[Array] = []
    given = [parameter for parameter in built.parameters if parameter.name in values]
    for parameter in given:
        array = values[parameter.name]
        if parameter.packing is not None:
            array = pack(array, parameter.packing)
        packed.append(np.ascontiguousarray(array))
    specs = tuple(
        TensorSpec(parameter.name, DType.from_numpy(array.dtype), array.shape)
        for parameter, array in zip(given, packed, strict=True)
    )
    inputs = tuple(
        spec for spec in _border(workload.inputs, workload.input_types) if spec.name not in values
    )
    outputs = _border(workload.outputs, workload.output_types)
    label = workload.name
    names = tuple(parameter.name for parameter in built.parameters)
    call = RunKernel(0, names, label, work(workload.outputs), _moved_bytes(workload))
    count = usable_threads(threads)
    network = Network(label, target, count, inputs, outputs, specs, (built.spec,), (call,), ())
    return Executable(make_plan(network), (built.object_code,), tuple(packed), threads=threads)


def _border(tensors: Sequence[Tensor], types: Sequence[TensorType]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(tensor.name, each.dtype, each.shape)
        for tensor, each in zip(tensors, types, strict=True)
    )


def _run_kernel(
    step: KernelCall, kernel: int, kernels: Mapping[str, Kernel], constants: _Constants
) -> RunKernel:
    workload = step.workload
    names = _arguments(step, kernels[workload.key], constants)
    moved = _moved_bytes(workload)
    return RunKernel(kernel, names, workload.name, work(workload.outputs), moved)


def _moved_bytes(workload: Workload) -> int:
    return sum(t.size_bytes for t in (*workload.input_types, *workload.output_types))


def _spec(graph: Graph, name: str) -> TensorSpec:
    found = graph.types[name]
    return TensorSpec(name, found.dtype, found.shape)


def _stored_type(graph: Graph, name: str) -> TensorType:
    found = graph.types[name]
    return TensorType(found.dtype, physical_shape(found.shape, graph.layouts.get(name, PLAIN)))


class _Constants:
    """The constants that kernels read, each packing of each constant once; mutable."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.packed: dict[str, Array] = {}
        self.names: dict[tuple[str, Packing | None], str] = {}

    def plain(self, name: str) -> str:
        """The name under which a tensor is known to the plan; a constant is kept as it is."""
        return self.argument(name, None) if name in self.graph.constants else name

    def argument(self, name: str, packing: Packing | None) -> str:
        """The name of a constant, packed as asked."""
        known = self.names.get((name, packing))
        if known is not None:
            return known
        array = to_physical(self.graph.constants[name], self.graph.layouts.get(name, PLAIN))
        label = name if packing is None else f"{name}#{len(self.names)}"
        self.packed[label] = np.ascontiguousarray(
            array if packing is None else pack(array, packing)
        )
        self.names[name, packing] = label
        return label

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Names and types of what has been packed, in order."""
        return tuple(
            TensorSpec(name, DType.from_numpy(array.dtype), array.shape)
            for name, array in self.packed.items()
        )


def _arguments(step: KernelCall, built: Kernel, constants: _Constants) -> tuple[str, ...]:
    """The tensors of a call in the order of the kernel's parameters."""
    workload = step.workload
    tensors = dict(zip((t.name for t in workload.inputs), step.inputs, strict=True))
    tensors |= dict(zip((t.name for t in workload.outputs), step.outputs, strict=True))
    names: list[str] = []
    for parameter in built.parameters:
        tensor = tensors[parameter.name]
        if parameter.role is Role.CONSTANT:
            names.append(constants.argument(tensor, parameter.packing))
        else:
            names.append(constants.plain(tensor))
    return tuple(names)
