"""The kernels of the opaque nodes that have a loop algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tensorwright.base import Target, TargetKind, UndecidedError
from tensorwright.build.cached_build import build_program_cached
from tensorwright.build.kernel import Kernel
from tensorwright.graph import Node, OpaqueCall, Partition, Tensors
from tensorwright.loop import LoopProgram, loop_algorithm, run_passes, run_target_passes
from tensorwright.ops import AttributeValue, TensorType


def program_of(graph: Tensors, node: Node, kind: TargetKind) -> LoopProgram | None:
    """The loop nest of an opaque node; None if only the host can run it."""
    types = tuple(graph.types[name] for name in node.inputs)
    return _program(node.operator, types, node.attributes, kind)


@lru_cache(maxsize=256)
def _program(
    operator: str,
    types: tuple[TensorType, ...],
    attributes: tuple[tuple[str, AttributeValue], ...],
    kind: TargetKind,
) -> LoopProgram | None:
    try:
        program = loop_algorithm(operator, types, dict(attributes), kind)
        return None if program is None else run_passes(program)
    except UndecidedError:  # the loop algorithm needs sizes as numbers; NumPy takes all
        return None


def opaque_programs(partition: Partition, kind: TargetKind) -> Mapping[str, LoopProgram]:
    """The different loop algorithms of a network by their texts, in the order of first use."""
    nodes = (step.node for step in partition.steps if isinstance(step, OpaqueCall))
    programs = (program_of(partition.tensors, node, kind) for node in nodes)
    return {str(program): program for program in programs if program is not None}


def build_opaque(partition: Partition, target: Target) -> dict[str, Kernel]:
    """The kernels of a network's loop algorithms by their texts, built through the cache."""
    programs = opaque_programs(partition, target.kind).items()
    return {
        text: build_program_cached(run_target_passes(program, target), target)
        for text, program in programs
    }
