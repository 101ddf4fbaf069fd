"""What a partitioned network is: steps in an order in which they can run.

    Partition ::= graph, steps
    step      ::= KernelCall | OpaqueCall | AliasCall | ConcatInPlace

A kernel writes its outputs and reads its inputs; an alias and a concat in place are no work, only
statements about where tensors lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from tensorwright.base import Printer
from tensorwright.graph.graph import PLAIN, Graph, Node
from tensorwright.graph.printing import format_name
from tensorwright.graph.workload import Workload


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A workload on tensors of the graph, in the order of its inputs and outputs."""

    workload: Workload
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """A node that no tensor expression says; its tensors are plain."""

    node: Node


@dataclass(frozen=True, slots=True)
class AliasCall:
    """The output is the memory of the input from a byte on, under another shape.

    The input may be an input or a constant of the graph; the output may be an output of the graph.
    """

    output: str
    input: str
    offset_bytes: int
    node: Node


@dataclass(frozen=True, slots=True)
class ConcatInPlace:
    """The parts lie in the memory of the output, at byte offsets; kernels write them there.

    A part may be a concat in place itself.  The step stands where the last part has been written.
    """

    output: str
    parts: tuple[tuple[str, int], ...]
    node: Node


Step: TypeAlias = KernelCall | OpaqueCall | AliasCall | ConcatInPlace


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
    assert_never(step)


def writes_of_step(step: Step) -> tuple[str, ...]:
    """The tensors that exist after a step and did not before, in order."""
    match step:
        case KernelCall(outputs=outputs):
            return outputs
        case OpaqueCall(node):
            return node.outputs
        case AliasCall(output=output) | ConcatInPlace(output=output):
            return (output,)
    assert_never(step)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A graph (with its layouts) and the steps that compute it."""

    graph: Graph
    steps: tuple[Step, ...]

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
        """Some of the workloads and how often each runs."""
        pages = (f"{each}\n  runs {self.count(each)} times\n" for each in workloads)
        return "\n".join(pages)

    def describe(self) -> str:
        """The steps, then the workloads."""
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
        assert_never(step)

    def _typed(self, name: str) -> str:
        layout = self.graph.layouts.get(name, PLAIN)
        suffix = "" if layout.is_plain else f" {layout}"
        return f"{format_name(name)}: {self.graph.types[name]}{suffix}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(format_name, names))
