"""Run a partition on arrays in the layouts of its graph, tensors being bytes in memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import assert_never

import numpy as np

from tensorwright.graph import (
    PLAIN,
    AliasCall,
    ConcatInPlace,
    Graph,
    KernelCall,
    Layout,
    OpaqueCall,
    Partition,
    interpret,
    physical_shape,
    reference,
    run_node,
    to_physical,
)
from tensorwright.graph.physical import _order
from tensorwright.ops import Array


def to_plain(array: Array, layout: Layout) -> Array:
    """The inverse of `to_physical`."""
    if layout.is_plain:
        return np.ascontiguousarray(array)
    moved = array
    order = _order(layout, array.ndim - (layout.block > 1))
    if layout.block > 1:
        at = order.index(layout.axis)
        moved = np.moveaxis(moved, -1, at + 1)
        shape = moved.shape
        moved = moved.reshape(*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
    return np.ascontiguousarray(moved.transpose(np.argsort(order)))


def _shaped(graph: Graph, name: str, memory: bytes) -> Array:
    """The first bytes of some memory as the physical array of a tensor."""
    type_ = graph.types[name]
    flat = np.frombuffer(memory[: type_.size_bytes], type_.dtype.numpy)
    return flat.reshape(physical_shape(type_.shape, graph.layouts.get(name, PLAIN)))


def run_partition(partition: Partition, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The plain outputs of the graph; every step reads what earlier steps wrote."""
    graph = partition.graph
    memory: dict[str, bytes] = {}
    for name, array in {**graph.constants, **inputs}.items():
        memory[name] = to_physical(array, graph.layouts.get(name, PLAIN)).tobytes()
    for step in partition.steps:
        match step:
            case KernelCall(workload, sources, outputs):
                arrays = [
                    _shaped(graph, name, memory[name]).reshape(type_.extents)
                    for name, type_ in zip(sources, workload.input_types, strict=True)
                ]
                results = reference(workload, arrays)
            case OpaqueCall(node):
                outputs = node.outputs
                results = run_node(node, [_shaped(graph, x, memory[x]) for x in node.inputs])
            case AliasCall(output, source, offset):
                memory[output] = memory[source][offset:]
                continue
            case ConcatInPlace(output, parts):
                whole = bytearray(graph.types[output].size_bytes)
                for name, offset in parts:
                    assert offset % 64 == 0
                    size = graph.types[name].size_bytes
                    whole[offset : offset + size] = memory[name][:size]
                memory[output] = bytes(whole)
                continue
            case _:
                assert_never(step)
        for name, array in zip(outputs, results, strict=True):
            shape = physical_shape(graph.types[name].shape, graph.layouts.get(name, PLAIN))
            assert array.size == prod(shape)
            memory[name] = np.ascontiguousarray(array).tobytes()
    found = {}
    for name in graph.outputs:
        found[name] = to_plain(_shaped(graph, name, memory[name]), graph.layouts.get(name, PLAIN))
    return found


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Arrays for the inputs: normal floats, small integers."""
    generator = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, type_ in graph.input_types.items():
        if type_.dtype.is_float:
            found[name] = generator.normal(size=type_.shape).astype(type_.dtype.numpy)
        else:
            found[name] = generator.integers(0, 3, type_.shape).astype(type_.dtype.numpy)
    return found


def check_partition(partition: Partition, seed: int = 0) -> None:
    """Compare with the interpreter, which knows neither groups nor layouts."""
    inputs = random_inputs(partition.graph, seed)
    expected = interpret(partition.graph, inputs)
    for name, array in run_partition(partition, inputs).items():
        np.testing.assert_allclose(array, expected[name], rtol=2e-4, atol=2e-5, err_msg=name)
