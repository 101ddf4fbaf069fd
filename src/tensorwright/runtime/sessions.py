"""Sessions of calls: an executable with the state that each call hands to the next one.

    session = executable.session()
    session.run({"frame": frame})        past comes from the call before, present goes to the next

State is an input with the output that takes its place in the next call: the cache of a decoder, the
hidden state of a recurrent layer.  A call hands it over without a copy.  Sessions share the code
and the constants of their executable.
"""

from __future__ import annotations

import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tensorwright import base
from tensorwright.runtime.inputs import check_array, check_names
from tensorwright.runtime.plan.call_sizes import solved_sizes
from tensorwright.runtime.plan.plan import TensorSpec
from tensorwright.runtime.plan.plan_sizes import PlanSize

_STATE_WORDS = {"past", "present", "cache", "state", "states", "hidden", "cell", "memory", "kv"}
_WORDS_OF_TIME = {"past", "present", "new", "next", "out", "in", "prev", "previous", "last", "n"}
_NEXT = ("n", "N")  # hn is what h becomes
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

    def run(self, inputs: Mapping[str, Any]) -> dict[str, base.Array]:
        """Compute all outputs."""


class Session:
    """Calls of one executable that hand state to each other. One thread at a time may use it."""

    def __init__(self, executable: Callee, state: Mapping[str, str] | None = None) -> None:
        """The state is zeros, or empty where a call makes it longer.

        state   the output that becomes an input in the next call, by the name of that input; if
                None, names say it: `present.0.key` becomes `past_key_values.0.key`

        Raises:  UsageError for names that are not of the executable, for tensors of other types,
                 and if no state is found.
        """
        self._executable = executable
        self._inputs = {spec.name: spec for spec in executable.inputs}
        outputs = {spec.name: spec for spec in executable.outputs}
        if state is None:
            state = state_pairs(executable.inputs, executable.outputs)
        self._outputs = _checked_pairs(self._inputs, outputs, state)
        self._growing = {
            name: _growing_axes(self._inputs[name], outputs[made])
            for name, made in self._outputs.items()
        }
        self._arrays: dict[str, base.Array] = {}
        self._steps = 0
        self._turn = threading.Lock()

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
        views = {name: array.view() for name, array in self._arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    @property
    def steps(self) -> int:
        """The number of calls since the beginning."""
        return self._steps

    @property
    def position(self) -> int:
        """The length of a state that grows; the number of calls if none does."""
        for name, axes in self._growing.items():
            if axes:
                return self._arrays[name].shape[axes[-1]] if name in self._arrays else 0
        return self._steps

    def run(self, inputs: Mapping[str, Any]) -> dict[str, base.Array]:
        """The outputs of a call, without the state, which goes to the next call.

        inputs   an array for each input that is not state
        Raises:  as `Executable.run`; UsageError while another thread uses the session. The state
                 stays as it was if the call does not end.
        """
        with self._alone():
            check_names("input", self.inputs, inputs)
            arrays = {**inputs, **self._missing(inputs), **self._arrays}
            results = self._executable.run(arrays)
            self._arrays = {name: results.pop(made) for name, made in self._outputs.items()}
            self._steps += 1
            return results

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
            self._arrays = {name: array.copy() for name, array in checked.items()}
            self._steps = 0

    def fork(self) -> Session:
        """Another session that continues from the present state, which both share in memory."""
        with self._alone():
            other = Session(self._executable, self._outputs)
            other._arrays, other._steps = dict(self._arrays), self._steps
            return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which `load` reads; the whole file or nothing.

        Raises:  OutputError if it cannot be written.
        """
        with self._alone():
            about = {"version": _VERSION, "steps": self._steps, "pairs": self._about_pairs()}
            content = io.BytesIO()
            with zipfile.ZipFile(content, "w") as archive:
                archive.writestr(_ABOUT, json.dumps(about, indent=1))
                for name, array in self._arrays.items():
                    member = io.BytesIO()
                    plain = array.view(np.uint16) if _is_short(array) else array
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
                    steps = int(about["steps"])
            except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
                raise _refusal(
                    f"file {path}", f"it holds no state of a session ({error})"
                ) from None
            for name, array in arrays.items():
                spec = self._inputs[name]
                typed = array.view(spec.dtype.numpy) if spec.dtype is base.DType.BF16 else array
                arrays[name] = check_array("state", spec, typed)
            self._arrays, self._steps = arrays, steps

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

    def _missing(self, inputs: Mapping[str, Any]) -> dict[str, base.Array]:
        """What stands for state that no call has made: zeros, of length 0 where calls extend it."""
        missing = [name for name in self._outputs if name not in self._arrays]
        if not missing:
            return {}
        shapes = {name: np.shape(array) for name, array in inputs.items()}
        usual = {size.name: max(1, size.least) for size in self._executable.sizes}
        lengths = dict.fromkeys((n for name in missing for n in self._lengths_of(name)), 0)
        values = usual | lengths | solved_sizes(self._executable.inputs, shapes)
        zeros = {}
        for name in missing:
            spec = self._inputs[name]
            extents = [base.amount_at(extent, values) for extent in spec.shape]
            zeros[name] = np.zeros(extents, spec.dtype.numpy)
        return zeros

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


def _checked_pairs(
    inputs: Mapping[str, TensorSpec], outputs: Mapping[str, TensorSpec], pairs: Any
) -> dict[str, str]:
    """The pairs, if they are of the executable.  Raises: UsageError."""
    listed = f"its inputs are {', '.join(inputs)}, its outputs {', '.join(outputs)}"
    if not pairs:
        reason = f"no output is the state of the next call by its name; {listed}"
        raise _wrong(reason, 'name the pairs: state={"an input": "an output"}')
    if not isinstance(pairs, Mapping):
        reason = f"it must be a mapping, not {type(pairs).__name__}; {listed}"
        raise _wrong(reason, 'name the pairs: state={"an input": "an output"}')
    for name, made in pairs.items():
        for what, each, specs in (("input", name, inputs), ("output", made, outputs)):
            if each not in specs:
                raise _wrong(f"it has no {what} {each}", base.did_you_mean(each, [*specs], listed))
        if not _are_alike(inputs[name], outputs[made]):
            reason = f"{outputs[made]} cannot become {inputs[name]}"
            raise _wrong(reason, "give an output of the same element type and shape")
    return dict(pairs)


def _is_short(array: base.Array) -> bool:
    return array.dtype == base.DType.BF16.numpy


def _wrong(reason: str, remedy: str) -> base.UsageError:
    return base.UsageError(stage="run", where="argument state", reason=reason, remedy=remedy)


def _refusal(where: str, reason: str) -> base.InputError:
    return base.InputError(
        stage="run",
        where=where,
        reason=reason,
        remedy="give a file that session.save wrote for this model",
    )
