"""A call on a device with its own memory: one arena there, launches and copies in order.

The arena of a call holds the intermediate tensors, the device's copies of inputs and outputs, and
the scratch memory of the kernels.  Constants are on the device from the start.  All of them keep
their addresses.  So a driver that can record launches makes all launches between two copies at
once, from the second call of the same sizes on.

A call with arrays in the memory of a device: its inputs, outputs and copies.

Steps on the host use arrays of the host, so the caller's arrays that they use are copied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from tensorwright import base
from tensorwright.runtime.buffers import ALIGNMENT, byte_view, empty_bytes, is_kernel_ready
from tensorwright.runtime.device import Device, Memory
from tensorwright.runtime.dlpack import DeviceArray, is_on
from tensorwright.runtime.host import HOST, run_host_step
from tensorwright.runtime.inputs import check_in_place
from tensorwright.runtime.native.jit import LoadedCode
from tensorwright.runtime.plan.call_sizes import CallSizes
from tensorwright.runtime.plan.plan import (
    ArenaRef,
    BufferRef,
    ConstantRef,
    CopyStep,
    DeviceRef,
    HostRef,
    HostStep,
    InputRef,
    KernelStep,
    OutputRef,
    Plan,
    Step,
    TypedRef,
)
from tensorwright.runtime.state_rows import PlacedRows

_ONE_CALL = threading.RLock()  # one thread at a time may use a device
AnyArray: TypeAlias = base.Array | DeviceArray
_RECORDED_RUN = 2  # of the same sizes, because recording costs more than one call's launches


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """A plan with its code on a device; read-only, shared by all calls."""

    plan: Plan
    code: tuple[LoadedCode, ...]

    @property
    def amounts(self) -> tuple[base.Formula, ...]:
        """(): `Plan.at` puts numbers into all steps of a call."""
        return ()


@dataclass(frozen=True, slots=True)
class LoadedOnDevice:
    """Shared by all calls: a program on a device, and its constants on the device and the host."""

    device: Device
    program: DeviceProgram
    constants: tuple[Memory, ...]
    host_constants: tuple[base.Array, ...]

    def with_plan(self, plan: Plan, threads: int) -> LoadedOnDevice:
        """The same code and constants with another plan."""
        return replace(self, program=replace(self.program, plan=plan))


def load_on_device(
    device: Device, plan: Plan, objects: Sequence[bytes], constants: Sequence[base.Array]
) -> LoadedOnDevice:
    """Load the code of a plan, and copy its constants to one piece of the device's memory.

    Raises:  MemoryError if the constants do not fit; the errors of the device.
    """
    pairs = zip(plan.kernels, objects, strict=True)
    code = tuple(device.load(data, kernel.symbols) for kernel, data in pairs)
    offsets, size_bytes = _placed([array.nbytes for array in constants])
    memory = device.allocate(size_bytes)
    parts = tuple(
        memory.part(offset, array.nbytes) for offset, array in zip(offsets, constants, strict=True)
    )
    for part, array in zip(parts, constants, strict=True):
        device.copy_in(array, part)
    return LoadedOnDevice(device, DeviceProgram(plan, code), parts, tuple(constants))


class DeviceFrame:
    """The memory of one call, and its steps."""

    __slots__ = (
        "__weakref__",
        "_arena",
        "_copies",
        "_host_arena",
        "_hosts",
        "_inputs",
        "_outputs",
        "_own",
        "_plan",
        "_recorded",
        "_runs",
        "_sizes",
        "_steps",
        "_timers",
        "_values",
        "_workspace",
        "device",
        "loaded",
        "run",
    )

    def __init__(self, loaded: LoadedOnDevice, hosts: Mapping[str, base.HostFunction]) -> None:
        """Allocate the memory of a call.  Raises: MemoryError if the device has no room."""
        self.loaded = loaded
        self.device = loaded.device
        self._hosts = hosts
        plan = loaded.program.plan.at_capacity
        parts = [plan.arena_bytes, plan.scratch_bytes(0)]
        parts += [spec.size_bytes for spec in (*plan.inputs, *plan.outputs)]
        offsets, size_bytes = _placed(parts)
        memory = self.device.allocate(size_bytes)
        pieces = [memory.part(*each) for each in zip(offsets, parts, strict=True)]
        self._arena, self._workspace = pieces[:2]
        names = [InputRef(number) for number in range(len(plan.inputs))]
        others = [OutputRef(number) for number in range(len(plan.outputs))]
        self._copies = dict(zip((*names, *others), pieces[2:], strict=True))
        self._host_arena = empty_bytes(plan.arena_bytes if _needs_host_arena(plan) else 0)
        self._own: dict[BufferRef, Memory] = {}
        self._inputs: tuple[AnyArray, ...] = ()
        self._outputs: tuple[AnyArray, ...] = ()
        self._sizes: CallSizes | None = None
        self._values: dict[str, int] = {}
        self._steps: list[Callable[[], object]] = []
        self._recorded: list[Callable[[], object]] = []
        self._timers: list[Callable[[], tuple[float, ...]]] = []
        self._runs = 0
        self._plan = plan
        self.run: Callable[[], object] = self._run

    def connect(
        self,
        inputs: Sequence[AnyArray],
        outputs: Sequence[AnyArray],
        sizes: CallSizes,
        states: PlacedRows | None = None,
        *,
        is_in_place: bool = False,
    ) -> None:
        """Point the call at arrays, which share no memory with each other.

        Arrays of `used_on_host` are in the host's memory; the others may be in the device's.

        states        those in place, which are not among the inputs and outputs
        is_in_place   for all runs: kernels use aligned arrays on the device in place
        """
        if states is not None:
            inputs, outputs = states.inputs(inputs), states.outputs(outputs)
        refs: list[BufferRef] = [InputRef(number) for number in range(len(inputs))]
        refs += [OutputRef(number) for number in range(len(outputs))]
        if is_in_place:
            self._own = {
                ref: each.memory
                for ref, each in zip(refs, (*inputs, *outputs), strict=True)
                if isinstance(each, DeviceArray) and each.memory.address % ALIGNMENT == 0
            }
        self._inputs = tuple(
            [
                each if isinstance(each, DeviceArray) else np.ascontiguousarray(each)
                for each in inputs
            ]
        )
        self._outputs = tuple(outputs)
        if sizes is not self._sizes:
            self._sizes, self._values = sizes, dict(sizes.values)
            self._plan = plan = self.loaded.program.plan.at(self._values)
            self._steps = self._recorded = [partial(self._do, plan, step) for step in plan.steps]
            self._timers = []
            self._runs = 0

    def disconnect(self) -> None:
        """Drop the references to the caller's arrays."""
        self._inputs = self._outputs = ()

    @property
    def values(self) -> Mapping[str, int]:
        """The named sizes of the call."""
        return self._values

    @property
    def inputs(self) -> tuple[AnyArray, ...]:
        """The arrays that are read."""
        return self._inputs

    def _run(self) -> None:
        with _ONE_CALL:
            self._runs += 1
            if self._runs == _RECORDED_RUN and base.knobs.DEVICE_GRAPHS.get():
                self._recorded = list(self._with_recorded())
            for action in self._recorded:
                action()
            self.device.wait()

    def _with_recorded(self) -> Iterator[Callable[[], object]]:
        """The steps; a row of steps on the device is one action if the device records it."""
        for is_on_device, actions in self._in_a_row():
            together = self.device.record(partial(_do_all, actions)) if is_on_device else None
            yield from actions if together is None else (together,)

    def _in_a_row(self) -> Iterator[tuple[bool, list[Callable[[], object]]]]:
        """The actions of the steps in groups, and whether a group only puts work into the queue."""
        pairs = zip(self._plan.steps, self._steps, strict=True)
        for is_on_device, group in groupby(pairs, lambda pair: _is_launch(pair[0])):
            yield is_on_device, [action for _, action in group]

    def run_timed(self) -> tuple[float, ...]:
        """Run all steps; returns the seconds of each, those of launches by the device's clock."""
        with _ONE_CALL:
            if not self._timers:
                self._timers = list(self._new_timers())
            return tuple(time_s for timer in self._timers for time_s in timer())

    def _new_timers(self) -> Iterator[Callable[[], tuple[float, ...]]]:
        """Functions that run the steps and return the seconds of each.

        A row of steps on the device is recorded if possible, because a single step would seem to
        take as long as a launch.
        """
        for is_on_device, actions in self._in_a_row():
            is_recorded = is_on_device and base.knobs.DEVICE_GRAPHS.get()
            timed = self.device.record_timed(actions) if is_recorded else None
            clock = self.device if is_on_device else HOST
            yield timed or partial(_times_of, clock, actions)

    def _do(self, plan: Plan, step: Step) -> None:
        match step:
            case KernelStep():
                self._launch(plan, step)
            case CopyStep(source, destination, size_bytes):
                self._copy(source, destination, base.number_in(size_bytes))
            case HostStep():
                run_host_step(step, self._hosts[step.operator], self._values, self._view)
            case _:
                raise base.InternalError(
                    stage="run", where=f"step {step.label}", reason="a device has no such steps"
                )

    def _launch(self, plan: Plan, step: KernelStep[BufferRef]) -> None:
        spec, code = plan.kernels[step.kernel], self.loaded.program.code[step.kernel]
        arguments = [
            self._on_device(ref, base.number_in(argument.size_bytes))
            for ref, argument in zip(step.arguments, spec.arguments, strict=True)
        ]
        arguments += [Memory(base.number_in(size), 0, None) for size in spec.sizes]
        for symbol, launch in zip(spec.symbols, spec.launches, strict=True):
            self.device.launch(code.address(symbol), launch, arguments, self._workspace)

    def _copy(self, source: BufferRef, destination: BufferRef, size_bytes: int) -> None:
        match source, destination:
            case DeviceRef(), DeviceRef():
                pair = (self._on_device(ref, size_bytes) for ref in (source, destination))
                self.device.copy(*pair)
            case DeviceRef(), _:
                part, given = self._on_device(source, size_bytes), self._given(destination)
                if given is None:
                    self.device.copy_out(part, self._on_host(destination, size_bytes))
                elif _whole(destination) not in self._own:
                    self.device.copy(part, given.part(destination.offset_bytes, size_bytes))
            case _, DeviceRef():
                part, given = self._on_device(destination, size_bytes), self._given(source)
                if given is None:
                    self.device.copy_in(self._on_host(source, size_bytes), part)
                elif _whole(source) not in self._own:
                    self.device.copy(given.part(source.offset_bytes, size_bytes), part)
            case _:
                copied = self._on_host(source, size_bytes)
                np.copyto(self._on_host(destination, size_bytes), copied)

    def _given(self, ref: BufferRef) -> Memory | None:
        """The memory of an input or output that the caller has on the device."""
        match ref:
            case InputRef(index):
                array = self._inputs[index]
            case OutputRef(index):
                array = self._outputs[index]
            case _:
                return None
        return array.memory if isinstance(array, DeviceArray) else None

    def _on_device(self, ref: BufferRef, size_bytes: int) -> Memory:
        """Bytes in the device's memory."""
        host = ref.copy_of if isinstance(ref, DeviceRef) else ref
        match host:
            case ConstantRef(index, offset):
                return self.loaded.constants[index].part(offset, size_bytes)
            case ArenaRef(offset, _):
                return self._arena.part(offset, size_bytes)
            case InputRef() | OutputRef():
                whole = _whole(host)
                memory = self._own[whole] if whole in self._own else self._copies[whole]
                return memory.part(host.offset_bytes, size_bytes)

    def _on_host(self, ref: BufferRef, size_bytes: int) -> base.Array:
        """Bytes in the host's memory."""
        assert not isinstance(ref, DeviceRef)
        return self._host_bytes(ref)[ref.offset_bytes : ref.offset_bytes + size_bytes]

    def _host_bytes(self, ref: HostRef) -> base.Array:
        match ref:
            case InputRef(index):
                return byte_view(_of_host(self._inputs[index]))
            case OutputRef(index):
                return byte_view(_of_host(self._outputs[index]))
            case ConstantRef(index):
                return byte_view(self.loaded.host_constants[index])
            case ArenaRef():
                return self._host_arena

    def _view(self, typed: TypedRef) -> base.Array:
        """The tensor at a reference on the host, as a fresh view."""
        part = self._on_host(typed.ref, typed.type.size_bytes)
        return part.view(typed.type.dtype.numpy).reshape(typed.type.extents)


def _is_launch(step: Step) -> bool:
    """Whether a step only puts work into the device's queue, on memory of the call."""
    if isinstance(step, CopyStep):
        return isinstance(step.source, DeviceRef) and isinstance(step.destination, DeviceRef)
    return isinstance(step, KernelStep)


def _do_all(actions: Sequence[Callable[[], object]]) -> None:
    for action in actions:
        action()


def _times_of(clock: Device, actions: Sequence[Callable[[], object]]) -> tuple[float, ...]:
    return tuple(clock.time(action) for action in actions)


def used_on_host(plan: Plan) -> frozenset[InputRef | OutputRef]:
    """The inputs that steps on the host read and the outputs that they write, as whole buffers."""
    used: set[BufferRef] = set()
    for step in plan.steps:
        match step:
            case HostStep(_, _, inputs, outputs):
                used |= {typed.ref for typed in (*inputs, *outputs)}
            case CopyStep(source, destination) if not (
                isinstance(source, DeviceRef) or isinstance(destination, DeviceRef)
            ):
                used |= {source, destination}
            case _:
                pass
    return frozenset(_whole(ref) for ref in used if isinstance(ref, InputRef | OutputRef))


def _whole(ref: BufferRef) -> InputRef | OutputRef:
    """The reference to the whole input or output."""
    assert isinstance(ref, InputRef | OutputRef)
    return replace(ref, offset_bytes=0)


def _of_host(array: AnyArray) -> base.Array:
    assert not isinstance(array, DeviceArray), "it is in `used_on_host`"
    return array


def _placed(sizes: Sequence[int]) -> tuple[list[int], int]:
    """The offsets of pieces one after the other, and the bytes of all together."""
    offsets: list[int] = []
    total = 0
    for size in sizes:
        offsets.append(total)
        total += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, total


def _needs_host_arena(plan: Plan) -> bool:
    """Whether a step uses intermediate tensors in the host's memory."""

    def uses(step: Step) -> bool:
        match step:
            case HostStep(_, _, inputs, outputs):
                return any(isinstance(typed.ref, ArenaRef) for typed in (*inputs, *outputs))
            case CopyStep(source, destination):
                return isinstance(source, ArenaRef) or isinstance(destination, ArenaRef)
            case _:
                return False

    return any(map(uses, plan.steps))


def has_arrays_on_device(loaded: object, given: Mapping[str, Any] | tuple[Any, ...]) -> bool:
    """Whether one of a call's arrays is in the memory of the device that runs the code."""
    if not isinstance(loaded, LoadedOnDevice) or not isinstance(given, Mapping | tuple):
        return False
    named = loaded.device.dlpack()
    arrays = given.values() if isinstance(given, Mapping) else given
    return any(is_on(named, array) for array in arrays)


def new_outputs(device: Device, sizes: CallSizes) -> tuple[DeviceArray, ...]:
    """An array on the device for each output.  Raises: MemoryError if the device has no room."""
    return tuple(
        DeviceArray.empty(device, maker.shape, base.DType.from_numpy(maker.dtype))
        for maker in sizes.makers
    )


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """The arrays of a call, each on the device or the host.

    inputs    the caller's
    outputs   the caller's, for the results
    """

    device: Device
    plan: Plan
    inputs: tuple[AnyArray, ...]
    outputs: tuple[AnyArray, ...]
    sizes: CallSizes

    def read_arrays(self) -> tuple[AnyArray, ...]:
        """The inputs; those that steps on the host read are copied to it."""
        on_host = used_on_host(self.plan)
        return tuple(
            np.asarray(array) if InputRef(number) in on_host else array
            for number, array in enumerate(self.inputs)
        )

    def written_arrays(self) -> tuple[AnyArray, ...]:
        """For each output, the caller's array if a step can write into it; else a new one."""
        on_host = used_on_host(self.plan)
        return tuple(
            array if _is_written_directly(array, OutputRef(number) in on_host) else maker.make()
            for number, (maker, array) in enumerate(
                zip(self.sizes.makers, self.outputs, strict=True)
            )
        )

    def copy_results(self, written: Sequence[AnyArray]) -> None:
        """Copy the results that steps wrote into other arrays to the caller's arrays."""
        for array, result in zip(self.outputs, written, strict=True):
            if isinstance(array, DeviceArray) and isinstance(result, np.ndarray):
                self.device.copy_in(result, array.memory)
            elif isinstance(array, np.ndarray) and array is not result:
                np.copyto(array, result)

    def check_in_place(self, outputs: Sequence[AnyArray]) -> None:
        """Check that each step can read and write its arrays directly.  Raises: InputError."""
        on_host, plan = used_on_host(self.plan), self.plan
        for n, (spec, array) in enumerate(zip(plan.inputs, self.inputs, strict=True)):
            check_in_place("input", spec, array, is_here=InputRef(n) in on_host)
        for n, (spec, array) in enumerate(zip(plan.outputs, outputs, strict=True)):
            check_in_place("output", spec, array, is_here=OutputRef(n) in on_host)


def _is_written_directly(array: AnyArray, is_from_host: bool) -> bool:
    if isinstance(array, DeviceArray):
        return not is_from_host
    return is_kernel_ready(array)
