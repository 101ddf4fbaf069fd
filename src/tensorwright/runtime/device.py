"""The protocol of devices: memory, code, launches and a clock.  `host.py` is the first one.

    device = device_of(kernel.target)
    memory = device.allocate(array.nbytes)
    device.copy_in(array, memory)
    code = device.load(kernel.object_code, (kernel.symbol,))
    device.launch(code.address(kernel.symbol), Threads(), (memory, ...), workspace, threads)
    device.wait()
    device.copy_out(memory, array)

The launches of a device run in order; they are done when `wait` returns.  One thread at a time may
use a device.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from tensorwright import base
from tensorwright.runtime.native.jit import LoadedCode

DEVICES: base.ByKind[str] = {
    base.TargetKind.CPU: ("host",),
    base.TargetKind.GPU: ("cards.opencl", "cards.cuda"),
}
"""The modules beside this one whose `DEVICE` runs the code of a kind of machine."""

DETECTED = {
    "opencl": "tensorwright.runtime.cards.opencl",
    "cuda": "tensorwright.runtime.cards.cuda_cards",
}
"""Names of targets that stand for a device of this machine, and the modules with their
`detect_target`."""

Function: TypeAlias = tuple[int, base.Launch]
"""The address of a function in loaded code, and how it is launched."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A piece of a device's memory, aligned to 64 bytes; it is freed with its `owner`."""

    address: int
    size_bytes: int
    owner: object

    def part(self, offset_bytes: int, size_bytes: int) -> Memory:
        """A part of it."""
        return Memory(self.address + offset_bytes, size_bytes, self.owner)

    def check_room(self, size_bytes: int) -> None:
        """Check that a copy of some bytes fits.  Raises: InternalError if it does not."""
        if size_bytes > self.size_bytes:
            where = f"memory of {self.size_bytes} bytes"
            reason = f"a copy of {size_bytes} bytes exceeds it"
            raise base.InternalError(stage="runtime", where=where, reason=reason)

    def overlaps(self, other: Memory) -> bool:
        """Whether both have a byte in common."""
        first, second = sorted((self, other), key=lambda each: each.address)
        return second.size_bytes > 0 and second.address < first.address + first.size_bytes


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a device cannot run a target's code, and what the user can do about it.

    is_other_driver   the code is for another driver, so another device may run it
    """

    reason: str
    remedy: str = ""
    is_other_driver: bool = False


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The facts that a driver gives about a device.

    shared_bytes   the most shared memory that a block may ask for
    is_simulator   it looks for faults, and is about a thousand times as slow as a processor
    """

    name: str
    platform: str
    version: str
    compute_units: int
    memory_bytes: int
    shared_bytes: int
    threads_per_block: int
    is_simulator: bool = False


@dataclass(frozen=True, slots=True)
class DlpackDevice:
    """The device in the terms of DLPack, and the stream of all its work."""

    kind: int
    number: int
    stream: int


class Device(Protocol):
    """A device runs kernels.  Sizes are in bytes; errors of the driver are MachineErrors."""

    def __hash__(self) -> int:
        return object.__hash__(self)

    def missing(self, target: base.Target) -> Missing | None:
        """What this machine lacks to run a target's code on this device; None if nothing."""
        ...

    def free_bytes(self) -> int:
        """The approximate memory that can be allocated now."""
        ...

    def allocate(self, size_bytes: int) -> Memory:
        """A fresh piece of memory with undefined content."""
        ...

    def copy_in(self, array: base.Array, memory: Memory) -> None:
        """Write a dense array of the host to the beginning of a piece of memory."""
        ...

    def copy_out(self, memory: Memory, array: base.Array) -> None:
        """Fill a dense array of the host from the beginning of a piece of memory."""
        ...

    def copy(self, source: Memory, destination: Memory) -> None:
        """Copy all bytes of a piece of memory to the beginning of another, as a launch."""
        ...

    def memory_of(self, array: base.Array) -> Memory:
        """Memory with the content of a dense array that does not change; it may be the array's."""
        memory = self.allocate(array.nbytes)
        self.copy_in(np.ascontiguousarray(array), memory)
        return memory

    def dlpack(self) -> DlpackDevice | None:
        """The device in DLPack's terms; None if it shares no arrays, or they are the host's."""
        return None

    def load(self, code: bytes, symbols: Sequence[str]) -> LoadedCode:
        """Load compiled code, which then has the addresses of `symbols`."""
        ...

    def launch(
        self,
        function: int,
        launch: base.Launch,
        arguments: Sequence[Memory],
        workspace: Memory,
        threads: int = 1,
    ) -> None:
        """Call a function of loaded code; the caller keeps code and memory until `wait` returns."""
        ...

    def record(self, work: Callable[[], object]) -> Callable[[], object] | None:
        """A function that makes all launches of some work at once; nothing is launched now.

        None if the device cannot record launches.  The caller keeps the code and the memory that
        the work uses.
        """
        return None

    def record_timed(
        self, works: Sequence[Callable[[], object]]
    ) -> Callable[[], tuple[float, ...]] | None:
        """As `record`, for several works in a row.

        Each call of the function launches all of them, waits, and returns the seconds of each on
        the device, without the host's time.
        """
        return None

    def wait(self) -> None:
        """Return when all launches are done."""
        return

    def time(self, work: Callable[[], object]) -> float:
        """Seconds of all launches of some work, by the device's clock."""
        ...

    def time_calls(
        self,
        functions: Sequence[Function],
        table: base.Array,
        workspace: Memory,
        threads: int,
        count: int = 1,
        first: int = 0,
    ) -> float:
        """Seconds of `count` calls in a row together; each call launches all functions.

        table   (rows, arguments) addresses; calls use the rows in turn, from row `first` on
        """
        ...


def device_of(target: base.Target) -> Device:
    """The device of this machine that runs a target's code.

    Raises:  MachineError if there is none.
    """
    missing: list[Missing] = []
    for name in base.of_kind(DEVICES, target, "devices"):
        device: Device = importlib.import_module(f"tensorwright.runtime.{name}").DEVICE
        lack = device.missing(target)
        if lack is None:
            return device
        missing.append(lack)
    missing = [lack for lack in missing if not lack.is_other_driver] or missing
    raise base.MachineError(
        stage="runtime",
        where=f"target {target}",
        reason="this machine has no device for its code"
        + "".join(f": {lack.reason}" for lack in missing),
        remedy="; ".join(lack.remedy for lack in missing if lack.remedy),
    )


def named_target(text: str) -> base.Target:
    """A target from its name; "opencl" and "cuda" are devices of this machine.

    Raises:  UsageError for an unknown name; MachineError if there is no such device.
    """
    if text not in DETECTED:
        return base.parse_target(text)
    detected: base.Target = importlib.import_module(DETECTED[text]).detect_target()
    return detected


def device_facts(driver: str) -> tuple[DeviceFacts, ...]:
    """The devices that a driver of `DETECTED` shows, the preferred one first; () without it."""
    listed = getattr(importlib.import_module(DETECTED[driver]), f"{driver}_devices")
    facts: tuple[DeviceFacts, ...] = listed()
    return facts


def missing_device(target: base.Target) -> str:
    """Why no device of this machine runs a target's code, as a message; "" if one does."""
    if target.kind is base.TargetKind.CPU:
        return base.missing_here(target)
    try:
        device_of(target)
    except base.MachineError as error:
        return error.reason
    return ""


def check_device(target: base.Target, stage: str, where: str = "", remedy: str = "") -> None:
    """As `check_runs_here`; a target that is not a processor needs a device that runs its code.

    Raises:  MachineError with the missing part of this machine.
    """
    if target.kind is base.TargetKind.CPU:
        base.check_runs_here(target, stage, where, remedy)
    else:
        device_of(target)
