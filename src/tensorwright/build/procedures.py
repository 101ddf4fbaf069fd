"""The kernels of the opaque nodes that have a procedure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tensorwright.base import Target
from tensorwright.build.cached_build import build_program_cached
from tensorwright.build.kernel import Kernel
from tensorwright.graph import Graph, Node, OpaqueCall, Partition
from tensorwright.loop import LoopProgram, run_target_passes
from tensorwright.ops import AttributeValue, TensorType
from tensorwright.procedures import procedure


def program_of(graph: Graph, node: Node) -> LoopProgram | None:
    """The loop nest of an opaque node; None if only the host can run it."""
    types = tuple(graph.types[name] for name in node.inputs)
    return _program(node.operator, types, node.attributes)


@lru_cache(maxsize=256)
def _program(
    operator: str,
    types: tuple[TensorType, ...],
    attributes: tuple[tuple[str, AttributeValue], ...],
) -> LoopProgram | None:
    return procedure(operator, types, dict(attributes))


def procedures_of(partition: Partition) -> Mapping[str, LoopProgram]:
    """The different procedures of a network by their texts, in the order of their first use."""
    nodes = (step.node for step in partition.steps if isinstance(step, OpaqueCall))
    programs = (program_of(partition.graph, node) for node in nodes)
    return {str(program): program for program in programs if program is not None}


def build_procedures(partition: Partition, target: Target) -> dict[str, Kernel]:
    """The kernels of procedures, from the cache if they are in it."""
    programs = procedures_of(partition).items()
    return {
        text: build_program_cached(run_target_passes(program, target), target)
        for text, program in programs
    }
