"""NVIDIA's cards by the driver of CUDA: the first card that it shows, one stream in order.

The variable CUDA_VISIBLE_DEVICES, which the driver reads, chooses among several cards.  A kernel
takes the address of each argument, then its named sizes, then its scratch memory (`codegen/cuda`).
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from ctypes import byref, c_float, c_size_t, c_uint64, c_void_p
from itertools import pairwise

from tensorwright import base
from tensorwright.runtime.cards.cuda_cards import Card, card_here, find_card
from tensorwright.runtime.cards.launches import CardDevice, LoadedFunctions
from tensorwright.runtime.device import Device, DlpackDevice, Memory, Missing
from tensorwright.runtime.native import cuda_driver
from tensorwright.runtime.native.jit import LoadedCode

_STATIC_SHARED_BYTES = 48 * 1024  # a function that needs more must ask for it
_DLPACK_CUDA = 2  # kDLCUDA
_IN_PLAIN_ORDER, _WITH_TIMES = 0, 0  # flags of streams and of events


class _Allocation:
    """The owner of the driver's memory, which is released with this object."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, address: int) -> None:
        self.address = address


class _Graph:
    """A graph of the driver: launches that it makes together; owns them."""

    __slots__ = ("__weakref__", "launches")

    def __init__(self, launches: int) -> None:
        self.launches = launches


class _Event:
    """An event of the driver: a moment in the stream, whose time it keeps; owns the event."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, opened: _Opened) -> None:
        self.address = opened.driver.number("cuEventCreate", c_void_p, _WITH_TIMES)
        weakref.finalize(self, opened.release, "cuEventDestroy_v2", self.address)


class _Clock:
    """Two events around the launches of some work; mutable."""

    def __init__(self, opened: _Opened) -> None:
        self.start, self.end = _Event(opened), _Event(opened)
        self.is_started = False


class _Opened:
    """The card, with its context and its stream; mutable."""

    def __init__(self, driver: cuda_driver.Driver, card: Card) -> None:
        self.driver = driver
        self.card = card
        self.context = driver.number("cuDevicePrimaryCtxRetain", c_void_p, self.card.number)
        self.use()
        self.stream = driver.number("cuStreamCreate", c_void_p, _IN_PLAIN_ORDER)
        self.clock: _Clock | None = None
        self.idle_clocks: list[_Clock] = []

    def use(self) -> None:
        """Let this thread use the card."""
        self.driver.call("cuCtxSetCurrent", self.context)

    def wait(self) -> None:
        """Return when all work in the stream is done."""
        self.driver.call("cuStreamSynchronize", self.stream)

    def note_launch(self) -> None:
        """Record the start of a timed work before its first launch."""
        clock = self.clock
        if clock is not None and not clock.is_started:
            clock.is_started = True
            self.driver.call("cuEventRecord", clock.start.address, self.stream)

    def seconds_between(self, start: _Event, end: _Event) -> float:
        """The time from one event to another one; both must have happened."""
        taken_ms = c_float()
        self.driver.call("cuEventElapsedTime", byref(taken_ms), start.address, end.address)
        return taken_ms.value * 1e-3

    def captured(self, work: Callable[[], object]) -> _Graph:
        """The launches of some work as a graph; none of them runs now.

        Raises:  DriverError if the driver cannot make a graph of them.
        """
        driver, clock, made = self.driver, self.clock, c_void_p()
        self.clock = None  # a graph has no events
        driver.call("cuStreamBeginCapture_v2", self.stream, cuda_driver.CAPTURE_RELAXED)
        try:
            work()
        finally:
            self.clock = clock
            driver.call("cuStreamEndCapture", self.stream, byref(made))
        try:
            launches = driver.number("cuGraphInstantiateWithFlags", c_void_p, made, 0)
        finally:
            driver.call("cuGraphDestroy", made)
        graph = _Graph(launches)
        weakref.finalize(graph, self.release, "cuGraphExecDestroy", launches)
        driver.call("cuGraphUpload", launches, self.stream)
        return graph

    def release(self, function: str, handle: int) -> None:
        """Release something of the driver; errors of a broken card are ignored."""
        try:
            self.use()
            self.driver.call(function, handle)
        except cuda_driver.DriverError:
            return

    @contextmanager
    def naming_faults(self, where: str) -> Iterator[None]:
        """Turn errors of the driver inside the block into a MachineError."""
        try:
            yield
        except cuda_driver.DriverError as error:
            raise base.MachineError(
                stage="runtime",
                where=where,
                reason=f"the driver of {self.card.facts.name} reports {error.name}",
                remedy="start the program again, because a card refuses all calls of a process "
                "after a fault; if it fails again, report it with the model or program",
            ) from error


class CudaDevice(CardDevice):
    """The first card that the driver shows."""

    def missing(self, target: base.Target) -> Missing | None:
        """The driver, a card, or a card of the target's architecture."""
        if not isinstance(target, base.GpuTarget) or target.api is not base.GpuApi.CUDA:
            return Missing(
                f"CUDA does not run code for {target}", "name the target cuda", is_other_driver=True
            )
        card, lack = find_card()
        if card is None:
            return lack
        if not card.runs(target.arch):
            return Missing(
                f"{card.facts.name} is {card.arch}, which does not run machine code for "
                f"{target.arch}",
                f"compile for the target cuda, which is {card.arch} here",
            )
        return None

    def free_bytes(self) -> int:
        """The free memory of the card, shared by all processes."""
        opened = self._opened
        free_bytes, total_bytes = c_size_t(), c_size_t()
        with opened.naming_faults("the memory of the card"):
            opened.driver.call("cuMemGetInfo_v2", byref(free_bytes), byref(total_bytes))
        return free_bytes.value

    def allocate(self, size_bytes: int) -> Memory:
        """A piece of memory.  Raises: MemoryError if there is not enough."""
        opened = self._opened
        with opened.naming_faults(f"memory of {size_bytes} bytes"):
            try:
                room_bytes = max(1, size_bytes)
                address = opened.driver.number("cuMemAlloc_v2", c_uint64, room_bytes)
            except cuda_driver.DriverError as error:
                if error.result != cuda_driver.OUT_OF_MEMORY:
                    raise
                raise MemoryError(
                    f"{size_bytes} bytes are needed in one piece; {self.free_bytes()} bytes of "
                    f"{opened.card.facts.name} are free"
                ) from error
        owner = _Allocation(address)
        weakref.finalize(owner, opened.release, "cuMemFree_v2", address)
        return Memory(address, size_bytes, owner)

    def naming_faults(self, where: str) -> AbstractContextManager[None]:
        """As `CardDevice.naming_faults`."""
        return self._opened.naming_faults(where)

    def write(self, source: base.Array, address: int) -> None:
        """As `CardDevice.write`."""
        opened = self._opened
        arguments = (address, source.ctypes.data, source.nbytes, opened.stream)
        opened.driver.call("cuMemcpyHtoDAsync_v2", *arguments)
        opened.wait()

    def read(self, address: int, destination: base.Array) -> None:
        """As `CardDevice.read`."""
        opened = self._opened
        arguments = (destination.ctypes.data, address, destination.nbytes, opened.stream)
        opened.driver.call("cuMemcpyDtoHAsync_v2", *arguments)
        opened.wait()

    def move(self, source: int, destination: int, size_bytes: int) -> None:
        """As `CardDevice.move`."""
        opened = self._opened
        opened.note_launch()
        arguments = (destination, source, size_bytes, opened.stream)
        opened.driver.call("cuMemcpyDtoDAsync_v2", *arguments)

    def finish(self) -> None:
        """As `CardDevice.finish`."""
        self._opened.wait()

    def dlpack(self) -> DlpackDevice | None:
        """The card's number, and the stream."""
        opened = self._opened
        return DlpackDevice(_DLPACK_CUDA, opened.card.number, opened.stream)

    def load(self, code: bytes, symbols: Sequence[str]) -> LoadedCode:
        """Load a cubin.

        Raises:  MachineError if the driver refuses it: the driver is too old, or the card is of
                 another architecture.
        """
        opened = self._opened
        with opened.naming_faults(f"kernel {symbols[0]}"):
            try:
                module = opened.driver.number("cuModuleLoadData", c_void_p, code)
            except cuda_driver.DriverError as error:
                if error.result not in cuda_driver.REFUSED_IMAGES:
                    raise
                version = ".".join(map(str, opened.driver.version))
                raise base.MachineError(
                    stage="runtime",
                    where=f"kernel {symbols[0]}",
                    reason=f"the driver of {opened.card.facts.name} ({opened.card.arch}), which is "
                    f"of CUDA {version}, does not take its machine code: {error.name}",
                    remedy="update the driver, or compile again with a version of the package "
                    f"nvidia-cuda-nvrtc-cu12 that is not newer than CUDA {version}",
                ) from error
            find = functools.partial(opened.driver.number, "cuModuleGetFunction", c_void_p, module)
            result = LoadedFunctions({symbol: find(symbol.encode()) for symbol in symbols})
        weakref.finalize(result, opened.release, "cuModuleUnload", module)
        return result

    def arguments_of(self, addresses: Sequence[int], workspace: int) -> _Values:
        """The addresses, and that of the scratch memory."""
        return _Values((*addresses, workspace))

    def put(self, function: int, grid: base.Grid, arguments: _Values) -> None:
        """As `CardDevice.put`."""
        opened = self._opened
        with opened.naming_faults(f"a kernel, {grid}"):
            if grid.shared_bytes > _STATIC_SHARED_BYTES:
                asked = (function, cuda_driver.DYNAMIC_SHARED_BYTES, grid.shared_bytes)
                opened.driver.call("cuFuncSetAttribute", *asked)
            opened.note_launch()
            opened.driver.call(
                "cuLaunchKernel",
                function,
                *grid.grid,
                *grid.block,
                grid.shared_bytes,
                opened.stream,
                arguments.pointers,
                None,
            )

    def record(self, work: Callable[[], object]) -> Callable[[], object] | None:
        """Some work as a graph of the driver; None if it has no graphs, or refuses this one."""
        opened = self._opened
        if not opened.driver.has_graphs:
            return None
        try:
            graph = opened.captured(work)
        except (
            cuda_driver.DriverError,
            base.MachineError,
        ):  # the launches are then made singly, and name a fault
            return None

        def launch() -> None:
            current = self._opened
            with current.naming_faults("the launches of a graph"):
                current.note_launch()
                current.driver.call("cuGraphLaunch", graph.launches, current.stream)

        return launch

    def record_timed(
        self, works: Sequence[Callable[[], object]]
    ) -> Callable[[], tuple[float, ...]] | None:
        """A graph with an event before each work, and one after the last work."""
        opened = self._opened
        marks = [_Event(opened) for _ in range(len(works) + 1)]

        def mark(event: _Event) -> None:
            opened.driver.call(
                "cuEventRecordWithFlags", event.address, opened.stream, cuda_driver.IN_GRAPH
            )

        def marked() -> None:
            for event, work in zip(marks, works, strict=False):
                mark(event)
                work()
            mark(marks[-1])

        launch = self.record(marked)
        if launch is None:
            return None

        def run() -> tuple[float, ...]:
            launch()
            self.wait()
            return tuple(opened.seconds_between(*pair) for pair in pairwise(marks))

        return run

    def time(self, work: Callable[[], object]) -> float:
        """Seconds from before the first launch to the end of the last one, by events.

        0 if the work launches nothing.
        """
        opened = self._opened
        clock = opened.idle_clocks.pop() if opened.idle_clocks else _Clock(opened)
        outer, opened.clock = opened.clock, clock
        try:
            work()
            if not clock.is_started:
                return 0.0
            with opened.naming_faults("the launches that are timed"):
                opened.driver.call("cuEventRecord", clock.end.address, opened.stream)
                opened.wait()
                return opened.seconds_between(clock.start, clock.end)
        finally:
            opened.clock = outer
            clock.is_started = False
            opened.idle_clocks.append(clock)

    @property
    def _opened(self) -> _Opened:
        opened = _open()
        with opened.naming_faults("the card"):
            opened.use()
        return opened


class _Values:
    """The arguments of a launch, of 8 bytes each; the driver gets the address of each."""

    __slots__ = ("_numbers", "pointers")

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = (c_uint64 * len(numbers))(*numbers)
        start, step = ctypes.addressof(self._numbers), ctypes.sizeof(c_uint64)
        places = range(start, start + step * len(numbers), step)
        self.pointers = (c_void_p * len(numbers))(*places)


@functools.cache
def _open() -> _Opened:
    driver, card = card_here()
    try:
        return _Opened(driver, card)
    except cuda_driver.DriverError as error:
        raise base.MachineError(
            stage="runtime",
            where="CUDA",
            reason=f"the card does not start: {error}",
            remedy="see in nvidia-smi whether other programs use the card, or compile for the "
            "target native",
        ) from error


DEVICE: Device = CudaDevice()
