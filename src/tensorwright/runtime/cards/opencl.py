"""Graphics processors and other devices that OpenCL drives: one device, one queue in order.

The host does not see addresses of OpenCL. So each buffer gets a range of made-up addresses, which
no other buffer has, and an address leads back to its buffer. A kernel takes each argument as a
buffer and the offset of the argument in it (`codegen/opencl`).
"""

from __future__ import annotations

import functools
import itertools
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from tensorwright import base
from tensorwright.runtime.cards.launches import CardDevice, LoadedFunctions
from tensorwright.runtime.cards.opencl_devices import device_here, find_device, opencl_driver
from tensorwright.runtime.device import Device, Memory, Missing
from tensorwright.runtime.native.jit import LoadedCode

_FIRST_ADDRESS = 1 << 40  # above all named sizes, so a size is never taken for an address
_STEP = 1 << 20  # buffers begin at multiples of it, with a gap of at least one between them
_WORKSPACE_ARGUMENTS = 2


class _Buffer:
    """The owner of a driver's buffer, which is released with this object."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, handle: Any) -> None:
        self.handle = handle


class _Opened:
    """A device with its context, its queue, its buffers and its kernels; mutable."""

    def __init__(self, driver: Any, device: Any) -> None:
        self.driver = driver
        self.device = device
        self.context = driver.Context([device])
        profiling = driver.command_queue_properties.PROFILING_ENABLE
        self.queue = driver.CommandQueue(self.context, device, properties=profiling)
        self.kernels: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self.events: list[Any] | None = None
        self.allocated_bytes = 0
        self._starts: list[int] = []
        self._buffers: list[weakref.ref[_Buffer]] = []
        self._next = _FIRST_ADDRESS

    def add(self, buffer: _Buffer, size_bytes: int) -> int:
        """The address that stands for the beginning of a buffer."""
        address = self._next
        self._next += -(-(size_bytes + 1) // _STEP) * _STEP
        self._starts.append(address)
        self._buffers.append(weakref.ref(buffer))
        self.allocated_bytes += size_bytes
        weakref.finalize(buffer, self._remove, address, size_bytes)
        return address

    def code_of(self, kernels: Mapping[str, Any]) -> LoadedFunctions:
        """Kernels by name as code, each with a unique number."""
        code = LoadedFunctions({symbol: next(self._numbers) for symbol in kernels})
        self.kernels |= {code.addresses[symbol]: kernel for symbol, kernel in kernels.items()}
        weakref.finalize(code, self._forget, tuple(code.addresses.values()))
        return code

    def _forget(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            del self.kernels[number]

    def _remove(self, address: int, size_bytes: int) -> None:
        number = bisect_right(self._starts, address) - 1
        del self._starts[number], self._buffers[number]
        self.allocated_bytes -= size_bytes

    @contextmanager
    def naming_faults(self, where: str) -> Iterator[None]:
        """Turn errors of the driver inside the block into a MachineError."""
        try:
            yield
        except self.driver.Error as error:
            raise base.MachineError(
                stage="runtime",
                where=where,
                reason=f"the driver of {str(self.device.name).strip()} refuses it: {error}",
                remedy="compile again on this machine: its device may have other limits",
            ) from error

    def buffer_at(self, address: int) -> tuple[Any, int]:
        """The driver's buffer at an address, and the offset in it."""
        number = bisect_right(self._starts, address) - 1
        buffer = self._buffers[number]() if number >= 0 else None
        if buffer is None:
            raise base.InternalError(
                stage="runtime", where=f"address {address}", reason="no buffer of the device has it"
            )
        return buffer.handle, address - self._starts[number]


class OpenClDevice(CardDevice):
    """The first OpenCL device, or the one that the knob `opencl_device` names."""

    def missing(self, target: base.Target) -> Missing | None:
        """The package, a driver, or a device of that name."""
        if not isinstance(target, base.GpuTarget) or target.api is not base.GpuApi.OPENCL:
            reason = f"OpenCL does not run code for {target}"
            return Missing(reason, "name the target opencl", is_other_driver=True)
        return find_device(base.knobs.OPENCL_DEVICE.get())[1]

    def free_bytes(self) -> int:
        """The memory of the device less the memory that this process has allocated."""
        opened = self._opened
        return int(opened.device.global_mem_size) - opened.allocated_bytes

    def allocate(self, size_bytes: int) -> Memory:
        """A buffer.  Raises: MemoryError if there is not enough."""
        opened = self._opened
        room_bytes = max(1, size_bytes)
        most_bytes = int(opened.device.max_mem_alloc_size)
        if room_bytes > min(most_bytes, self.free_bytes()):
            raise MemoryError(
                f"a buffer of {size_bytes} bytes is needed; {self.free_bytes()} bytes are free, "
                f"and one buffer has at most {most_bytes}"
            )
        flags = opened.driver.mem_flags.READ_WRITE
        try:
            buffer = _Buffer(opened.driver.Buffer(opened.context, flags, room_bytes))
        except opened.driver.MemoryError as error:
            raise MemoryError(f"the driver cannot allocate {size_bytes} bytes: {error}") from error
        return Memory(opened.add(buffer, room_bytes), size_bytes, buffer)

    def naming_faults(self, where: str) -> AbstractContextManager[None]:
        """As `CardDevice.naming_faults`."""
        return self._opened.naming_faults(where)

    def write(self, source: base.Array, address: int) -> None:
        """As `CardDevice.write`."""
        opened = self._opened
        buffer, offset = opened.buffer_at(address)
        opened.driver.enqueue_copy(opened.queue, buffer, source, dst_offset=offset)

    def read(self, address: int, destination: base.Array) -> None:
        """As `CardDevice.read`."""
        opened = self._opened
        buffer, offset = opened.buffer_at(address)
        opened.driver.enqueue_copy(opened.queue, destination, buffer, src_offset=offset)

    def move(self, source: int, destination: int, size_bytes: int) -> None:
        """As `CardDevice.move`."""
        opened = self._opened
        (read, first), (written, start) = map(opened.buffer_at, (source, destination))
        given = {"byte_count": size_bytes, "src_offset": first, "dst_offset": start}
        self._note(opened.driver.enqueue_copy(opened.queue, written, read, **given))

    def finish(self) -> None:
        """As `CardDevice.finish`."""
        self._opened.queue.finish()

    def load(self, code: bytes, symbols: Sequence[str]) -> LoadedCode:
        """Let the driver compile the text of kernels."""
        opened = self._opened
        program = opened.driver.Program(opened.context, code.decode())
        try:
            with warnings.catch_warnings():  # drivers warn about kernels that compile, too
                warnings.simplefilter("ignore", opened.driver.CompilerWarning)
                program.build()
        except opened.driver.RuntimeError as error:
            raise base.InternalError(
                stage="runtime",
                where=f"kernel {symbols[0]}",
                reason=f"the driver of {opened.device.name} refuses it\n{str(error)[:4000]}",
            ) from error
        kernels = {symbol: opened.driver.Kernel(program, symbol) for symbol in symbols}
        return opened.code_of(kernels)

    def arguments_of(self, addresses: Sequence[int], workspace: int) -> tuple[int, ...]:
        """The addresses and sizes, and the address of the scratch memory."""
        return (*addresses, workspace)

    def put(self, function: int, grid: base.Grid, arguments: tuple[int, ...]) -> None:
        """As `CardDevice.put`: a pointer is two arguments, a named size is one."""
        opened = self._opened
        *given, workspace = arguments
        kernel = opened.kernels[function]
        pointers = kernel.num_args - _WORKSPACE_ARGUMENTS - len(given)
        values: list[Any] = []
        for address in (*given[:pointers], None, workspace):
            if address is None:
                values += [np.int64(size) for size in given[pointers:]]
            else:
                buffer, first = opened.buffer_at(address)
                values += (buffer, np.int64(first))
        blocks = (int(each) for each in grid.grid if isinstance(each, int))
        sizes = tuple(n * m for n, m in zip(blocks, grid.block, strict=True))
        with opened.naming_faults(f"kernel {kernel.function_name}, {grid}"):
            kernel.set_args(*values)
            event = opened.driver.enqueue_nd_range_kernel(opened.queue, kernel, sizes, grid.block)
        self._note(event)

    def time(self, work: Callable[[], object]) -> float:
        """Seconds from the start of the first launch to the end of the last one, by events.

        0 if the work launches nothing.
        """
        opened = self._opened
        outer, opened.events = opened.events, []
        try:
            work()
            opened.queue.finish()
            events = opened.events
        finally:
            opened.events = outer
        if not events:
            return 0.0
        return float(events[-1].profile.end - events[0].profile.start) * 1e-9

    def _note(self, event: Any) -> None:
        events = self._opened.events
        if events is not None:
            events.append(event)

    @property
    def _opened(self) -> _Opened:
        return _open(base.knobs.OPENCL_DEVICE.get())


@functools.cache
def _open(wanted: str) -> _Opened:
    return _Opened(opencl_driver(), device_here(wanted))


DEVICE: Device = OpenClDevice()
