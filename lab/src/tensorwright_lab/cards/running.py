"""Run a program for graphics processors on the device of its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorwright.artifacts import backend_of
from tensorwright.base import GpuTarget
from tensorwright.loop import LoopProgram, Parameter, Role, pack
from tensorwright.runtime import device_of, kernel_spec

Arrays = Mapping[str, np.ndarray[Any, Any]]
_NOTHING = 77
"""The value that fills outputs before a run: no program computes it."""


def run_on(target: GpuTarget, program: LoopProgram, arrays: Arrays) -> dict[str, Any]:
    """The outputs of a program without open sizes.

    Raises:  MachineError where the device of the target is missing, or refuses the program.
    """
    device, backend = device_of(target), backend_of(target)
    source = backend.emit(program, target)
    spec = kernel_spec(source.signature)
    code = device.load(backend.compile(source, target), spec.symbols)
    results = empty_results(program)
    memories = [
        device.memory_of(results.get(each.buffer.name, given_array(each, arrays)))
        for each in program.parameters
    ]
    workspace = device.allocate(spec.scratch_bytes(0))
    for symbol, launch in zip(spec.symbols, spec.launches, strict=True):
        device.launch(code.address(symbol), launch, memories, workspace)
    device.wait()
    for each, memory in zip(program.parameters, memories, strict=True):
        if each.role is Role.OUTPUT:
            device.copy_out(memory, results[each.buffer.name])
    return results


def given_array(parameter: Parameter, arrays: Arrays) -> np.ndarray[Any, Any]:
    """The array for a parameter of a program: a packed one for a packed constant."""
    array = arrays.get(parameter.name, np.zeros(0))
    return array if parameter.packing is None else pack(array, parameter.packing)


def empty_results(program: LoopProgram) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays for the outputs, full of what no program computes."""
    return {
        each.buffer.name: np.full(each.buffer.extents, _NOTHING).astype(each.buffer.dtype.numpy)
        for each in program.parameters
        if each.role is Role.OUTPUT
    }
