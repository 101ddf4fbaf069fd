"""A partitioned network: steps in an order in which they can run.

    Partition ::= graph, steps
    step      ::= KernelCall | OpaqueCall | AliasCall | ConcatInPlace
                | CopyCall | BranchCall | LoopCall | CollectCall

A kernel reads its inputs and writes its outputs.  An alias and a concat in place do no work: they
only say how tensors lie in memory.  The steps of the graphs that a node holds follow the step of
the node; the names of their tensors are different from all others.

Refuse a network that cannot fit into memory, before time is spent on it.

Partitions with numbers for named sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias, assert_never

from tensorwright.base import Printer, check_fits
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, format_name
from tensorwright.graph.nested import LoopForm
from tensorwright.graph.sizes import bind_node, bind_sizes, bind_types, least_bytes
from tensorwright.graph.workload import Workload, bind_workload
from tensorwright.ops import Array, TensorType


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A workload on tensors of the graph, in the order of its inputs and outputs."""

    workload: Workload
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """A node without a tensor expression; its tensors are plain."""

    node: Node


@dataclass(frozen=True, slots=True)
class AliasCall:
    """The output lies in the memory of the input, from a byte on; its shape may be another one.

    The input may be an input or a constant of the graph; the output may be an output of the graph.
    """

    output: str
    input: str
    offset_bytes: int
    node: Node


@dataclass(frozen=True, slots=True)
class ConcatInPlace:
    """The parts lie in the memory of the output, at byte offsets; kernels write them there.

    A part may be a concat in place itself.  The step follows the steps that write its parts.
    """

    output: str
    parts: tuple[tuple[str, int], ...]
    node: Node


@dataclass(frozen=True, slots=True)
class CopyCall:
    """The output gets the elements of the input, such as a result of a nested graph."""

    output: str
    input: str
    node: Node


@dataclass(frozen=True, slots=True)
class BranchCall:
    """The next `then` steps run if the condition holds, else the `otherwise` steps after those."""

    condition: str
    then: int
    otherwise: int
    node: Node


@dataclass(frozen=True, slots=True)
class LoopCall:
    """The next `body` steps run while the condition holds, `count` times at most.

    iteration   a tensor that gets the number of the iteration
    counted     the size that the loop decides, or the number that stands for it; "" if it decides
                no size
    """

    count: str
    condition: str
    iteration: str
    body: int
    counted: str | int
    node: Node


@dataclass(frozen=True, slots=True)
class CollectCall:
    """The row of the output whose number is the iteration gets the elements of the input."""

    output: str
    input: str
    iteration: str
    node: Node


Step: TypeAlias = (
    KernelCall
    | OpaqueCall
    | AliasCall
    | ConcatInPlace
    | CopyCall
    | BranchCall
    | LoopCall
    | CollectCall
)


def reads_of_step(step: Step) -> tuple[str, ...]:
    """The tensors that a step needs, in order."""
    match step:
        case KernelCall(inputs=inputs):
            return inputs
        case OpaqueCall(node):
            return node.inputs
        case AliasCall(input=source):
            return (source,)
        case ConcatInPlace(parts=parts):
            return tuple(name for name, _ in parts)
        case CopyCall(input=source):
            return (source,)
        case BranchCall(condition=condition):
            return (condition,)
        case LoopCall(count, condition):
            return (count, condition)
        case CollectCall(_, source, iteration):
            return (source, iteration)
    assert_never(step)


def writes_of_step(step: Step) -> tuple[str, ...]:
    """The tensors that a step makes, in order."""
    match step:
        case KernelCall(outputs=outputs):
            return outputs
        case OpaqueCall(node):
            return node.outputs
        case AliasCall(output=output) | ConcatInPlace(output=output) | CopyCall(output=output):
            return (output,)
        case CollectCall(output=output):
            return (output,)
        case LoopCall(iteration=iteration):
            return (iteration,)
        case BranchCall():
            return ()
    assert_never(step)


@dataclass(frozen=True, slots=True, eq=False)
class Tensors:
    """Types of tensors, arrays of the constant ones, layouts of those that are not plain."""

    types: Mapping[str, TensorType] = field(default_factory=lambda: MappingProxyType({}))
    constants: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    layouts: Mapping[str, Layout] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A graph with its layouts, and the steps that compute it.

    inside   the tensors of the graphs that nodes hold, under the names that steps use
    """

    graph: Graph
    steps: tuple[Step, ...]
    inside: Tensors = field(default_factory=Tensors)

    @property
    def tensors(self) -> Tensors:
        """All tensors that steps name."""
        graph, inside = self.graph, self.inside
        return Tensors(
            MappingProxyType({**graph.types, **inside.types}),
            MappingProxyType({**graph.constants, **inside.constants}),
            MappingProxyType({**graph.layouts, **inside.layouts}),
        )

    @property
    def kernels(self) -> tuple[KernelCall, ...]:
        """The steps that run compiled code, in order."""
        return tuple(step for step in self.steps if isinstance(step, KernelCall))

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The different workloads, in the order of their first use."""
        return tuple({call.workload.key: call.workload for call in self.kernels}.values())

    def count(self, workload: Workload) -> int:
        """How many kernel calls run a workload."""
        return sum(call.workload.key == workload.key for call in self.kernels)

    def describe_workloads(self, workloads: Sequence[Workload]) -> str:
        """The text of some workloads, and how often each runs."""
        pages = (f"{each}\n  runs {self.count(each)} times\n" for each in workloads)
        return "\n".join(pages)

    def describe(self) -> str:
        """The text of the steps, then of the workloads."""
        return f"{self}\n\n{self.describe_workloads(self.workloads)}"

    def __str__(self) -> str:
        page = Printer()
        head = f"{len(self.kernels)} kernels, {len(self.workloads)} workloads"
        with page.block(f"partition {format_name(self.graph.name)}: {head}"):
            for step in self.steps:
                page.line(self._line(step))
        return str(page)

    def _line(self, step: Step) -> str:
        left = ", ".join(self._typed(name) for name in writes_of_step(step))
        match step:
            case KernelCall(workload, inputs):
                return f"{left} = kernel {workload.name}({_listed(inputs)})"
            case OpaqueCall(node):
                return f"{left} = opaque {node.operator}({_listed(node.inputs)})"
            case AliasCall(_, source, offset):
                return f"{left} = alias {format_name(source)}{f' + {offset}' if offset else ''}"
            case ConcatInPlace(_, parts):
                placed = [f"{format_name(name)} at {offset}" for name, offset in parts]
                return f"{left} = in place {', '.join(placed)}"
            case CopyCall(_, source):
                return f"{left} = copy {format_name(source)}"
            case BranchCall(condition, then, otherwise):
                return f"if {format_name(condition)}: {then} steps, else: {otherwise} steps"
            case LoopCall(count, condition, _, body):
                most = format_name(count)
                return f"{left} in 0..{most} while {format_name(condition)}: {body} steps"
            case CollectCall(_, source, iteration):
                return f"{left} row {format_name(iteration)} = {format_name(source)}"
        assert_never(step)

    def _typed(self, name: str) -> str:
        layout = self.tensors.layouts.get(name, PLAIN)
        suffix = "" if layout.is_plain else f" {layout}"
        return f"{format_name(name)}: {self.tensors.types[name]}{suffix}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(format_name, names))


def check_memory(parts: Partition) -> Partition:
    """Return the partition if the tensors of every step fit, with inputs, outputs and constants.

    Each named size counts with its least value.
    Raises:  MachineError that names the largest tensor.
    """
    graph, tensors = parts.graph, parts.tensors
    always = (*graph.inputs, *tensors.constants, *graph.outputs)
    sizes = {name: least_bytes(tensors.types[name]) for name in always}
    check_fits(sizes)
    for step in parts.steps:
        if not isinstance(step, AliasCall | ConcatInPlace):
            names = (*reads_of_step(step), *writes_of_step(step))
            check_fits({**sizes, **{name: least_bytes(tensors.types[name]) for name in names}})
    return parts


def bind_partition(parts: Partition, values: Mapping[str, int]) -> Partition:
    """The same steps with numbers for some named sizes; the other named sizes stay.

    Raises:  what `bind_sizes` raises.
    """
    graph = bind_sizes(parts.graph, values)
    workloads: dict[str, Workload] = {}

    def numbered(node: Node) -> Node:
        return bind_node(node, values)

    def bound(step: Step) -> Step:
        if isinstance(step, LoopCall):
            node = numbered(step.node)
            return replace(step, node=node, counted=LoopForm.of(node).counted)
        if not isinstance(step, KernelCall):
            return replace(step, node=numbered(step.node))
        workload = workloads.get(step.workload.key)
        if workload is None:
            workload = workloads[step.workload.key] = bind_workload(step.workload, values)
        return replace(step, workload=workload, nodes=tuple(map(numbered, step.nodes)))

    inside = replace(parts.inside, types=bind_types(parts.inside.types, values))
    return Partition(graph, tuple(map(bound, parts.steps)), inside)


def bound_workloads(parts: Partition, bound: Partition) -> dict[str, Workload]:
    """Each workload with numbers for its sizes, by its key.

    bound   the same steps with numbers for the sizes
    """
    pairs = zip(parts.steps, bound.steps, strict=True)
    return {
        one.workload.key: other.workload
        for one, other in pairs
        if isinstance(one, KernelCall) and isinstance(other, KernelCall)
    }
