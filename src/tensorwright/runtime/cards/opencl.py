"""Graphics processors and other devices that OpenCL drives: one device, one queue in order.

The host does not see addresses of OpenCL. So each buffer gets a range of made-up addresses, which
no other buffer has, and an address leads back to its buffer. A kernel takes each argument as a
buffer and the offset of the argument in it (`codegen/opencl`).

The devices that OpenCL drives on this machine, and the one that runs kernels.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import re
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tensorwright import base
from tensorwright.runtime.cards.launches import CardDevice, LoadedFunctions
from tensorwright.runtime.device import Device, DeviceFacts, Memory, Missing
from tensorwright.runtime.native.jit import LoadedCode

_MOST_THREADS = 1024  # of a block; more do not help
_INSTALL = "install the package with its extra: pip install 'tensorwright[opencl]'"
_POCL = "pip install 'tensorwright[opencl,pocl]' has PoCL, which runs OpenCL on the processor"


def opencl_devices() -> tuple[DeviceFacts, ...]:
    """All OpenCL devices of this machine, the preferred one first; () without the package."""
    return tuple(
        DeviceFacts(
            name=str(each.name).strip(),
            platform=str(each.platform.name).strip(),
            version=str(each.version).strip(),
            compute_units=int(each.max_compute_units),
            memory_bytes=int(each.global_mem_size),
            shared_bytes=int(each.local_mem_size),
            threads_per_block=int(each.max_work_group_size),
            is_simulator=_is_simulator(each),
        )
        for each in _devices()
    )


def detect_target() -> base.GpuTarget:
    """The device that runs kernels, as a target.

    Numbers that drivers do not tell are those of the generic target.
    Raises:  MachineError if there is no such device.
    """
    device = device_here(base.knobs.OPENCL_DEVICE.get())
    generic = base.parse_target("opencl:generic")
    assert isinstance(generic, base.GpuTarget)
    shared_bytes = int(device.local_mem_size)
    is_processor = bool(device.type & opencl_driver().device_type.CPU)
    return replace(
        generic,
        name="opencl",
        arch=re.sub(r"[^A-Za-z0-9]+", "-", str(device.name)).strip("-"),
        multiprocessors=int(device.max_compute_units),
        threads_per_block=min(_MOST_THREADS, int(device.max_work_group_size)),
        static_shared_bytes=shared_bytes,
        opt_in_shared_bytes=shared_bytes,
        shared_bytes=shared_bytes,
        l2_bytes=int(device.global_mem_cache_size) or generic.l2_bytes,
        features=(base.ON_PROCESSOR,) if is_processor else (),
    )


@functools.cache
def opencl_driver() -> Any:
    """The package pyopencl; None if it is not installed.

    Its cache of compiled programs, in files of pickles, is turned off: drivers have caches.
    """
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    try:
        return importlib.import_module("pyopencl")
    except ImportError:
        return None


@functools.cache
def _devices() -> tuple[Any, ...]:
    """The devices of all drivers; graphics processors come first, simulators last."""
    driver = opencl_driver()
    if driver is None:
        return ()
    try:
        devices = [each for platform in driver.get_platforms() for each in platform.get_devices()]
    except driver.Error:  # there is no driver at all
        return ()
    card, processor = driver.device_type.GPU, driver.device_type.CPU
    order = (card, 0, processor)

    def rank(device: Any) -> int:
        return len(order) if _is_simulator(device) else order.index(device.type & sum(order))

    return tuple(sorted(devices, key=rank))


def _is_simulator(device: Any) -> bool:
    """Whether a device is a simulator: it claims to be a processor and a graphics processor."""
    both = opencl_driver().device_type.GPU | opencl_driver().device_type.CPU
    return bool(device.type & both == both)


@functools.cache
def find_device(wanted: str) -> tuple[Any, Missing | None]:
    """A device by a part of its name, or what is missing."""
    if opencl_driver() is None:
        return None, Missing("the package pyopencl is not installed", _INSTALL)
    devices = _devices()
    if not devices:
        return None, Missing(
            "no OpenCL driver is installed", f"install the driver of your card; {_POCL}"
        )
    for each in devices:
        if wanted.lower() in f"{each.platform.name} {each.name}".lower():
            return each, None
    listed = ", ".join(f"{str(each.name).strip()!r}" for each in devices)
    return None, Missing(
        f"no OpenCL device has {wanted!r} in its name",
        f"set the knob opencl_device to a part of one of {listed}",
    )


def device_here(wanted: str) -> Any:
    """A device by a part of its name.  Raises: MachineError if there is none."""
    device, lack = find_device(wanted)
    if lack is not None:
        raise base.MachineError(
            stage="runtime", where="OpenCL", reason=lack.reason, remedy=lack.remedy
        )
    return device


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
