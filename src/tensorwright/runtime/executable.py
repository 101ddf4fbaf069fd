"""A compiled network: a function of arrays that returns arrays.

executable.run({"image": array})            names to arrays, names to fresh arrays
executable(array)                           arrays in order, an array or a tuple of them
executable.run_async({"image": array})      in the background: result(), cancel(), or await it
bound = executable.bind({"image": array})   prepared once ...
bound.run()                                 ... then called with the least overhead
session = executable.session()              state goes from call to call
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NoReturn

import numpy as np

from tensorwright import base
from tensorwright.runtime.buffers import is_kernel_ready, kernel_ready
from tensorwright.runtime.container import Contents, write_container
from tensorwright.runtime.device import Device, check_device, device_of, missing_device
from tensorwright.runtime.device_frame import (
    DeviceCall,
    DeviceFrame,
    LoadedOnDevice,
    has_arrays_on_device,
    load_on_device,
    new_outputs,
)
from tensorwright.runtime.dlpack import stand_in
from tensorwright.runtime.frame import (
    AnyFrame,
    Bound,
    Frame,
    FramePool,
    Loaded,
    NoRoomError,
    written,
)
from tensorwright.runtime.inputs import (
    Port,
    check_array,
    check_count,
    check_inputs,
    check_outputs,
    check_positional,
    check_ready,
    take_inputs,
    take_outputs,
)
from tensorwright.runtime.native.driver import load_program
from tensorwright.runtime.native.jit import LoadedCode
from tensorwright.runtime.native.pool import float_bits, usable_threads
from tensorwright.runtime.native.pool.pending_run import NEVER, PendingRun, Stop, start_run
from tensorwright.runtime.plan.call_sizes import (
    CallSizes,
    Dimensions,
    call_sizes,
    check_values,
    chosen_values,
    values_of,
    with_rooms,
)
from tensorwright.runtime.plan.capacity import check_arena, with_room
from tensorwright.runtime.plan.plan import Plan, TensorSpec
from tensorwright.runtime.plan.plan_sizes import PlanSize, numbered
from tensorwright.runtime.plan.plan_verify import verify_plan
from tensorwright.runtime.sessions import Session
from tensorwright.runtime.state_rows import PlacedRows, RowsOfCall, StatePlaces


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of a step, as the median of several runs, and its least work."""

    label: str
    time_s: float
    flops: int
    bytes_moved: int


class Executable:
    """A plan with its code and constants, ready to run. Safe to call from several threads.

    Inputs may be NumPy arrays, or objects on the CPU that export DLPack, the buffer protocol or
    `__array__`. An input that is not dense, row-major and on a multiple of 64 bytes is copied
    first. Outputs are fresh arrays that belong to the caller; they export DLPack. In a process
    forked after a first call on several threads, calls run on one thread.
    """

    def __init__(
        self,
        plan: Plan,
        objects: Sequence[bytes],
        constants: Sequence[base.Array],
        *,
        threads: int | None = None,
        sources: Sequence[tuple[str, str]] = (),
        hosts: Mapping[str, base.HostFunction] | None = None,
        sessions: Sequence[Plan] = (),
    ) -> None:
        """Link the code. `constants` are kept, and copied only if kernels cannot read them.

        An executable for another processor can be saved, but not called.

        threads   how many the kernels use; the knob `threads` if None
        sources   texts to keep in a saved file, from which it can be built for another processor
        hosts     NumPy functions of operators that run on the host; those of `ops` if None
        sessions  the plans of calls that extend their state in place: `in_place`
        Raises:  UsageError for fewer than one thread;
                 UnsupportedError for a host step whose operator has no host function;
                 InternalError if plan, objects and constants do not fit together.
        """
        for each in (plan, *sessions):
            verify_plan(each)
        _check_constants(plan, constants)
        ready = tuple(kernel_ready(array) for array in constants)
        contents = Contents(plan, tuple(objects), ready, tuple(sources), tuple(sessions))
        self._link(contents, threads, hosts)

    @classmethod
    def of(cls, contents: Contents, threads: int | None = None) -> Executable:
        """The executable of the contents of a file, which were read and verified.

        threads   how many the kernels use; the knob `threads` if None
        Raises:  as the constructor.
        """
        executable = cls.__new__(cls)
        executable._link(contents, threads, None)
        return executable

    def _link(
        self,
        contents: Contents,
        threads: int | None,
        hosts: Mapping[str, base.HostFunction] | None,
        linked: Loaded | LoadedOnDevice | None = None,
    ) -> None:
        """Load the code, or take it and the constants from `linked`, of a plan with the same."""
        plan = contents.plan
        self._threads = usable_threads(threads)
        self._floats = float_bits(plan.target.arch)
        self._contents = contents
        if linked is not None:
            self._loaded: Loaded | LoadedOnDevice | None = linked.with_plan(plan, self._threads)
        else:
            self._loaded = None if missing_device(plan.target) else self._load()
        self._may_be_on_device = plan.target.kind is not base.TargetKind.CPU
        self._hosts = {name: _host(name, hosts) for name in plan.host_operators}
        self._ports = tuple(Port.of(spec) for spec in plan.inputs)
        self._names = tuple(spec.name for spec in plan.outputs)
        self._places = StatePlaces.of(plan)
        self._free_ports = tuple([self._ports[position] for position in self._places.others])
        self._results = tuple([plan.outputs[position] for position in self._places.results])
        self._pool = FramePool(self._frame)
        self._sizes: CallSizes | None = None  # of the last call
        self._dimensions = Dimensions.of(plan)
        self._counted = bool(self._dimensions.counted)
        self._growing = threading.Lock()
        self._in_place: tuple[Executable, ...] = ()

    @property
    def plan(self) -> Plan:
        """The plan: the steps, as data."""
        return self._contents.plan

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the inputs, in calling order."""
        return self.plan.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the outputs, in order."""
        return self.plan.outputs

    @property
    def target(self) -> base.Target:
        """The processor for which it was compiled."""
        return self.plan.target

    @property
    def threads(self) -> int:
        """The number of threads that each kernel may use."""
        return self._threads

    @property
    def steps(self) -> tuple[str, ...]:
        """The labels of the steps, in the order in which they run."""
        return tuple(step.label for step in self.plan.steps)

    @property
    def host_operators(self) -> tuple[str, ...]:
        """The operators that run in NumPy, because no tensor expression describes them."""
        return self.plan.host_operators

    @property
    def objects(self) -> tuple[bytes, ...]:
        """The object code of each kernel of the plan."""
        return self.contents.objects

    @property
    def peak_memory_bytes(self) -> int:
        """Memory of a call without constants, inputs and outputs: arena and scratch memory."""
        return self.plan.arena_bytes + self.plan.scratch_bytes(self._threads)

    @property
    def sizes(self) -> tuple[PlanSize, ...]:
        """The named sizes of its inputs, which each call decides."""
        return self.plan.sizes

    @property
    def constant_bytes(self) -> int:
        """Memory of the constants, packed as the kernels read them; shared by all calls."""
        return sum(spec.size_bytes for spec in self.plan.constants)

    @property
    def contents(self) -> Contents:
        """The contents of its file."""
        return self._contents

    @property
    def sources(self) -> dict[str, str]:
        """The texts from which it was built, if they were kept."""
        return dict(self.contents.sources)

    def run(self, inputs: Mapping[str, Any], stop: Stop = NEVER) -> dict[str, base.Array]:
        """Compute all outputs.

        inputs   an array for each name of an input
        stop     if it is set, kernels that have not begun are left out

        If an input is an array of DLPack in the memory of the device that runs the code, results
        are there, too. Each is a DeviceArray, which other libraries take by `from_dlpack`.
        Raises:  InputError for a wrong name, shape or element type; MachineError if there is
                 not enough memory for one more call, or if the machine lacks instructions of the
                 target.
        """
        if self._may_be_on_device and self._is_on_device(inputs):
            return self._named(self._call_on_device(inputs))
        given = check_inputs(self._ports, inputs)
        return self._named(self._for(given)._call(given, stop))

    def __call__(self, *inputs: Any) -> base.Array | tuple[base.Array, ...]:
        """As `run`, with inputs and outputs in order; a single output is not in a tuple."""
        if self._may_be_on_device and self._is_on_device(inputs):
            check_count(self._ports, inputs)
            names = [port.name for port in self._ports]
            results = self._call_on_device(dict(zip(names, inputs, strict=True)))
        else:
            given = check_positional(self._ports, inputs)
            results = self._for(given)._call(given)
        return results[0] if len(results) == 1 else results

    def run_async(self, inputs: Mapping[str, Any]) -> PendingRun:
        """As `run` with arrays on the host, in the background: returns a Future.

        It can be cancelled and awaited. The inputs are checked at once; they must not change until
        it is done.
        Raises:  InputError for a wrong name, shape or element type; other errors come with the
                 results.
        """
        given = check_inputs(self._ports, inputs)
        chosen = self._for(given)

        def work(stop: Stop) -> dict[str, base.Array]:
            return self._named(chosen._call(given, stop))

        return start_run(work)

    def run_in_place(
        self, inputs: Mapping[str, Any], rows: RowsOfCall, stop: Stop = NEVER
    ) -> dict[str, base.Array]:
        """As `run`, for the inputs and outputs that are not states in place.

        inputs   an array for each name of such an input     stop   as of `run`
        rows     those of the states, in the order of `plan.states`
        Raises:  InputError as `run`.
        """
        given = check_inputs(self._free_ports, inputs)
        states = PlacedRows(self._places, rows)
        sizes = self._sizes_at(states.shapes(given))
        fresh = tuple([sizes.makers[position].make() for position in self._places.results])
        results = self._run(given, fresh, sizes, stop, states)
        return {spec.name: array for spec, array in zip(self._results, results, strict=True)}

    def run_into(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """As `run`, but write into the caller's arrays.

        inputs, outputs   an array for each name of an input, and of an output

        If values decide a size of an output (the number of iterations of a loop, or of results of
        an operator), its array must have room for the greatest size; the result is at its start.

        Kernels write directly into an array that is dense, row-major and on a multiple of 64 bytes
        (`runtime.empty` makes such arrays); any other array gets a copy at the end. An output must
        not share memory with an input or another output. Arrays of DLPack in the memory of the
        device are written there.
        Raises:  InputError as `run`, and for an array that cannot be written.
        """
        if self._may_be_on_device and self._is_on_device(inputs, outputs):
            self._call_on_device(inputs, outputs)
            return
        given = check_inputs(self._ports, inputs)
        self._for(given)._call_into(given, outputs)

    def _call_into(self, given: tuple[base.Array, ...], outputs: Mapping[str, Any]) -> None:
        sizes = self._sizes_of(given)
        wanted = check_outputs(self._outputs_at(sizes), outputs, given)
        places = tuple(
            array if is_kernel_ready(array) and not self._counted else maker.make()
            for maker, array in zip(sizes.makers, wanted, strict=True)
        )
        written = self._run(given, places, sizes)
        for array, buffer, result in zip(wanted, places, written, strict=True):
            if array is not buffer:
                np.copyto(array[tuple(map(slice, result.shape))], result)

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> Bound:
        """Prepare a call: check all arrays and compute all addresses once.

        inputs    an array for each name of an input
        outputs   an array for each name of an output; new arrays if None

        Kernels read and write arrays of DLPack in the memory of the device in place. Writes of
        other libraries must be complete before a run; a run is complete when it returns.
        Raises:  InputError as `run_into`, and for an output into which kernels cannot write
                 directly.
        """
        if self._may_be_on_device and self._is_on_device(inputs, outputs or {}):
            return self._bind_on_device(inputs, outputs)
        given = check_inputs(self._ports, inputs)
        return self._for(given)._bind(given, outputs)

    def _bind(self, given: tuple[base.Array, ...], outputs: Mapping[str, Any] | None) -> Bound:
        sizes = self._sizes_of(given)
        if outputs is None:
            places = _fresh(sizes)
        else:
            places = check_outputs(self._outputs_at(sizes), outputs, given)
            for spec, array in zip(self.outputs, places, strict=True):
                check_ready(spec, array)
        frame = self._frame()
        frame.connect(given, places, sizes, is_in_place=True)
        names = [spec.name for spec in self.inputs]
        specs = self.outputs if self._counted else ()
        arrays: Sequence[Any] = frame.inputs
        return Bound(frame, dict(zip(names, arrays, strict=True)), self._named(places), specs)

    def session(self, state: Mapping[str, str] | None = None) -> Session:
        """Calls that hand state to each other, as those of a decoder with a cache.

        state   the output that becomes an input in the next call, by the name of that input; if
                None, names say it: `present.0.key` becomes `past_key_values.0.key`
        Raises:  UsageError as `Session`.
        """
        return Session(self, state)

    @property
    def in_place(self) -> tuple[Executable, ...]:
        """The executables of calls that extend their state in place; () if there are none.

        The first one has all outputs; a second one, where it has less to do, the state alone.
        They share the code and the constants. Their inputs and outputs: see `plan.states`.
        """
        contents = self._contents
        if contents.sessions and not self._in_place and not missing_device(self.target):
            with self._growing:
                self._in_place = tuple([self._with_session(plan) for plan in contents.sessions])
        return self._in_place

    def _with_session(self, plan: Plan) -> Executable:
        """The executable of one of its plans of sessions, with its code and constants."""
        executable = Executable.__new__(Executable)
        contents = replace(self._contents, plan=plan, sources=(), sessions=())
        executable._link(contents, self._threads, None, self._linked())
        return executable

    def profile(self, inputs: Mapping[str, Any], repeat: int = 10) -> tuple[StepTime, ...]:
        """Time each step while the network runs; the clock is read in native code.

        inputs   an array for each name of an input
        repeat   the number of runs, of which medians are taken
        Raises:  InputError as `run`.
        """
        given = check_inputs(self._ports, inputs)
        return self._for(given)._timed(given, repeat)

    def _timed(self, given: tuple[base.Array, ...], repeat: int) -> tuple[StepTime, ...]:
        sizes = self._sizes_of(given)
        frame = self._take()
        try:
            frame.connect(given, _fresh(sizes), sizes)
            frame.run()
            runs = [frame.run_timed() for _ in range(max(1, repeat))]
            values = dict(frame.values)
        finally:
            self._pool.give(frame)
        return tuple(
            StepTime(
                step.label,
                median(times_s),
                getattr(step, "flops", 0),
                getattr(step, "bytes_moved", 0),
            )
            for step, times_s in zip(
                self.plan.at(values).steps, zip(*runs, strict=True), strict=True
            )
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a single file that `load` reads; the whole file or nothing.

        path     of the file, which is replaced if it exists
        Raises:  OutputError for a full disk, a missing folder or permission and the like.
        """
        write_container(path, self._contents)

    def with_plan(self, plan: Plan, threads: int | None = None) -> Executable:
        """An executable of the same code and constants with another plan: other teams and threads.

        Raises:  the errors of `Executable`.
        """
        contents = self._contents
        is_same = plan.kernels == contents.plan.kernels
        return Executable(
            plan,
            contents.objects,
            contents.constants,
            threads=self._threads if threads is None else threads,
            sources=contents.sources,
            hosts=self._hosts,
            sessions=contents.sessions if is_same else (),
        )

    def chosen_sizes(self, **values: int) -> dict[str, int]:
        """The numbers of its named sizes if some values are given.

        A size that is not given is 1 if its name or its position says batch, else a number between
        its bounds.

        Raises:  UsageError for a name that is not a size, and a value outside of its bounds.
        """
        chosen = chosen_values(self.sizes, self.inputs, values)
        check_values(self.sizes, chosen)
        return chosen

    def at(self, **values: int) -> Executable:
        """The executable for given values of its named sizes; others are as in `chosen_sizes`.

        Raises:  as `chosen_sizes`.
        """
        chosen = self.chosen_sizes(**values)
        roomy = with_room(self.plan, with_rooms(self.plan, chosen, self._dimensions.counted))
        return self.with_plan(roomy.at(chosen))

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise InputError unless calls with inputs of these shapes, in order, have code."""
        values_of(self.plan, self._dimensions, shapes)

    def trim(self) -> None:
        """Free the memory of idle calls; the next call allocates it again."""
        with self._growing:
            loaded = self._loaded
            if isinstance(loaded, Loaded):
                self._loaded = loaded.with_plan(loaded.program.plan, self._threads)
            self._pool.trim()

    def __reduce__(self) -> NoReturn:
        raise base.UsageError(
            stage="runtime",
            where=f"executable {self.plan.name}",
            reason="it cannot be pickled: it holds machine code and memory of this process",
            remedy="save(path), and tensorwright.load(path) in the other process",
        )

    def __repr__(self) -> str:
        return (
            f"<Executable {self.plan.name}: {len(self.plan.steps)} steps, target {self.target}, "
            f"{self._threads} threads>"
        )

    def __str__(self) -> str:
        return str(self.plan)

    def _for(self, given: tuple[base.Array, ...]) -> Executable:
        """The executable that answers a call with these arrays."""
        return self

    def _call(self, inputs: tuple[base.Array, ...], stop: Stop = NEVER) -> tuple[base.Array, ...]:
        """A call with fresh results; it begins again if steps decide that it needs more room."""
        while True:
            sizes = self._sizes_of(inputs)
            try:
                return self._run(inputs, _fresh(sizes), sizes, stop)
            except NoRoomError as error:
                name, number = error.needed
                size = next(each for each in self.plan.sizes if each.name == name)
                if size.bound is not None or not size.admits(number):
                    raise
                self._make_room({name: number})
                self._sizes = None

    def _is_on_device(self, *given: Mapping[str, Any] | tuple[Any, ...]) -> bool:
        return any(has_arrays_on_device(self._loaded, each) for each in given)

    def _call_on_device(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None
    ) -> tuple[Any, ...]:
        """A call with arrays on the device; without `outputs`, results are new arrays there."""
        try:
            call = self._device_call(inputs, outputs)
            read, written = call.read_arrays(), call.written_arrays()
            frame = self._take()
            assert isinstance(frame, DeviceFrame)
            try:
                frame.connect(read, written, call.sizes)
                frame.run()
            finally:
                self._pool.give(frame)
            call.copy_results(written)
            return call.outputs
        except MemoryError as error:
            raise self._no_room(self._linked()) from error

    def _bind_on_device(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None
    ) -> Bound:
        """As `bind`, if some arrays are on the device."""
        call = self._device_call(inputs, outputs)
        written = call.outputs if outputs is not None else call.written_arrays()
        call.check_in_place(written)
        frame = self._frame()
        assert isinstance(frame, DeviceFrame)
        frame.connect(call.inputs, written, call.sizes, is_in_place=True)
        names = [spec.name for spec in self.inputs]
        arrays: Sequence[Any] = frame.inputs
        return Bound(frame, dict(zip(names, arrays, strict=True)), self._named(written))

    def _device_call(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None
    ) -> DeviceCall:
        """The inputs, the outputs and the sizes of a call.

        Raises:  InputError as `run_into`; MemoryError if the memory of the device is full.
        """
        loaded = self._linked()
        assert isinstance(loaded, LoadedOnDevice)
        device = loaded.device
        given = take_inputs(device, self._ports, inputs)
        sizes = self._sizes_of(tuple(map(stand_in, given)))
        if outputs is None:
            return DeviceCall(device, self.plan, given, new_outputs(device, sizes), sizes)
        wanted = take_outputs(device, self._outputs_at(sizes), outputs, given)
        return DeviceCall(device, self.plan, given, wanted, sizes)

    def _sizes_of(self, inputs: tuple[base.Array, ...]) -> CallSizes:
        """The sizes of a call; those of the last call if the shapes are the same."""
        last = self._sizes
        if last is not None and not self.plan.sizes:
            return last
        try:
            return self._sizes_at(tuple([array.shape for array in inputs]))
        except base.InputError:
            for spec, array in zip(self.plan.inputs, inputs, strict=True):  # says the whole type
                check_array("input", spec, array)
            raise

    def _sizes_at(self, shapes: tuple[tuple[int, ...], ...]) -> CallSizes:
        """The sizes of a call with inputs of these shapes."""
        last, plan = self._sizes, self.plan
        if last is not None and last.shapes == shapes:
            return last
        sizes = call_sizes(plan, self._dimensions, self._linked().program.amounts, shapes)
        self._check_results(sizes)
        if any(sizes.values[size.name] > size.capacity for size in plan.sizes):
            self._make_room(sizes.values)
        self._sizes = sizes
        return sizes

    def _check_results(self, sizes: CallSizes) -> None:
        """Raise a MachineError for results that are larger than the memory of the machine."""
        total_bytes = sum([maker.room_bytes for maker in sizes.makers])
        if total_bytes > base.physical_memory_bytes():
            at = ", ".join(f"{name} = {value}" for name, value in sizes.values.items())
            pairs = zip(self._names, sizes.makers, strict=True)
            base.check_fits(
                {f"{name} {each.shape} at {at}": each.room_bytes for name, each in pairs}
            )

    def _make_room(self, values: Mapping[str, int]) -> None:
        """Lay out the arena for larger calls; frames of the old layout are dropped when idle.

        Other threads call meanwhile. A call that sees the room in the plan must also find the
        memory, so the new plan is set last.
        """
        with self._growing:
            plan = with_room(self.plan, values)
            if plan is self.plan:  # another thread has made room
                return
            self._loaded = self._linked().with_plan(plan, self._threads)
            self._contents = replace(self._contents, plan=plan)
            self._pool.trim()

    def _outputs_at(self, sizes: CallSizes) -> tuple[TensorSpec, ...]:
        roomy = tuple([spec.roomy for spec in self.outputs])
        return numbered(roomy, sizes.values) if self.plan.sizes else roomy

    def _take(self) -> AnyFrame:
        """A frame of the present layout of memory."""
        frame = self._pool.take()
        return frame if frame.loaded is self._loaded else self._frame()

    def _run(
        self,
        inputs: tuple[base.Array, ...],
        outputs: tuple[base.Array, ...],
        sizes: CallSizes,
        stop: Stop = NEVER,
        states: PlacedRows | None = None,
    ) -> tuple[base.Array, ...]:
        """Run a call; returns the parts of the output arrays that it has written.

        states   those in place, which are not among the inputs and outputs
        """
        frame = self._take()
        try:
            frame.connect(inputs, outputs, sizes, states)
            if stop is not NEVER and isinstance(frame, Frame):
                frame.stop_by(stop)
            frame.run()
            if not self._counted:
                return outputs
            specs = self.outputs if states is None else self._results
            return written(specs, outputs, frame.values)
        finally:
            self._pool.give(frame)

    def _named(self, results: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self._names, results, strict=True))

    def _load(self) -> Loaded | LoadedOnDevice:
        device = device_of(self.target)
        if self.target.kind is not base.TargetKind.CPU:
            return self._load_on(device)
        loaded: dict[tuple[bytes, tuple[str, ...]], LoadedCode] = {}  # kernels may share code
        for kernel, data in zip(self.plan.kernels, self.objects, strict=True):
            if (data, kernel.symbols) not in loaded:
                loaded[data, kernel.symbols] = device.load(data, kernel.symbols)
        pairs = zip(self.objects, self.plan.kernels, strict=True)
        code = tuple(loaded[data, kernel.symbols] for data, kernel in pairs)
        constants = tuple(map(device.memory_of, self._contents.constants))
        return Loaded.of(device, load_program(self.plan, code), constants, self._threads)

    def _load_on(self, device: Device) -> LoadedOnDevice:
        try:
            contents = self._contents
            return load_on_device(device, contents.plan, contents.objects, contents.constants)
        except MemoryError as error:
            raise base.MachineError(
                stage="load",
                where=f"executable {self.plan.name}",
                reason=f"its constants need {self.constant_bytes} bytes of the device's memory, "
                f"but about {device.free_bytes()} are free ({error})",
                remedy="free memory of the device, or use a device with more",
            ) from error

    def _linked(self) -> Loaded | LoadedOnDevice:
        """The loaded code.  Raises: MachineError if this machine cannot run it."""
        if self._loaded is None:
            check_device(self.target, "run", f"executable {self.plan.name}")
            self._loaded = self._load()
        return self._loaded

    def _frame(self) -> AnyFrame:
        loaded = self._linked()
        if self.target.kind is base.TargetKind.CPU:
            check_arena(self.plan, self.plan.arena_bytes, self.plan.capacity)
        try:
            if isinstance(loaded, LoadedOnDevice):
                return DeviceFrame(loaded, self._hosts)
            return Frame(loaded, self._hosts, self._threads, self._floats)
        except MemoryError as error:
            raise self._no_room(loaded) from error

    def _no_room(self, loaded: Loaded | LoadedOnDevice) -> base.MachineError:
        needed_bytes = self.peak_memory_bytes
        if isinstance(loaded, LoadedOnDevice):  # inputs and outputs have copies there
            plan = loaded.program.plan.at_capacity
            needed_bytes += sum(spec.size_bytes for spec in (*plan.inputs, *plan.outputs))
        return base.MachineError(
            stage="run",
            where=f"executable {self.plan.name}",
            reason=f"a call needs {needed_bytes} bytes of memory, but "
            f"about {loaded.device.free_bytes()} are free",
            remedy="make fewer calls at once, or compile for a smaller batch",
        )


def _fresh(sizes: CallSizes) -> tuple[base.Array, ...]:
    return tuple([maker.make() for maker in sizes.makers])


def _host(name: str, hosts: Mapping[str, base.HostFunction] | None) -> base.HostFunction:
    """The NumPy function of an operator; `ops` is imported only for programs that need one."""
    if hosts is None:
        host: base.HostFunction | None = (
            importlib.import_module("tensorwright.ops").operator(name).host
        )
    else:
        host = hosts.get(name)
    if host is None:
        raise base.UnsupportedError(
            stage="load",
            where=f"host step {name}",
            reason="this tensorwright has no NumPy implementation of it",
            remedy="compile the model again with this version",
            operator=name,
        )
    return host


def _check_constants(plan: Plan, constants: Sequence[base.Array]) -> None:
    if len(constants) != len(plan.constants):
        raise base.InternalError(
            stage="runtime",
            where="constants",
            reason=f"{len(constants)} given, {len(plan.constants)} declared",
        )
    for spec, array in zip(plan.constants, constants, strict=True):
        if array.shape != spec.shape or array.dtype != spec.dtype.numpy:
            raise base.InternalError(
                stage="runtime",
                where=f"constant {spec.name}",
                reason=f"it is {array.dtype}{array.shape}, but {spec.type} is declared",
            )
