"""Refuse a network that cannot fit into memory, before time is spent on it."""

from __future__ import annotations

from tensorwright.base import check_fits
from tensorwright.graph.partition.steps import (
    AliasCall,
    ConcatInPlace,
    Partition,
    reads_of_step,
    writes_of_step,
)
from tensorwright.graph.sizes import least_bytes


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
