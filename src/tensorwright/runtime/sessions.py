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

import io
import itertools
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tensorwright import base
from tensorwright.runtime.buffers import empty
from tensorwright.runtime.inputs import check_array, check_names
from tensorwright.runtime.native.pool.pending_run import Stop
from tensorwright.runtime.plan.call_sizes import solved_sizes
from tensorwright.runtime.plan.plan import Plan, TensorSpec, WrittenState
from tensorwright.runtime.plan.plan_sizes import PlanSize

_STATE_WORDS = {"past", "present", "cache", "state", "states", "hidden", "cell", "memory", "kv"}
_WORDS_OF_TIME = {"past", "present", "new", "next", "out", "in", "prev", "previous", "last", "n"}
_NEXT = ("n", "N")  # hn is what h becomes
_NUMBER = "%d"  # in the name of a layer's state
_ABOUT = "about.json"
_VERSION = 1


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
        self, inputs: Mapping[str, Any], memory: Mapping[str, base.Array], stop: Stop
    ) -> dict[str, base.Array]:
        """Compute all outputs, some in given memory, or what is done when it stops."""


@dataclass(slots=True)
class _Rows:
    """The memory of a state in place, whose first `count` rows are in use: the growing axis first.

    is_shared   whether another session has it, too, so that a call must not write to it
    is_seen     whether the caller has views of it, so that its rows must not change
    """

    memory: base.Array
    count: int
    is_shared: bool = False
    is_seen: bool = False

    def with_room(self, count: int) -> _Rows:
        """These rows in memory of their own, with room for so many."""
        if count <= len(self.memory) and not self.is_shared:
            return self
        room = len(self.memory) if count <= len(self.memory) else max(count, 2 * len(self.memory))
        memory = empty((room, *self.memory.shape[1:]), base.DType.from_numpy(self.memory.dtype))
        memory[: self.count] = self.memory[: self.count]
        return _Rows(memory, self.count)


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
        self._outputs = _checked_pairs(self._inputs, outputs, _numbered(state, self._inputs))
        self._growing = {
            name: _growing_axes(self._inputs[name], outputs[made])
            for name, made in self._outputs.items()
        }
        self._arrays: dict[str, base.Array] = {}
        self._rows: dict[str, _Rows] = {}
        self._end: int | None = None  # of the state, since `rewind`
        if any(self._outputs.get(each.input) != each.output for each in states):
            self._in_place, states = (), ()
        alone = {spec.name for each in self._in_place[1:] for spec in each.outputs}
        if not alone >= {*self._outputs.values()}:
            self._in_place = self._in_place[:1]
        self._held = {each.input: each for each in states}
        self._made = {each.output: each.input for each in states}
        self._shapes: dict[str, tuple[int, ...]] = {}  # of the last call, and of its new rows
        self._new: dict[str, tuple[int, ...]] = {}
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
        return tuple(spec for name, spec in self._inputs.items() if name not in self._outputs)

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
        for rows in self._rows.values():
            rows.is_seen = True
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
        growing = [name for name, axes in self._growing.items() if axes]
        if growing:
            return self._length(growing[0])
        return self._written if self._writes else self._steps

    def _length(self, name: str) -> int:
        """The length of a state that grows, after the last call."""
        if name in self._rows:
            return self._rows[name].count
        return self._arrays[name].shape[self._growing[name][-1]] if name in self._arrays else 0

    @property
    def room(self) -> int | None:
        """How many rows a state of fixed length has; None without one, or if a call tells it."""
        state = self._writes
        if state is None:
            return None
        if state.input in self._rows:
            memory = self._rows[state.input].memory
            return int(memory.shape[state.order(memory.ndim).index(state.axis)])
        extent = self._inputs[state.input].shape[state.axis]
        return extent if isinstance(extent, int) else None

    @property
    def _writes(self) -> WrittenState | None:
        """A state into which calls write rows."""
        return next((s for s in self._held.values() if isinstance(s, WrittenState)), None)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, base.Array]:
        """The outputs of a call, without the state, which goes to the next call.

        inputs   an array for each input that is not state
        Raises:  as `Executable.run`; UsageError while another thread uses the session;
                 CancelledError after `cancel`. The state stays as it was if the call does not end.
        """
        with self._alone():
            check_names("input", self.inputs, inputs)
            self._cut()
            results = self._run_in_place(self._in_place[:1], inputs)
            if results is None:
                given = {**inputs, **self._missing(inputs), **self._present()}
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
            check_names("input", self.inputs, inputs)
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
            values = self._sizes(inputs)
            self._shapes, self._new = (
                shapes,
                {
                    each.name: tuple([base.amount_at(extent, values) for extent in each.shape])
                    for each in form.outputs
                    if each.name in self._made
                },
            )
            writes = self._writes
            self._rows_of_call = 0 if writes is None else base.amount_at(writes.rows, values)
        memory: dict[str, base.Array] = {}
        whole: dict[str, base.Array] = {}
        rows: dict[str, _Rows] = {}
        for output, (count, *row) in self._new.items():
            name = self._made[output]
            if isinstance(self._held[name], WrittenState):
                held = self._rows.get(name) or self._zeros(name, (count, *row), inputs)
                held = replace(held, is_shared=held.is_shared or held.is_seen)
                rows[name] = held = held.with_room(held.count)
                whole[name] = memory[output] = held.memory
                continue
            held = self._rows.get(name) or _Rows(empty((0, *row), self._inputs[name].dtype), 0)
            end = held.count + count
            rows[name] = held = held.with_room(end)
            whole[name], memory[output] = held.memory[:end], held.memory[end - count : end]
        others = self._missing(inputs, whole)
        try:
            given = {**inputs, **others, **self._arrays, **whole}
            results = form.run_in_place(given, memory, self._stop)
        except base.InputError:
            return None  # the network itself says what is wrong, or computes it for these sizes
        self._check_going()
        made = {name: results.pop(output) for name, output in self._outputs.items()}
        self._arrays = {name: array for name, array in made.items() if name not in whole}
        self._rows = {
            name: _Rows(each.memory, len(whole[name]), each.is_shared, each.is_seen)
            for name, each in rows.items()
        }
        return results

    def _zeros(self, name: str, shape: tuple[int, ...], inputs: Mapping[str, Any]) -> _Rows:
        """A state of fixed length before the first call.

        Raises:  InputError if its length is known neither from the model nor from the inputs.
        """
        shapes = {each: np.shape(array) for each, array in inputs.items()}
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
        memory = empty(shape, self._inputs[name].dtype)
        memory[...] = 0
        return _Rows(memory, len(memory))

    def _present(self) -> dict[str, base.Array]:
        """The state by the names of inputs, in the shapes of the network."""
        arrays = {}
        for name in self._outputs:
            if name in self._rows:
                rows = self._rows[name]
                state = self._held[name]
                end = rows.count if isinstance(state, WrittenState) else self._end
                order = state.order(rows.memory.ndim)
                arrays[name] = np.transpose(rows.memory[: rows.count][:end], np.argsort(order))
            elif name in self._arrays:
                arrays[name] = self._arrays[name]
                if self._end is not None:
                    axis = self._growing[name][-1]
                    arrays[name] = arrays[name].swapaxes(0, axis)[: self._end].swapaxes(0, axis)
        return arrays

    def _cut(self) -> None:
        """Forget the rows behind the position; memory that others see is left to them."""
        if self._end is not None:
            present = self._present()
            self._arrays = {name: present[name] for name in self._arrays}
            for name, rows in self._rows.items():
                if not isinstance(self._held[name], WrittenState):
                    is_shared = rows.is_shared or rows.is_seen
                    self._rows[name] = _Rows(rows.memory, self._end, is_shared)
            self._written, self._end = self._end, None

    def _hold(self, arrays: Mapping[str, base.Array]) -> None:
        """Let arrays, in the shapes of the network, be the state; nobody else writes to them."""
        self._end = None
        self._arrays = {name: array for name, array in arrays.items() if name not in self._held}
        self._rows = {}
        for name in arrays.keys() & self._held.keys():
            rows = np.transpose(arrays[name], self._held[name].order(arrays[name].ndim))
            memory = empty(rows.shape, self._inputs[name].dtype)
            np.copyto(memory, rows)
            self._rows[name] = _Rows(memory, len(memory))

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
                raise _wrong("position", reason, "give a position that the session has reached")
            for name, axes in self._growing.items():
                if isinstance(self._held.get(name), WrittenState):
                    fits = self.room is None or reached <= self.room
                else:
                    fits = bool(axes) and self._length(name) == reached
                if not fits:
                    reason = f"the state {name} does not grow with it"
                    raise _wrong("position", reason, "fork the session at that position before")
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
            for name, rows in self._rows.items():
                rows.is_shared = True
                other._rows[name] = replace(rows)
            return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which `load` reads; the whole file or nothing.

        Raises:  OutputError if it cannot be written.
        """
        with self._alone():
            counts = {"steps": self._steps, "written": self._written}
            about = {"version": _VERSION, **counts, "pairs": self._about_pairs()}
            content = io.BytesIO()
            with zipfile.ZipFile(content, "w") as archive:
                archive.writestr(_ABOUT, json.dumps(about, indent=1))
                for name, array in self._present().items():
                    member = io.BytesIO()
                    dense = np.ascontiguousarray(array)
                    plain = dense.view(np.uint16) if _is_short(array) else dense
                    np.lib.format.write_array(member, plain, allow_pickle=False)
                    archive.writestr(f"state/{name}.npy", member.getvalue())
        base.write_atomically(path, content.getvalue())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from a state that a session of the same model wrote; any target may have run it.

        Raises:  InputError for a file that is none, is of another version, or of another model.
        """
        with self._alone():
            try:
                with zipfile.ZipFile(Path(path)) as archive:
                    about = json.loads(archive.read(_ABOUT))
                    self._check_about(path, about)
                    members = [name for name in archive.namelist() if name != _ABOUT]
                    arrays = {
                        name.removeprefix("state/").removesuffix(".npy"): np.lib.format.read_array(
                            io.BytesIO(archive.read(name)), allow_pickle=False
                        )
                        for name in members
                    }
                    steps, written = int(about["steps"]), int(about.get("written", 0))
            except FileNotFoundError:
                raise _refusal(f"file {path}", "there is no such file") from None
            except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
                raise _refusal(
                    f"file {path}", f"it holds no state of a session ({error})"
                ) from None
            for name, array in arrays.items():
                spec = self._inputs[name]
                typed = array.view(spec.dtype.numpy) if spec.dtype is base.DType.BF16 else array
                arrays[name] = check_array("state", spec, typed)
            self._hold(arrays)
            self._steps, self._written = steps, written

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

    def _missing(
        self, inputs: Mapping[str, Any], given: Iterable[str] = ()
    ) -> dict[str, base.Array]:
        """What stands for state that no call has made: zeros, of length 0 where calls extend it.

        given   state for which nothing need stand
        """
        held = {*self._arrays, *self._rows, *given}
        missing = [name for name in self._outputs if name not in held]
        if not missing:
            return {}
        values = self._sizes(inputs)
        zeros = {}
        for name in missing:
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

    def _check_about(self, path: str | os.PathLike[str], about: Any) -> None:
        """Raise an InputError for the state of another version or model."""
        where = f"file {path}"
        if about["version"] != _VERSION:
            raise _refusal(where, f"it is of version {about['version']}, not {_VERSION}")
        if about["pairs"] != self._about_pairs():
            theirs = ", ".join(f"{pair[0]}" for pair in about["pairs"])
            raise _refusal(where, f"it is the state of another model: {theirs}")


def state_pairs(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> dict[str, str]:
    """The outputs that become inputs in the next call, as names and types say, by those inputs.

    Names agree without their words of time: present.0.key and past_key_values.0.key, state and
    stateN, cache_in and new_cache.
    """
    stems: dict[tuple[str, ...], list[TensorSpec]] = {}
    for spec in inputs:
        stems.setdefault(_stem(spec.name), []).append(spec)
    pairs = {}
    for made in outputs:
        names = [made.name, *(made.name.removesuffix(end) for end in _NEXT)]
        ends = [spec for spec in inputs if spec.name in names[1:]]
        alike = ends or stems.get(_stem(made.name), [])
        fitting = [spec for spec in alike if _are_alike(spec, made)]
        words = {word for spec in (made, *fitting) for word in _split(spec.name)}
        is_state = ends or words & _STATE_WORDS
        if len(fitting) == 1 and is_state and fitting[0].name not in pairs:
            pairs[fitting[0].name] = made.name
    return pairs


def _split(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower().replace("key_values", "")
    return re.findall(r"[a-z]+|\d+", spaced)


def _stem(name: str) -> tuple[str, ...]:
    """The words of a name that do not say which of two calls it is of."""
    return tuple(word for word in _split(name) if word not in _WORDS_OF_TIME)


def _are_alike(taken: TensorSpec, made: TensorSpec) -> bool:
    """Whether an output may be the next value of an input, as far as numbers say."""
    is_typed = taken.dtype is made.dtype and len(taken.shape) == len(made.shape)
    return is_typed and all(
        a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(taken.shape, made.shape, strict=True)
    )


def _growing_axes(taken: TensorSpec, made: TensorSpec) -> tuple[int, ...]:
    """The axes along which a call makes a state longer: the last one is its length."""
    pairs = enumerate(zip(taken.shape, made.shape, strict=True))
    return tuple(at for at, (extent, longer) in pairs if extent != longer)


def _numbered(pairs: Any, inputs: Mapping[str, TensorSpec]) -> Any:
    """Pairs of which past.%d stands for all inputs past.0, past.1 and so on."""
    if not isinstance(pairs, Mapping):
        return pairs
    result = {}
    for name, made in pairs.items():
        is_pattern = _NUMBER in str(name)
        for number in itertools.count():
            own, its = (str(each).replace(_NUMBER, str(number)) for each in (name, made))
            if not is_pattern or own not in inputs:
                break
            result[own] = its
        if not is_pattern or number == 0:
            result[name] = made
    return result


def _checked_pairs(
    inputs: Mapping[str, TensorSpec], outputs: Mapping[str, TensorSpec], pairs: Any
) -> dict[str, str]:
    """The pairs, if they are of the executable.  Raises: UsageError."""
    listed = f"its inputs are {', '.join(inputs)}, its outputs {', '.join(outputs)}"
    if not pairs:
        reason = f"no output is the state of the next call by its name; {listed}"
        raise _wrong("state", reason, 'name the pairs: state={"an input": "an output"}')
    if not isinstance(pairs, Mapping):
        reason = f"it must be a mapping, not {type(pairs).__name__}; {listed}"
        raise _wrong("state", reason, 'name the pairs: state={"an input": "an output"}')
    for name, made in pairs.items():
        for what, each, specs in (("input", name, inputs), ("output", made, outputs)):
            if each not in specs:
                raise _wrong(
                    "state", f"it has no {what} {each}", base.did_you_mean(each, [*specs], listed)
                )
        if not _are_alike(inputs[name], outputs[made]):
            reason = f"{outputs[made]} cannot become {inputs[name]}"
            raise _wrong("state", reason, "give an output of the same element type and shape")
    return dict(pairs)


def _is_short(array: base.Array) -> bool:
    return array.dtype == base.DType.BF16.numpy


def _wrong(argument: str, reason: str, remedy: str) -> base.UsageError:
    where = f"argument {argument}"
    return base.UsageError(stage="run", where=where, reason=reason, remedy=remedy)


def _refusal(where: str, reason: str) -> base.InputError:
    return base.InputError(
        stage="run",
        where=where,
        reason=reason,
        remedy="give a file that session.save wrote for this model",
    )
