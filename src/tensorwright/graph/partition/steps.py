"""A partitioned network: steps in an order in which they can run.

    Partition ::= graph, steps
    step      ::= KernelCall | OpaqueCall | AliasCall | ConcatInPlace
                | CopyCall | BranchCall | LoopCall | CollectCall

A kernel reads its inputs and writes its outputs.  An alias and a concat in place do no work: they
only say how tensors lie in memory.  The steps of the graphs that a node holds follow the step of
the node; the names of their tensors are different from all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias, assert_never

from tensorwright.base import Printer, check_fits
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, format_name
from tensorwright.graph.nested import LoopForm
from tensorwright.graph.sizes import bind_node, bind_sizes, bind_types, least_bytes
from tensorwright.graph.workload import Workload, bind_workload
from tensorwright.ops import Array, TensorType


@dataclass(frozen=True, slots=True)
class _Step:
    """Base of the steps: which of its fields hold tensors that it needs, and that it makes."""

    READS: ClassVar[tuple[str, ...]] = ()
    WRITES: ClassVar[tuple[str, ...]] = ()

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The step with new names for its tensors; one without a new name keeps its own."""

        def new(value: Any) -> Any:
            if isinstance(value, Node):
                return value.renamed(names)
            if isinstance(value, tuple):
                return tuple(map(new, value))
            return names.get(value, value) if isinstance(value, str) else value

        held = (*self.READS, *self.WRITES, "node", "nodes")
        own = [each.name for each in fields(self) if each.name in held]
        return replace(self, **{name: new(getattr(self, name)) for name in own})


@dataclass(frozen=True, slots=True)
class KernelCall(_Step):
    """A workload on tensors of the graph, in the order of its inputs and outputs."""

    READS, WRITES = ("inputs",), ("outputs",)
    workload: Workload
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OpaqueCall(_Step):
    """A node without a tensor expression; its tensors are plain."""

    READS, WRITES = ("node.inputs",), ("node.outputs",)
    node: Node


@dataclass(frozen=True, slots=True)
class AliasCall(_Step):
    """The output lies in the memory of the input, from a byte on; its shape may be another one.

    The input may be an input or a constant of the graph; the output may be an output of the graph.
    """

    READS, WRITES = ("input",), ("output",)
    output: str
    input: str
    offset_bytes: int
    node: Node


@dataclass(frozen=True, slots=True)
class ConcatInPlace(_Step):
    """The parts lie in the memory of the output, at byte offsets; kernels write them there.

    A part may be a concat in place itself.  The step follows the steps that write its parts.
    """

    READS, WRITES = ("parts",), ("output",)
    output: str
    parts: tuple[tuple[str, int], ...]
    node: Node


@dataclass(frozen=True, slots=True)
class CopyCall(_Step):
    """The output gets the elements of the input, such as a result of a nested graph."""

    READS, WRITES = ("input",), ("output",)
    output: str
    input: str
    node: Node


@dataclass(frozen=True, slots=True)
class BranchCall(_Step):
    """The next `then` steps run if the condition holds, else the `otherwise` steps after those."""

    READS = ("condition",)
    condition: str
    then: int
    otherwise: int
    node: Node


@dataclass(frozen=True, slots=True)
class LoopCall(_Step):
    """The next `body` steps run while the condition holds, `count` times at most.

    iteration   a tensor that gets the number of the iteration
    counted     the size that the loop decides, or the number that stands for it; "" if it decides
                no size
    """

    READS, WRITES = ("count", "condition"), ("iteration",)
    count: str
    condition: str
    iteration: str
    body: int
    counted: str | int
    node: Node


@dataclass(frozen=True, slots=True)
class CollectCall(_Step):
    """The row of the output whose number is the iteration gets the elements of the input."""

    READS, WRITES = ("input", "iteration"), ("output",)
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


def _tensors_of(step: Step, names: tuple[str, ...]) -> tuple[str, ...]:
    """The tensors that fields hold: one, several, or several with offsets."""
    held: list[Any] = []
    for name in names:
        value = attrgetter(name)(step)
        held += (value,) if isinstance(value, str) else value
    return tuple(each if isinstance(each, str) else each[0] for each in held)


def reads_of_step(step: Step) -> tuple[str, ...]:
    """The tensors that a step needs, in order."""
    return _tensors_of(step, step.READS)


def writes_of_step(step: Step) -> tuple[str, ...]:
    """The tensors that a step makes, in order."""
    return _tensors_of(step, step.WRITES)


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
    """The same steps with numbers for some named sizes; the other named sizes stay."""
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
