"""A kernel of ours for a case of the operator suite, for `FunctionPeer`.

The path of the factory is "tensorwright_lab.competitors.our_operators:make". A native loop
calls the kernel once for each copy, so that Python's time between calls does not count; every copy
has inputs, weights and outputs of its own. Scratch memory is shared: the copies run one after the
other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorwright.artifacts import Kernel, build_cached, load_kernel
from tensorwright.base import cpu_target
from tensorwright.loop import Role, pack
from tensorwright.ops import Array
from tensorwright.peers.process.protocol import Arrays
from tensorwright.runtime import HOST, empty, kernel_ready
from tensorwright.schedule import parse_trace
from tensorwright_lab import zoo

FACTORY = "tensorwright_lab.competitors.our_operators:make"


class CopiedKernel:
    """A kernel and the buffers of all copies; calling it runs all of them once."""

    def __init__(
        self, program: zoo.OperatorProgram, kernel: Kernel, copies: int, threads: int, seed: int = 0
    ) -> None:
        self.outputs: list[Array] = []
        self._kept: list[Array] = []
        self._kernel = load_kernel(kernel)
        self._workspace = HOST.allocate(kernel.spec.scratch_bytes(threads))
        self._threads = threads
        names = [tensor.name for tensor in program.workload.inputs]
        rows = []
        for copy in range(copies):
            arrays = zoo.workload_arrays(program, zoo.draw_operands(program, copy, seed))
            rows.append(self._arguments(kernel, dict(zip(names, arrays, strict=True))))
        self._table = np.array(rows, np.uint64)

    def __call__(self) -> list[Array]:
        """The outputs of all copies, in the stated layout."""
        functions, table = self._kernel.functions, self._table
        HOST.time_calls(functions, table, self._workspace, self._threads, len(table))
        return self.outputs

    def _arguments(self, kernel: Kernel, inputs: Mapping[str, Array]) -> list[int]:
        addresses = []
        for parameter in kernel.parameters:
            if parameter.role is Role.OUTPUT:
                array = empty(parameter.buffer.extents, parameter.buffer.dtype)
                array[...] = math.nan
                self.outputs.append(array)
            else:
                array = inputs[parameter.name]
                if parameter.packing is not None:
                    array = pack(array, parameter.packing)
                array = kernel_ready(array)
                self._kept.append(array)
            addresses.append(int(array.ctypes.data))
        return addresses


def make(
    inputs: Arrays,
    threads: int,
    *,
    case: dict[str, Any],
    trace: str,
    target: str,
    copies: int,
    seed: int = 0,
) -> Callable[[], list[Array]]:
    """Build the kernel by its trace and give buffers to its copies; `inputs` is not read."""
    program = zoo.operator_program(zoo.OperatorCase.from_json(case))
    kernel = build_cached(program.workload, parse_trace(trace), cpu_target(target))
    return CopiedKernel(program, kernel, copies, threads, seed)
