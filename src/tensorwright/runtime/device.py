"""The protocol of devices: memory, code and launches.  The host is one.

    memory = device.allocate(array.nbytes)
    device.copy_in(array, memory)
    code = device.load(kernel.object_code, (kernel.symbol,))
    device.launch(code.address(kernel.symbol), Threads(), (memory, ...), workspace, threads)
    device.wait()
    device.copy_out(memory, array)

Launches of one device run in their order; only `wait` says that they are done.  One thread at a
time may use a device.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tensorwright.base import Array, Grid, InternalError, Launch, Threads, physical_memory_bytes
from tensorwright.runtime.buffers import address_of, byte_view, empty_bytes
from tensorwright.runtime.native.loaded_code import LoadedCode, load_code

_FREE_PAGES = "SC_AVPHYS_PAGES"


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A piece of a device's memory, on a multiple of 64 bytes; it is freed with its `owner`."""

    address: int
    size_bytes: int
    owner: object


class Device(Protocol):
    """A device runs kernels.  Sizes are in bytes; errors of the driver are MachineErrors."""

    def is_here(self) -> bool:
        """Whether this machine has such a device, and its driver."""
        ...

    def free_bytes(self) -> int:
        """About how much memory can be allocated now."""
        ...

    def allocate(self, size_bytes: int) -> Memory:
        """A fresh piece of memory with undefined content."""
        ...

    def copy_in(self, array: Array, memory: Memory) -> None:
        """Write a dense array of the host to the beginning of a piece of memory."""
        ...

    def copy_out(self, memory: Memory, array: Array) -> None:
        """Fill a dense array of the host from the beginning of a piece of memory."""
        ...

    def load(self, code: bytes, symbols: Sequence[str]) -> LoadedCode:
        """Load compiled code; it can then give the addresses of `symbols`."""
        ...

    def launch(
        self,
        function: int,
        launch: Launch,
        arguments: Sequence[Memory],
        workspace: Memory,
        threads: int = 1,
    ) -> None:
        """Call a function of loaded code; the caller keeps code and memory until `wait`."""
        ...

    def wait(self) -> None:
        """Return when all launches are done."""
        ...

    def time(self, work: Callable[[], None]) -> float:
        """Seconds of all launches of some work, by the device's clock."""
        ...


class HostDevice:
    """This machine's processor: its memory is the host's, and a launch is a call."""

    def is_here(self) -> bool:
        """The host always exists."""
        return True

    def free_bytes(self) -> int:
        """The free memory; all memory on systems that do not tell."""
        if _FREE_PAGES in os.sysconf_names:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf(_FREE_PAGES)
        return physical_memory_bytes()

    def allocate(self, size_bytes: int) -> Memory:
        """As `runtime.empty`, with at least one byte, so that it has an address."""
        array = empty_bytes(max(1, size_bytes))
        return Memory(address_of(array), size_bytes, array)

    def copy_in(self, array: Array, memory: Memory) -> None:
        """One copy, from a dense array."""
        source = byte_view(array)
        np.copyto(_bytes_of(memory, source.size), source)

    def copy_out(self, memory: Memory, array: Array) -> None:
        """One copy, into a dense array."""
        destination = byte_view(array)
        np.copyto(destination, _bytes_of(memory, destination.size))

    def load(self, code: bytes, symbols: Sequence[str]) -> LoadedCode:
        """As `load_code`: object files and shared objects."""
        return load_code(code, symbols)

    def launch(
        self,
        function: int,
        launch: Launch,
        arguments: Sequence[Memory],
        workspace: Memory,
        threads: int = 1,
    ) -> None:
        """Call the function on some threads; it is done on return."""
        match launch:
            case Threads():
                pointers = (ctypes.c_void_p * len(arguments))(*(each.address for each in arguments))
                _FUNCTION(function)(pointers, workspace.address, threads)
            case Grid():
                raise InternalError(
                    stage="runtime", where=f"launch {launch}", reason="a processor has no grids"
                )

    def wait(self) -> None:
        """There is nothing to wait for: launches are done when they return."""

    def time(self, work: Callable[[], None]) -> float:
        """Seconds by the clock of the process."""
        start = time.perf_counter()
        work()
        return time.perf_counter() - start


_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)

HOST: Device = HostDevice()


def _bytes_of(memory: Memory, count: int) -> Array:
    """The first bytes of a piece of the host's memory, as an array."""
    if count > memory.size_bytes:
        raise InternalError(
            stage="runtime",
            where=f"memory of {memory.size_bytes} bytes",
            reason=f"a copy of {count} bytes exceeds it",
        )
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(memory.address))
