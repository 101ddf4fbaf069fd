"""Sessions of calls: an executable with the state that each call hands to the next one.

    session = executable.session()
    session.run({"frame": frame})        past comes from the call before, present goes to the next

State is an input with the output that takes its place in the next call: the cache of a decoder, the
hidden state of a recurrent layer.  A call hands it over without a copy.  A state that grows lies in
memory with room for more rows: a call writes the new ones behind the others (`GrownState`).  Into a
state of fixed length it writes them where the model says (`WrittenState`).
Sessions share the code and the constants of their executable.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from tensorwright import base
from tensorwright.runtime.buffers import empty
from tensorwright.runtime.inputs import check_array, check_names
from tensorwright.runtime.native.pool.pending_run import Stop
from tensorwright.runtime.plan.call_sizes import solved_sizes
from tensorwright.runtime.plan.plan import Plan, TensorSpec, WrittenState
from tensorwright.runtime.plan.plan_sizes import PlanSize
from tensorwright.runtime.state_files import read_state, write_state
from tensorwright.runtime.state_pairs import (
    checked_pairs,
    growing_axes,
    state_pairs,
    wrong_argument,
)
from tensorwright.runtime.state_rows import RowsOfCall, StateRows


class Callee(Protocol):
    """What a session calls: an `Executable`."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the inputs."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the outputs."""

    @property
    def sizes(self) -> tuple[PlanSize, ...]:
        """The named sizes of the inputs."""

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """What changes states in place: with all outputs, and with the state alone."""

    def run(self, inputs: Mapping[str, Any], stop: Stop) -> dict[str, base.Array]:
        """Compute all outputs, or what is done when it stops."""


class InPlace(Protocol):
    """An executable that changes states in place: `Executable.in_place`."""

    @property
    def plan(self) -> Plan:
        """The plan, which names the states."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the inputs."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the outputs."""

    def run_in_place(
        self, inputs: Mapping[str, Any], rows: RowsOfCall, stop: Stop
    ) -> dict[str, base.Array]:
        """Compute the outputs that are not states in place, or what is done when it stops.

        rows   those of the states, in the order of the plan
        """


class Session:
    """Calls of one executable that hand state to each other. One thread at a time may use it."""

    def __init__(self, executable: Callee, state: Mapping[str, str] | None = None) -> None:
        """The state is zeros, or empty where a call makes it longer.

        state   the output that becomes an input in the next call, by the name of that input; if
                None, names say it: `present.0.key` becomes `past_key_values.0.key`; if they do
                not, it is the states in place; %d stands for 0, 1 and so on

        Raises:  UsageError for names that are not of the executable, for tensors of other types,
                 and if no state is found.
        """
        self._executable = executable
        self._inputs = {spec.name: spec for spec in executable.inputs}
        outputs = {spec.name: spec for spec in executable.outputs}
        self._in_place = executable.in_place
        states = self._in_place[0].plan.states if self._in_place else ()
        if state is None:
            by_name = state_pairs(executable.inputs, executable.outputs)
            state = by_name or {each.input: each.output for each in states}
        self._outputs = checked_pairs(self._inputs, outputs, state)
        self._growing = {
            name: growing_axes(self._inputs[name], outputs[made])
            for name, made in self._outputs.items()
        }
        if any(self._outputs.get(each.input) != each.output for each in states):
            self._in_place, states = (), ()
        alone = {spec.name for each in self._in_place[1:] for spec in each.outputs}
        if not alone >= {*self._outputs.values()}:
            self._in_place = self._in_place[:1]
        self._states = states
        self._writes = next((each for each in states if isinstance(each, WrittenState)), None)
        self._fixed = {each.input for each in states if isinstance(each, WrittenState)}
        held = {each.input for each in states}
        self._given = {name: made for name, made in self._outputs.items() if name not in held}
        self._free = tuple(each for each in executable.inputs if each.name not in self._outputs)
        # What the calls so far have left: the states in place, and the others.
        self._rows: StateRows | None = None
        self._arrays: dict[str, base.Array] = {}
        self._end: int | None = None  # of the state, since `rewind`
        self._shapes: dict[str, tuple[int, ...]] = {}  # of the last call
        self._new: list[tuple[int, ...]] = []  # the shapes of its new rows
        self._added = np.zeros(len(states), np.int64)  # by how many rows states grew
        self._steps, self._written, self._rows_of_call = 0, 0, 0
        self._turn = threading.Lock()
        self._stop = Stop()

    @property
    def pairs(self) -> dict[str, str]:
        """The output that becomes each input of the state."""
        return dict(self._outputs)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the inputs of a call: those that are not state."""
        return self._free

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the outputs of a call: those that do not become state."""
        made = set(self._outputs.values())
        return tuple(spec for spec in self._executable.outputs if spec.name not in made)

    @property
    def sizes(self) -> tuple[PlanSize, ...]:
        """The named sizes of a call, with their bounds."""
        return self._executable.sizes

    @property
    def state(self) -> dict[str, base.Array]:
        """The present state by the names of inputs, read-only; empty before the first call."""
        views = {name: array.view() for name, array in self._present().items()}
        if self._rows is not None:
            self._rows.is_seen[:] = True
        for view in views.values():
            view.flags.writeable = False
        return views

    @property
    def advances_alone(self) -> bool:
        """Whether `advance` has less to do than `run`."""
        return len(self._in_place) > 1

    @property
    def steps(self) -> int:
        """The number of calls since the beginning."""
        return self._steps

    @property
    def position(self) -> int:
        """The length of a state that grows, or the rows that calls wrote into one of fixed length;
        the number of calls if there is neither.
        """
        return self._reached() if self._end is None else self._end

    def _reached(self) -> int:
        """The position after the last call."""
        growing = next((name for name, axes in self._growing.items() if axes), None)
        if growing is not None:
            return self._length(growing)
        return self._written if self._writes else self._steps

    def _length(self, name: str) -> int:
        """The length of a state that grows, after the last call."""
        if self._rows is not None and name not in self._given:
            return self._rows.count(name)
        return self._arrays[name].shape[self._growing[name][-1]] if name in self._arrays else 0

    @property
    def room(self) -> int | None:
        """How many rows a state of fixed length has; None without one, or if a call tells it."""
        state = self._writes
        if state is None:
            return None
        if self._rows is not None:
            memory = self._rows.memory[self._rows.names.index(state.input)]
            return int(memory.shape[state.order(memory.ndim).index(state.axis)])
        extent = self._inputs[state.input].shape[state.axis]
        return extent if isinstance(extent, int) else None

    def run(self, inputs: Mapping[str, Any]) -> dict[str, base.Array]:
        """The outputs of a call, without the state, which goes to the next call.

        inputs   an array for each input that is not state
        Raises:  as `Executable.run`; UsageError while another thread uses the session;
                 CancelledError after `cancel`. The state stays as it was if the call does not end.
        """
        with self._alone():
            check_names("input", self._free, inputs)
            self._cut()
            results = self._run_in_place(self._in_place[:1], inputs)
            if results is None:
                present = self._present()
                missing = [name for name in self._outputs if name not in present]
                given = {**inputs, **self._zeros(missing, inputs), **present}
                results = self._executable.run(given, self._stop)
                self._check_going()
                self._hold({name: results.pop(made) for name, made in self._outputs.items()})
            self._count()
            return results

    def advance(self, inputs: Mapping[str, Any]) -> None:
        """As `run`, for the state alone: what only other outputs need is not computed.

        inputs   as for `run`
        Raises:  as `run`.
        """
        with self._alone():
            check_names("input", self._free, inputs)
            self._cut()
            is_done = self._run_in_place(self._in_place[1:], inputs) is not None
            if is_done:
                self._count()
        if not is_done:
            self.run(inputs)

    def _count(self) -> None:
        self._steps += 1
        self._written += self._rows_of_call

    def _run_in_place(
        self, forms: Sequence[InPlace], inputs: Mapping[str, Any]
    ) -> dict[str, base.Array] | None:
        """A call that changes its state in place; None if it cannot be one."""
        if not forms:
            return None
        (form,) = forms
        shapes = {name: np.shape(array) for name, array in inputs.items()}
        if shapes != self._shapes:
            self._note_shapes(form, shapes, inputs)
        held = self._first_rows(shapes) if self._rows is None else self._rows
        rows = held.call(self._added)
        missing = [name for name in self._given if name not in self._arrays]
        given = {**inputs, **self._zeros(missing, inputs), **self._arrays}
        try:
            results = form.run_in_place(given, rows, self._stop)
        except base.InputError:
            return None  # the network itself says what is wrong, or computes it for these sizes
        self._check_going()
        made = {name: results.pop(output) for name, output in self._given.items()}
        self._arrays, self._rows = made, rows.end()
        return results

    def _note_shapes(
        self, form: InPlace, shapes: dict[str, tuple[int, ...]], inputs: Mapping[str, Any]
    ) -> None:
        """Compute what calls with inputs of these shapes add to the states in place."""
        values = self._sizes(inputs)
        made = {spec.name: spec for spec in form.outputs}
        specs = [made[state.output] for state in self._states]
        self._new = [
            tuple([base.amount_at(extent, values) for extent in spec.shape]) for spec in specs
        ]
        is_written = [isinstance(state, WrittenState) for state in self._states]
        pairs = zip(self._new, is_written, strict=True)
        self._added = np.array([0 if writes else shape[0] for shape, writes in pairs], np.int64)
        writes = self._writes
        self._rows_of_call = 0 if writes is None else base.amount_at(writes.rows, values)
        self._shapes = shapes

    def _first_rows(self, shapes: Mapping[str, tuple[int, ...]]) -> StateRows:
        """The states in place before the first call.

        Raises:  InputError if the length of one is known neither from the model nor from the
                 inputs.
        """
        memory = []
        for state, (count, *row) in zip(self._states, self._new, strict=True):
            is_written = isinstance(state, WrittenState)
            if is_written:
                self._check_told(state.input, shapes)
            rows = empty((count if is_written else 0, *row), self._inputs[state.input].dtype)
            rows[...] = 0
            memory.append(rows)
        return StateRows(self._states, memory)

    def _check_told(self, name: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise an InputError unless the inputs or the model tell the length of a state."""
        told = solved_sizes(self._executable.inputs, shapes)
        extents = (each for each in self._inputs[name].shape if isinstance(each, base.Formula))
        unknown = [size for extent in extents for size in extent.names if size not in told]
        if unknown:
            reason = f"how long it is, {unknown[0]}, is known neither from the model nor the inputs"
            remedy = (
                f"give it before the first call: session.reset({{{name!r}: zeros}}), or compile "
                f"with a number: sizes={{{unknown[0]!r}: '256'}}"
            )
            raise base.InputError(stage="run", where=f"state {name}", reason=reason, remedy=remedy)

    def _present(self) -> dict[str, base.Array]:
        """The state by the names of inputs, in the shapes of the network."""
        arrays = {}
        for name in self._given.keys() & self._arrays.keys():
            arrays[name] = self._arrays[name]
            if self._end is not None:
                axis = self._growing[name][-1]
                arrays[name] = arrays[name].swapaxes(0, axis)[: self._end].swapaxes(0, axis)
        if self._rows is not None:
            for number, state in enumerate(self._states):
                end = None if isinstance(state, WrittenState) else self._end
                arrays[state.input] = self._rows.array(number, end)
        return {name: arrays[name] for name in self._outputs if name in arrays}

    def _cut(self) -> None:
        """Forget the rows behind the position; memory that others see is left to them."""
        if self._end is not None:
            present = self._present()
            self._arrays = {name: present[name] for name in self._arrays}
            if self._rows is not None:
                self._rows = self._rows.cut(self._end)
            self._written, self._end = self._end, None

    def _hold(self, arrays: Mapping[str, base.Array]) -> None:
        """Let arrays, in the shapes of the network, be the state; nobody else writes to them."""
        memory = []
        for state in self._states if arrays else ():
            rows = np.transpose(arrays[state.input], state.order(arrays[state.input].ndim))
            memory.append(empty(rows.shape, self._inputs[state.input].dtype))
            np.copyto(memory[-1], rows)
        self._end = None
        self._arrays = {name: array for name, array in arrays.items() if name in self._given}
        self._rows = StateRows(self._states, memory) if memory else None

    def cancel(self) -> None:
        """Let the call that another thread is in end before its next kernel, with a CancelledError;
        if there is none, the next call does. The state stays as it was.
        """
        self._stop.set()

    def _check_going(self) -> None:
        if self._stop:
            self._stop = Stop()
            raise CancelledError

    def rewind(self, position: int) -> None:
        """Go back to a position; the next call forgets what is behind it, and follows it.

        Until then, `rewind` may go forward again, as far as the last call went.
        Raises:  UsageError for a position that the session has not reached, and for a state that
                 does not grow with the position.
        """
        with self._alone():
            reached = self._reached()
            if not 0 <= position <= reached:
                reason = f"{position} is not from 0 to {reached}, where the session is"
                raise wrong_argument(
                    "position", reason, "give a position that the session has reached"
                )
            for name, axes in self._growing.items():
                if name in self._fixed:
                    fits = self.room is None or reached <= self.room
                else:
                    fits = bool(axes) and self._length(name) == reached
                if not fits:
                    reason = f"the state {name} does not grow with it"
                    raise wrong_argument(
                        "position", reason, "fork the session at that position before"
                    )
            self._end = position

    def reset(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin again: with zeros, or with a given state.

        Raises:  InputError for a name, an element type or a shape that is not of the state.
        """
        specs = [self._inputs[name] for name in self._outputs]
        if state is not None:
            check_names("state", specs, state)
        with self._alone():
            given = {} if state is None else state
            checked = {
                spec.name: check_array("state", spec, given[spec.name])
                for spec in specs[: len(given)]
            }
            self._hold({name: array.copy() for name, array in checked.items()})
            self._steps, self._written = 0, 0

    def fork(self) -> Session:
        """Another session that continues from the present state, which both share in memory.

        The next call of each that makes it longer copies it first.
        """
        with self._alone():
            other = Session(self._executable, self._outputs)
            other._arrays = dict(self._arrays)
            other._steps, other._written = self._steps, self._written
            other._end = self._end
            if self._rows is not None:
                other._rows = self._rows.forked()
            return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which `load` reads; the whole file or nothing.

        Raises:  OutputError if it cannot be written.
        """
        with self._alone():
            counts = {"steps": self._steps, "written": self._written}
            write_state(path, self._about_pairs(), counts, self._present())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from a state that a session of the same model wrote; any target may have run it.

        Raises:  InputError for a file that is none, is of another version, or of another model.
        """
        with self._alone():
            counts, arrays = read_state(path, self._about_pairs())
            for name, array in arrays.items():
                spec = self._inputs[name]
                typed = array.view(spec.dtype.numpy) if spec.dtype is base.DType.BF16 else array
                arrays[name] = check_array("state", spec, typed)
            self._hold(arrays)
            self._steps, self._written = counts["steps"], counts["written"]

    def __repr__(self) -> str:
        pairs = ", ".join(f"{name} <- {made}" for name, made in self._outputs.items())
        return f"<Session at {self.position}: {pairs}>"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the session.  Raises: UsageError if another thread does."""
        if not self._turn.acquire(blocking=False):
            raise base.UsageError(
                stage="run",
                where="session",
                reason="another thread uses it",
                remedy="give each thread a session: session.fork()",
            )
        try:
            yield
        finally:
            self._turn.release()

    def _zeros(self, names: Sequence[str], inputs: Mapping[str, Any]) -> dict[str, base.Array]:
        """What stands for states that no call has made; of length 0 where calls extend them."""
        if not names:
            return {}
        values = self._sizes(inputs)
        zeros = {}
        for name in names:
            spec = self._inputs[name]
            extents = [base.amount_at(extent, values) for extent in spec.shape]
            zeros[name] = np.zeros(extents, spec.dtype.numpy)
        return zeros

    def _sizes(self, inputs: Mapping[str, Any]) -> dict[str, int]:
        """The named sizes of a call at the beginning."""
        shapes = {name: np.shape(array) for name, array in inputs.items()}
        usual = {size.name: max(1, size.least) for size in self._executable.sizes}
        lengths = dict.fromkeys((n for name in self._outputs for n in self._lengths_of(name)), 0)
        return usual | lengths | solved_sizes(self._executable.inputs, shapes)

    def _lengths_of(self, name: str) -> tuple[str, ...]:
        """The named sizes of the axes along which a call makes a state longer."""
        shape = self._inputs[name].shape
        extents = [shape[axis] for axis in self._growing[name]]
        return tuple(n for each in extents if isinstance(each, base.Formula) for n in each.names)

    def _about_pairs(self) -> list[list[str]]:
        return [
            [name, made, str(self._inputs[name].dtype), str(len(self._inputs[name].shape))]
            for name, made in sorted(self._outputs.items())
        ]
