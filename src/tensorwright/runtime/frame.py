"""The memory of one running call, and the addresses of all tensors.

A call takes a frame from a pool and returns it at the end. So several threads may call one
executable, because each call has a separate frame. Calls that run in native code from the first
step to the last share arenas (`arenas.py`). A frame with steps in Python has a separate arena,
because those steps run outside of the gate.

A call that is prepared once and made many times.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tensorwright import base
from tensorwright.runtime.arenas import Arenas
from tensorwright.runtime.buffers import address_of, byte_view, empty, ready_address
from tensorwright.runtime.device import Device, Memory
from tensorwright.runtime.device_frame import DeviceFrame
from tensorwright.runtime.host import HOST, host_bytes, run_host_step
from tensorwright.runtime.native.driver import (
    NativeFrame,
    Program,
    amount_base,
    driver,
    load_program,
)
from tensorwright.runtime.native.pool.pending_run import NEVER, Stop
from tensorwright.runtime.native.segments import (
    BranchSegment,
    HostSegment,
    LoopSegment,
    NativeSegment,
    Segment,
)
from tensorwright.runtime.plan.call_sizes import CallSizes
from tensorwright.runtime.plan.plan import (
    ArenaRef,
    ConstantRef,
    HostStep,
    InputRef,
    OutputRef,
    Plan,
    TensorSpec,
    TypedRef,
)
from tensorwright.runtime.state_rows import PlacedRows

_MOST_IDLE = 16
_SMALL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Loaded:
    """Shared by all calls: a program on a device, its constants there, and arenas."""

    device: Device
    program: Program
    constants: tuple[Memory, ...]
    arenas: Arenas

    @classmethod
    def of(
        cls, device: Device, program: Program, constants: tuple[Memory, ...], threads: int
    ) -> Loaded:
        """A loaded program without arenas, for calls on so many threads."""
        plan = program.plan
        arenas = Arenas(device, plan.arena_bytes, plan.scratch_bytes(threads))
        return cls(device, program, constants, arenas)

    def with_plan(self, plan: Plan, threads: int) -> Loaded:
        """The same code and constants with another plan, or with other arenas."""
        is_same = plan is self.program.plan
        program = self.program if is_same else load_program(plan, self.program.code)
        return Loaded.of(self.device, program, self.constants, threads)


class Frame:
    """The memory and the addresses of one call."""

    __slots__ = (
        "__weakref__",
        "_amount_base",
        "_arguments",
        "_base_numbers",
        "_bases",
        "_constants",
        "_hosts",
        "_inputs",
        "_native",
        "_outputs",
        "_own",
        "_program",
        "_sizes",
        "_staged",
        "_staged_addresses",
        "_stop",
        "_values",
        "device",
        "loaded",
        "run",
    )

    def __init__(
        self,
        loaded: Loaded,
        hosts: Mapping[str, base.HostFunction],
        threads: int,
        floats: int,
    ) -> None:
        """Reserve the memory of a call; `floats` are bits of the float state that it sets."""
        self.loaded = loaded
        self.device = loaded.device
        self._program = program = loaded.program
        self._constants = loaded.constants
        self._hosts = hosts
        plan, arenas = program.plan, loaded.arenas
        is_native = all(isinstance(segment, NativeSegment) for segment in program.segments)
        if is_native:
            arenas.add()
        # If the arena is one of `arenas`, the first call sets the addresses in it.
        sizes_bytes = () if is_native else (plan.arena_bytes, plan.scratch_bytes(threads))
        self._own = tuple(self.device.allocate(size) for size in sizes_bytes)
        arena, workspace = (memory.address for memory in self._own) if self._own else (0, 0)
        self._staged: dict[int, base.Array] = {}
        self._staged_addresses: dict[int, int] = {}
        self._inputs: tuple[base.Array, ...] = ()
        self._outputs: tuple[base.Array, ...] = ()
        first, self._amount_base = 1 + len(plan.inputs) + len(plan.outputs), amount_base(plan)
        self._bases = (ctypes.c_int64 * (self._amount_base + len(program.amounts)))()
        self._base_numbers = np.ctypeslib.as_array(self._bases)
        self._bases[first : self._amount_base] = [
            *(memory.address for memory in self._constants),
            arena,
        ]
        self._sizes: CallSizes | None = None
        self._values: dict[str, int] = {}
        self._arguments = self._base_numbers[program.refs[:, 0]] + program.refs[:, 1]
        self._native = NativeFrame(
            runs=address_of(program.runs),
            steps=address_of(program.steps),
            arguments=address_of(self._arguments),
            moving=address_of(program.moving),
            bases=ctypes.addressof(self._bases),
            workspace=workspace,
            threads=threads,
            begin=0,
            end=len(program.runs),
            moving_count=len(program.moving),
            stop=NEVER.address,
            arenas=arenas.address if is_native else 0,
            arena_count=arenas.count,
            in_arena=address_of(program.in_arena),
            in_arena_count=len(program.in_arena),
            floats=floats,
        )
        self._stop = NEVER
        self.run: Callable[[], object] = self._run_segments
        if is_native:
            # There is at most one segment, so this one foreign call is the whole run.
            self.run = partial(driver().run, ctypes.addressof(self._native))

    def connect(
        self,
        inputs: Sequence[base.Array],
        outputs: Sequence[base.Array],
        sizes: CallSizes,
        states: PlacedRows | None = None,
        *,
        is_in_place: bool = False,
    ) -> None:
        """Point the call at these arrays, which share no memory with each other.

        An input that kernels cannot read in place is copied into memory of the frame. A small input
        is copied, too, because copying it takes less time than determining its address.

        states        those in place, which are not among the inputs and outputs
        is_in_place   whether small inputs that kernels can read are not copied
        """
        most_copied = -1 if is_in_place else _SMALL_BYTES
        bases = self._bases
        if sizes is not self._sizes:
            bases[self._amount_base :] = list(sizes.amounts)
            self._sizes = sizes
            self._values = dict(sizes.values)
        places: Sequence[int] = range(len(inputs))
        results: Sequence[int] = range(len(outputs))
        if states is not None:
            places, results = states.places.others, states.places.results
            self._base_numbers[states.places.bases] = states.addresses
        used = []
        for position, array in zip(places, inputs, strict=True):
            address = ready_address(array) if array.nbytes > most_copied else None
            if address is None:
                array = self._stage(position, array)
            else:
                bases[1 + position] = address
            used.append(array)
        self._inputs = tuple(used)
        self._outputs = tuple(outputs)
        first = 1 + len(self._program.plan.inputs)
        for position, array in zip(results, outputs, strict=True):
            bases[first + position] = address_of(array)
        if states is not None and self._own:  # steps in Python see arrays, not addresses
            self._inputs, self._outputs = states.inputs(used), states.outputs(outputs)

    def _stage(self, position: int, array: base.Array) -> base.Array:
        """A copy of an input in memory that the frame keeps for it."""
        staged = self._staged.get(position)
        if staged is None or staged.shape != array.shape:
            staged = empty(array.shape, self._program.plan.inputs[position].dtype)
            self._staged[position] = staged
            self._staged_addresses[position] = address_of(staged)
        np.copyto(staged, array)
        self._bases[1 + position] = self._staged_addresses[position]
        return staged

    @property
    def values(self) -> Mapping[str, int]:
        """The named sizes of the call, with those that its steps have decided."""
        return self._values

    def stop_by(self, stop: Stop) -> None:
        """Skip the steps that have not begun when `stop` is set."""
        self._stop = stop
        self._native.stop = stop.address

    def disconnect(self) -> None:
        """Drop the references to the caller's arrays."""
        self._inputs = self._outputs = ()
        if self._stop is not NEVER:
            self.stop_by(NEVER)

    @property
    def inputs(self) -> tuple[base.Array, ...]:
        """The arrays that the kernels read."""
        return self._inputs

    def run_timed(self) -> tuple[float, ...]:
        """Run all steps, each kernel timed in native code, and return seconds per step."""
        count = len(self._program.plan.steps)
        ticks = np.zeros(1 + count, np.int64)
        times_s = np.zeros(count)
        self._native.clock = driver().clock_address
        self._native.ticks = address_of(ticks)

        def timed(segment: Segment) -> None:
            before_s = times_s.sum()
            time_s = HOST.time(partial(self._run_segment, segment, timed))
            match segment:
                case NativeSegment(begin, end, _, _):
                    times_s[begin:end] += ticks[1 + begin : 1 + end] * 1e-9
                    ticks[:] = 0
                case _:  # the time of the step alone, without the segments inside
                    times_s[segment.index] += max(0.0, time_s - (times_s.sum() - before_s))

        try:
            for segment in self._program.segments:
                timed(segment)
        finally:
            self._native.clock = self._native.ticks = 0
            self._native.begin, self._native.end = 0, len(self._program.runs)
        return tuple(times_s.tolist())

    def _run_segments(self) -> None:
        for segment in self._program.segments:
            self._run_segment(segment)

    def _run_segment(self, segment: Segment, run: Callable[[Segment], None] | None = None) -> None:
        """Run a segment; `run` runs the segments inside it."""
        run = run or self._run_segment
        if self._stop:
            return
        match segment:
            case NativeSegment(_, _, first_run, last_run):
                self._native.begin = first_run
                self._native.end = last_run
                driver().run(ctypes.addressof(self._native))
            case HostSegment(_, step):
                self._run_host(step)
            case BranchSegment(_, step, then, otherwise):
                for inner in then if self._view(step.condition).item() else otherwise:
                    run(inner)
            case LoopSegment():
                self._run_loop(segment, run)

    def _run_loop(self, segment: LoopSegment, run: Callable[[Segment], None]) -> None:
        step = segment.step
        size = step.counted if isinstance(step.counted, str) else ""
        room = self._room(size)
        if room is not None:
            self._values[size] = room
        count, number = self._view(step.count).item(), 0
        if isinstance(step.counted, int):
            count = min(count, step.counted)
        condition, iteration = self._view(step.condition), self._view(step.iteration)
        while number < count and condition.item() and not self._stop:
            if number == room:
                reason = f"a loop runs more than {room} times"
                raise _too_many(size, room, number + 1, reason, " of its rows")
            iteration[...] = number
            for inner in segment.body:
                run(inner)
            number += 1
        if room is not None:
            self._decide(size, number)

    def _room(self, size: str) -> int | None:
        """The greatest value of a size that a step decides; None if the plan has no such size."""
        return None if self._sizes is None else self._sizes.values.get(size)

    def _decide(self, size: str, number: int) -> None:
        """Set a size that a step has decided; later steps compute with it.

        Raises:  InputError if it is outside of its bounds.
        """
        room = self._room(size) or 0
        if number > room:
            raise _too_many(size, room, number, f"values make it more than {room}")
        least = next(each.least for each in self._program.plan.sizes if each.name == size)
        if number < least:
            raise base.InputError(
                stage="run",
                where=f"size {size}",
                reason=f"values make it {number}, but it must be at least {least}",
                remedy=base.sizes_advice(
                    {size: f"{number or ''}..{room}"}, "compile with a smaller number: "
                ),
            )
        self._values[size] = number
        amounts = self._program.amounts
        self._bases[self._amount_base :] = [each.at(self._values) for each in amounts]

    def _run_host(self, step: HostStep[TypedRef]) -> None:
        function = self._hosts[step.operator]
        run_host_step(step, function, self._values, self._view, self._decide)

    def _view(self, typed: TypedRef) -> base.Array:
        """The tensor at a reference, as a fresh view."""
        match typed.ref:
            case InputRef(index):
                memory = byte_view(self._inputs[index])
            case OutputRef(index):
                memory = byte_view(self._outputs[index])
            case ConstantRef(index):
                memory = host_bytes(self._constants[index])
            case ArenaRef():
                memory = host_bytes(self._own[0])
        begin = typed.ref.offset_bytes
        part = memory[begin : begin + typed.type.size_bytes]
        return part.view(typed.type.dtype.numpy).reshape(typed.type.extents)


class NoRoomError(base.InputError):
    """A step decides a size for which the memory of the call has no room.

    needed   the size and its number, at least
    """

    needed: tuple[str, int] = "", 0


def _too_many(size: str, room: int, number: int, reason: str, of_what: str = "") -> NoRoomError:
    error = NoRoomError(
        stage="run",
        where=f"size {size}",
        reason=f"{reason}, and there is no room for more{of_what}",
        remedy=base.sizes_advice(
            {size: f"..{2 * max(1, room)}"}, "compile with a greater number: "
        ),
    )
    error.needed = size, number
    return error


AnyFrame: TypeAlias = Frame | DeviceFrame
"""A call on the host, or on a device with a memory of its own."""


class FramePool:
    """Frames that no call uses now. Safe to use from several threads."""

    __slots__ = ("_create", "_idle")

    def __init__(self, create: Callable[[], AnyFrame]) -> None:
        self._create = create
        self._idle: deque[AnyFrame] = deque(maxlen=_MOST_IDLE)

    def take(self) -> AnyFrame:
        """An idle frame for a call, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._create()

    def give(self, frame: AnyFrame) -> None:
        """Take a frame back after the call."""
        frame.disconnect()
        self._idle.append(frame)

    def trim(self) -> None:
        """Free the memory of idle frames."""
        self._idle.clear()


class Bound:
    """A prepared call with its arena, for serving and for measurements.

    inputs    the arrays that are read: the caller's if kernels can read them in place, otherwise
              copies. Write new data into these between runs.
    outputs   the arrays that are written, the same ones in every run. If a loop decides the number
              of rows, they have room for the most, and `run` returns the part that was written.
    Either may be in the memory of the device that runs the code.
    It runs one call at a time: each concurrent thread needs a separate `Bound`.
    """

    __slots__ = ("_frame", "_run", "_specs", "inputs", "outputs")

    def __init__(
        self,
        frame: AnyFrame,
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        specs: tuple[TensorSpec, ...] = (),
    ) -> None:
        self._frame = frame
        self._specs = specs
        self._run = frame.run
        self.inputs = inputs
        self.outputs = outputs

    def run(self) -> dict[str, base.Array]:
        """Compute the outputs from the present content of the inputs."""
        self._run()
        if not self._specs:
            return self.outputs
        parts = written(self._specs, tuple(self.outputs.values()), self._frame.values)
        return dict(zip(self.outputs, parts, strict=True))

    __call__ = run

    def run_seconds(self) -> float:
        """As `run`; returns the seconds that it takes, by the device's clock."""
        return self._frame.device.time(self._run)

    def run_timed(self) -> tuple[float, ...]:
        """As `run`; returns the seconds of each step of the plan.

        Native code reads the clock at the beginning of each step. So the time of a step includes
        one reading and the cost of the call (`measure_call_costs`).
        """
        return self._frame.run_timed()


def written(
    specs: Sequence[TensorSpec], arrays: Sequence[base.Array], values: Mapping[str, int]
) -> tuple[base.Array, ...]:
    """The parts of arrays that a call with these sizes has written, as dense tensors."""
    parts: list[base.Array] = []
    for spec, array in zip(specs, arrays, strict=True):
        shape = tuple(base.amount_at(extent, values) for extent in spec.shape)
        is_whole = shape == array.shape
        parts.append(array if is_whole else array.reshape(-1)[: prod(shape)].reshape(shape))
    return tuple(parts)
