"""The host as a device: its memory is Python's, and a launch is a call.

Run one operator on the host, in the middle of a call.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.runtime.buffers import address_of, byte_view, empty_bytes, kernel_ready
from tensorwright.runtime.device import Device, Function, Memory, Missing
from tensorwright.runtime.native.jit import LoadedCode, load_code
from tensorwright.runtime.native.own_modules import call_loop
from tensorwright.runtime.native.pool import float_bits
from tensorwright.runtime.plan.plan import HostStep, TypedRef
from tensorwright.runtime.plan.plan_sizes import numbered

_FREE_PAGES = "SC_AVPHYS_PAGES"
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)


class HostDevice(Device):
    """This machine's processor."""

    def missing(self, target: base.Target) -> Missing | None:
        """The instructions of the target that this processor does not have; None if it has all."""
        lack = base.missing_here(target)
        return Missing(lack) if lack else None

    def free_bytes(self) -> int:
        """The free memory; all memory on systems that do not tell it."""
        if _FREE_PAGES in os.sysconf_names:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf(_FREE_PAGES)
        return base.physical_memory_bytes()

    def allocate(self, size_bytes: int) -> Memory:
        """As `runtime.empty`, but at least one byte, so that it has an address."""
        array = empty_bytes(max(1, size_bytes))
        return Memory(address_of(array), size_bytes, array)

    def copy_in(self, array: base.Array, memory: Memory) -> None:
        """One copy, from a dense array."""
        source = byte_view(array)
        np.copyto(_part(memory, source.size), source)

    def copy_out(self, memory: Memory, array: base.Array) -> None:
        """One copy, into a dense array."""
        destination = byte_view(array)
        np.copyto(destination, _part(memory, destination.size))

    def copy(self, source: Memory, destination: Memory) -> None:
        """One copy."""
        np.copyto(_part(destination, source.size_bytes), host_bytes(source))

    def memory_of(self, array: base.Array) -> Memory:
        """The memory of the array if kernels can read it in place, otherwise of a copy."""
        ready = kernel_ready(array)
        return Memory(address_of(ready), ready.nbytes, ready)

    def load(self, code: bytes, symbols: Sequence[str]) -> LoadedCode:
        """As `load_code`: object files and shared objects."""
        return load_code(code, symbols)

    def launch(
        self,
        function: int,
        launch: base.Launch,
        arguments: Sequence[Memory],
        workspace: Memory,
        threads: int = 1,
    ) -> None:
        """Call the function on some threads; it has ended on return."""
        _check_launch(launch)
        pointers = (ctypes.c_void_p * len(arguments))(*(each.address for each in arguments))
        _FUNCTION(function)(pointers, workspace.address, threads)

    def time(self, work: Callable[[], object]) -> float:
        """Seconds by the clock of the process."""
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def time_calls(
        self,
        functions: Sequence[Function],
        table: base.Array,
        workspace: Memory,
        threads: int,
        count: int = 1,
        first: int = 0,
    ) -> float:
        """Seconds of a native loop, so that Python's time between calls does not count."""
        ((function, launch),) = functions
        _check_launch(launch)
        repeat, (rows, width) = call_loop().run, table.shape
        arguments = (function, table.ctypes.data, table.itemsize * width, rows, first)
        bits = float_bits(base.detect_target().arch)
        start = time.perf_counter()
        repeat(*arguments, workspace.address, threads, count, bits)
        return time.perf_counter() - start


HOST: Device = HostDevice()
DEVICE = HOST


def host_bytes(memory: Memory) -> NDArray[np.uint8]:
    """The bytes of a piece of the host's memory, which the caller keeps."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * memory.size_bytes).from_address(memory.address))


def _part(memory: Memory, count: int) -> NDArray[np.uint8]:
    """The first bytes of a piece of memory, for a copy."""
    memory.check_room(count)
    return host_bytes(memory)[:count]


def _check_launch(launch: base.Launch) -> None:
    if not isinstance(launch, base.Threads):
        raise base.InternalError(
            stage="runtime", where=f"launch {launch}", reason="a processor has no grids"
        )


def run_host_step(
    open_step: HostStep[TypedRef],
    function: base.HostFunction,
    values: Mapping[str, int],
    view: Callable[[TypedRef], base.Array],
    decide: Callable[[str, int], None] | None = None,
) -> None:
    """Run the NumPy function of a step.

    values   of the named sizes      view   gives the tensor at a reference, as a fresh view
    decide   sets the size that the step decides, if it decides one
    Raises:  InternalError if the function fails, or returns other tensors than are declared; the
             errors of `decide`.
    """
    size = open_step.counted
    others = {name: value for name, value in values.items() if name != size}
    step = numbered(open_step, others) if others else open_step
    arguments = tuple([view(typed) for typed in step.inputs])
    for array in arguments:
        array.flags.writeable = False
    try:
        results = function(arguments, dict(step.attributes))
    except base.UserError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise _fault(step, f"operator {step.operator} failed on the host: {error}") from error
    if len(results) != len(step.outputs):
        raise _fault(step, f"{len(results)} results, but {len(step.outputs)} are declared")
    if size and decide is not None:
        number = _number_told(step, results)
        decide(size, number)
        step = numbered(step, {size: number})
    for typed, result in zip(step.outputs, results, strict=True):
        actual = np.asarray(result)
        if actual.shape != typed.type.shape or actual.dtype != typed.type.dtype.numpy:
            given = f"{actual.dtype}{actual.shape}"
            raise _fault(step, f"the host gave {given}, but {typed.type} is declared")
        np.copyto(view(typed), actual)


def _number_told(step: HostStep[TypedRef], results: Sequence[base.Array]) -> int:
    """The value of the size that a step decides: an extent of one of its results."""
    for typed, result in zip(step.outputs, results, strict=True):
        for extent, number in zip(typed.type.shape, np.shape(result), strict=False):
            if isinstance(extent, base.Formula) and extent.text == step.counted:
                return int(number)
    raise _fault(step, f"none of its results has the size {step.counted}")


def _fault(step: HostStep[TypedRef], reason: str) -> base.InternalError:
    return base.InternalError(stage="run", where=f"step {step.label}", reason=reason)
