"""What the drivers of cards share: copies, launches and clocks, whose faults have names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tensorwright.base import Array, Grid, InternalError, Launch, knobs
from tensorwright.runtime.buffers import byte_view
from tensorwright.runtime.device import Device, Function, Memory


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LoadedFunctions:
    """The functions of loaded code, by addresses or by numbers that stand for them."""

    addresses: dict[str, int]

    def address(self, symbol: str) -> int:
        """The address of a function."""
        return self.addresses[symbol]


class CardDevice(Device):
    """A device with a driver: one queue in order, whose launches have events."""

    @abstractmethod
    def naming_faults(self, where: str) -> AbstractContextManager[None]:
        """Turn errors of the driver inside the block into a MachineError."""

    @abstractmethod
    def write(self, source: Array, address: int) -> None:
        """Copy bytes of the host to the device, and wait for it."""

    @abstractmethod
    def read(self, address: int, destination: Array) -> None:
        """Copy bytes of the device to the host after all earlier launches, and wait for it."""

    @abstractmethod
    def move(self, source: int, destination: int, size_bytes: int) -> None:
        """Put a copy on the device into the queue."""

    @abstractmethod
    def finish(self) -> None:
        """Wait for the queue."""

    @abstractmethod
    def arguments_of(self, addresses: Sequence[int], workspace: int) -> Any:
        """The arguments of a launch, as `put` takes them."""

    @abstractmethod
    def put(self, function: int, grid: Grid, arguments: Any) -> None:
        """Put a kernel into the queue."""

    def copy_in(self, array: Array, memory: Memory) -> None:
        """One transfer, which is done on return."""
        memory.check_room(array.nbytes)
        if array.nbytes:
            with self.naming_faults("a copy to the device"):
                self.write(byte_view(array), memory.address)

    def copy_out(self, memory: Memory, array: Array) -> None:
        """One transfer after all earlier launches, which is done on return."""
        memory.check_room(array.nbytes)
        if array.nbytes:
            with self.naming_faults("a copy from the device"):
                self.read(memory.address, byte_view(array))

    def copy(self, source: Memory, destination: Memory) -> None:
        """A copy on the device, in the queue."""
        destination.check_room(source.size_bytes)
        if source.size_bytes:
            with self.naming_faults("a copy on the device"):
                self.move(source.address, destination.address, source.size_bytes)

    def launch(
        self,
        function: int,
        launch: Launch,
        arguments: Sequence[Memory],
        workspace: Memory,
        threads: int = 1,
    ) -> None:
        """Put a kernel into the queue."""
        addresses = [each.address for each in arguments]
        self._put(function, launch, self.arguments_of(addresses, workspace.address))

    def wait(self) -> None:
        """Wait for the queue."""
        with self.naming_faults("the launches of a call"):
            self.finish()

    def time_calls(
        self,
        functions: Sequence[Function],
        table: Array,
        workspace: Memory,
        threads: int,
        count: int = 1,
        first: int = 0,
    ) -> float:
        """Seconds by events, with all launches recorded if the device can, and the knob allows it.

        Networks run recorded, too.  A single launch would seem to take as long as this process
        needs to make the next one.
        """
        rows = [self.arguments_of(row, workspace.address) for row in table.tolist()]

        def call() -> None:
            for number in range(first, first + count):
                for function, launch in functions:
                    self._put(function, launch, rows[number % len(rows)])

        recorded: Callable[[], object] | None = None
        if knobs.DEVICE_GRAPHS.get():
            recorded = self.record(call)
        return self.time(recorded or call)

    def _put(self, function: int, launch: Launch, arguments: Any) -> None:
        """Put a kernel into the queue.  Raises: InternalError for a launch that is not a grid."""
        if not isinstance(launch, Grid):
            reason = "cards launch grids"
            raise InternalError(stage="runtime", where=f"launch {launch}", reason=reason)
        if 0 not in launch.grid:
            self.put(function, launch, arguments)
