"""Run built kernels in this process and compare them with the evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray
from tests.targets import native_target
from tests.unit.graph.partition.partition_runner import random_inputs

from tensorwright.artifacts import Kernel, build_cached, load_kernel
from tensorwright.base import CpuTarget
from tensorwright.graph import (
    PLAIN,
    Graph,
    KernelCall,
    Partition,
    Workload,
    choose_layouts,
    interpret,
    partition,
    physical_shape,
    reference,
    simplify,
    to_physical,
)
from tensorwright.loop import Role, pack
from tensorwright.ops import Array
from tensorwright.pipeline import finish
from tensorwright.records import MemoryStore
from tensorwright.runtime import HOST, Memory, empty
from tensorwright.schedule import format_trace, parse_trace
from tensorwright.tuning.measuring.timing import Guarded, allowed_error, find_difference
from tensorwright.tuning.space import Sketch

Case = tuple[Workload, tuple[Array, ...]]


def workloads(graph: Graph, target: CpuTarget, *, blocked: bool = True) -> tuple[Case, ...]:
    """The workloads of a graph, each with arrays for its inputs."""
    simple = simplify(graph)
    parts = partition(choose_layouts(simple, target) if blocked else simple)
    values = interpret_all(parts, random_inputs(graph))
    found: dict[str, Case] = {}
    for step in parts.steps:
        if isinstance(step, KernelCall):
            arrays = tuple(_physical(parts.graph, name, values) for name in step.inputs)
            found.setdefault(step.workload.key, (step.workload, arrays))
    return tuple(found.values())


def interpret_all(parts: Partition, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Random arrays of the right types for every tensor that no caller gives; real ones else."""
    graph = parts.graph
    generator = np.random.default_rng(0)
    values: dict[str, Array] = {**graph.constants, **inputs}
    for name, type_ in graph.types.items():
        if name not in values:
            drawn = generator.normal(size=type_.shape) * 2
            values[name] = (drawn if type_.dtype.is_float else np.abs(drawn)).astype(
                type_.dtype.numpy
            )
    return values


def _physical(graph: Graph, name: str, values: Mapping[str, Array]) -> Array:
    layout = graph.layouts.get(name, PLAIN)
    array = to_physical(values[name], layout)
    return array.reshape(physical_shape(graph.types[name].shape, layout))


def weights(*shape: int) -> NDArray[np.float32]:
    """Normal numbers, the same for the same shape."""
    return np.random.default_rng(shape).standard_normal(shape, np.float32)


def check_network(graph: Graph) -> None:
    """Run a network with the schedules by rule and compare what comes out with the interpreter."""
    target = native_target()
    inputs = {name: weights(*type_.shape) for name, type_ in graph.input_types.items()}
    parts = partition(choose_layouts(simplify(graph), target))
    found = finish(parts, target, 2, MemoryStore()).run(inputs)
    for name, expected in interpret(graph, inputs).items():
        assert np.abs(found[name] - expected).max() <= 1e-5 * np.abs(expected).max()


def check_schedule(case: Case, trace: str, target: CpuTarget, threads: int = 2) -> None:
    """Build a schedule of a workload and compare what it computes with the evaluator."""
    workload, arrays = case
    built = build_cached(workload, parse_trace(trace), target)
    expected = reference(workload, arrays)
    found = run(built, workload, arrays, threads)
    for tensor, answer in zip(workload.outputs, expected, strict=True):
        output = found[tensor.name]
        allowed = allowed_error(answer, tensor.dtype, has_floats=True)
        assert output.is_intact(), f"{tensor.name}: written outside\n{trace}"
        difference = find_difference(output.array, answer, allowed)
        assert difference == "", f"{tensor.name}: {difference}\n{workload}\n{trace}"


def check_sketches(
    case: Case, sketches: Sequence[Sketch], target: CpuTarget, source: Random, samples: int = 1
) -> None:
    """The default of every sketch, and so many others of one that is drawn, are right."""
    drawn = source.choice(sketches)
    traces = [sketch.bound(sketch.defaults) for sketch in sketches]
    for trace in (*traces, *(drawn.bound(drawn.sample(source)) for _ in range(samples))):
        check_schedule(case, format_trace(trace), target)


def run(
    built: Kernel, workload: Workload, arrays: tuple[Array, ...], threads: int
) -> dict[str, Guarded]:
    """The outputs of a kernel."""
    given = dict(zip((tensor.name for tensor in workload.inputs), arrays, strict=True))
    outputs: dict[str, Guarded] = {}
    arguments: list[Memory] = []
    for parameter in built.parameters:
        name = parameter.name
        if parameter.role is Role.OUTPUT:
            shape = tuple(int(str(extent)) for extent in parameter.buffer.shape)
            outputs[name] = Guarded(shape, parameter.buffer.dtype)
            arguments.append(outputs[name].memory)
            continue
        array = given[name]
        if parameter.packing is not None:
            array = pack(array, parameter.packing)
        held = empty(array.shape, parameter.buffer.dtype)
        held[...] = array
        arguments.append(HOST.memory_of(held))
    workspace = HOST.allocate(built.spec.scratch_bytes(threads))
    load_kernel(built).launch(arguments, workspace, threads)
    return outputs
