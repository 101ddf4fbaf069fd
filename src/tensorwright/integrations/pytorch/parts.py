"""A part of a graph of PyTorch that one executable computes.

Parameters stay inputs.  Their values are constants of an executable, packed as its kernels read
them, and it is good for these values only: a call compares where each parameter lies and how often
it was written (`data_ptr`, `_version`).  Other values get another executable, of the same kernels;
the last few are kept, with the storages that they were made of, so that no address is used again.
A parameter that changes again and again becomes an input as others.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

import torch

import tensorwright
from tensorwright import compiling, pipeline
from tensorwright.base import UsageError, did_you_mean
from tensorwright.compile_options import CompileArguments
from tensorwright.graph.imports.aten import ExportedGraph, load_exported
from tensorwright.integrations.pytorch.fx_record import array_of, as_array, as_tensor
from tensorwright.runtime import Executable

LOG = logging.getLogger("tensorwright.torch")
"""It names what PyTorch runs, and what has no effect."""
_TUNED_MINUTES = 5.0
_MODES = ("default", "max-autotune", "max-autotune-no-cudagraphs", "reduce-overhead")


@dataclass(frozen=True, slots=True)
class Options:
    """What `options` of torch.compile may hold.

    minutes    search so long for fast schedules, for each graph; 0 takes what is on record
    freeze     parameters never change, and no other module runs the same code: nothing is compared
    strict     refuse what PyTorch would have to run, as fullgraph=True does
    target, threads, records   as of `tensorwright.compile`
    """

    minutes: float = 0.0
    freeze: bool = False
    strict: bool = False
    target: str | None = None
    threads: int | None = None
    records: Any = None

    @classmethod
    def read(cls, mode: str | None, options: Mapping[str, Any] | None) -> Options:
        """The options of a call of torch.compile.

        Raises:  UsageError for another mode or name, and for a value of another kind.
        """
        if mode is not None and mode not in _MODES:
            remedy = did_you_mean(mode, _MODES, "one of " + ", ".join(_MODES))
            raise usage(f"mode {mode!r}", "there is no such mode", remedy)
        if mode == "reduce-overhead":
            LOG.warning("mode %r changes nothing: it is about graphs of CUDA", mode)
        given = dict(options or {})
        for name, value in given.items():
            if name not in cls.__dataclass_fields__:
                fields = cls.__dataclass_fields__
                remedy = did_you_mean(name, fields, "one of " + ", ".join(fields))
                raise usage(f"option {name!r}", "there is no such option", remedy)
            _check_value(name, value)
        if mode is not None and mode.startswith("max-autotune"):
            given.setdefault("minutes", _TUNED_MINUTES)
        return cls(**given)

    def compile(self, record: ExportedGraph, *, is_first: bool) -> Executable:
        """The executable of a record.

        The first one of a graph is kept for later processes; those for parameters that changed
        since are of this process alone.
        """
        more = {"target": self.target, "threads": self.threads, "records": self.records}
        graph = load_exported(record)
        if self.minutes:
            return tensorwright.optimize(graph, minutes=self.minutes, **more)
        compile_graph = compiling.compile if is_first else pipeline.compile
        return compile_graph(graph, CompileArguments(**more))


def usage(where: str, reason: str, remedy: str) -> UsageError:
    """The error of a wrong use of torch.compile."""
    return UsageError(stage="torch.compile", where=where, reason=reason, remedy=remedy)


def _check_value(name: str, value: object) -> None:
    """Refuse a value of an option that is of another kind."""
    match name, value:
        case "minutes", bool():
            wanted = "a number of minutes"
        case "minutes", int() | float() if 0 <= value < float("inf"):
            return
        case "minutes", _:
            wanted = "a number of minutes"
        case "freeze" | "strict", bool():
            return
        case "freeze" | "strict", _:
            wanted = "True or False"
        case _:
            return  # `tensorwright.compile` checks the others
    raise usage(f"option {name!r}", f"{value!r} is not {wanted}", f"give {wanted}")


_MOST_KEPT = 4  # executables of a part, for as many modules or shapes
_MOST_CHANGES = 3  # of one parameter, before it becomes an input

_UNCOUNTED = count(1 << 62)
_version_of = attrgetter("_version")

State: TypeAlias = list[int]


class Compile(Protocol):
    """What compiles a record."""

    def __call__(self, record: ExportedGraph, *, is_first: bool) -> Executable:
        """The executable; `is_first` unless only the parameters changed since."""


@dataclass(frozen=True, slots=True)
class Ready:
    """An executable, and for which parameters it is good.

    held    which arguments of a call are parameters      given   which are inputs
    owners  keep the memory of the parameters, so that nothing else gets their addresses
    """

    state: State
    executable: Executable
    held: tuple[int, ...]
    given: tuple[int, ...]
    owners: tuple[torch.Tensor, ...]


class Part:
    """Calls an executable with tensors. Safe to call from several threads."""

    def __init__(
        self,
        record: ExportedGraph,
        held: Sequence[str],
        compile_record: Compile,
        example: Sequence[Any],
        *,
        is_frozen: bool = False,
    ) -> None:
        """Compile for the parameters of an example.

        record   its inputs in the order of a call; parameters have no value in it
        held     the names of its parameters
        example  the arguments of the first call
        is_frozen  whether parameters never change: then nothing is compared
        """
        self._record = record
        self._compile = compile_record
        self._frozen = is_frozen
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, ...], Ready] = OrderedDict()
        self._changes: dict[int, int] = {}
        names = [each.name for each in record.inputs]
        self._last = self._made(tuple(map(names.index, held)), example)

    @property
    def executable(self) -> Executable:
        """The executable of the last call."""
        return self._last.executable

    def __call__(self, *arguments: Any) -> tuple[torch.Tensor, ...]:
        """The outputs of the part, in the order of the record."""
        last = self._last
        if not self._frozen and last.state != state_of([arguments[at] for at in last.held]):
            last = self._ready(arguments)
        results = last.executable(*[as_array(arguments[at]) for at in last.given])
        if isinstance(results, tuple):
            return tuple([as_tensor(each) for each in results])
        return (as_tensor(results),)

    def _ready(self, arguments: Sequence[Any]) -> Ready:
        """The executable for the parameters of a call."""
        with self._lock:
            held = self._last.held
            state = tuple(state_of([arguments[at] for at in held]))
            ready = self._kept.get(state)
            if ready is None:
                ready = self._made(self._steady(arguments), arguments)
            else:
                self._kept.move_to_end(state)
            self._last = ready
            return ready

    def _steady(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The parameters without those that are written into again and again."""
        before, held = self._last.state, self._last.held
        now = state_of([arguments[at] for at in held])
        for number, at in enumerate(held):
            written = len(held) + number
            if before[number] == now[number] and before[written] != now[written]:
                self._changes[at] = self._changes.get(at, 0) + 1
        steady = tuple(at for at in held if self._changes.get(at, 0) < _MOST_CHANGES)
        if steady != held:
            self._kept.clear()
        return steady

    def _made(self, held: tuple[int, ...], arguments: Sequence[Any]) -> Ready:
        """Compile for the parameters of a call, and keep the executable."""
        inputs = list(self._record.inputs)
        for at in held:
            name = inputs[at].name
            inputs[at] = replace(inputs[at], constant=array_of(arguments[at], name), owner=name)
        record = replace(self._record, inputs=tuple(inputs))
        executable = self._compile(record, is_first=not self._kept)
        tensors = [arguments[at] for at in held]
        given = tuple(at for at, each in enumerate(inputs) if each.is_given)
        owners = tuple(each.detach() for each in tensors)
        ready = Ready(state_of(tensors), executable, held, given, owners)
        self._kept[tuple(ready.state)] = ready
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return ready


def state_of(tensors: Sequence[torch.Tensor]) -> State:
    """Where tensors lie, and how often each was written: never the same for what does not count."""
    places = list(map(torch.Tensor.data_ptr, tensors))
    try:
        return places + list(map(_version_of, tensors))
    except RuntimeError:
        return places + [
            next(_UNCOUNTED) if each.is_inference() else each._version for each in tensors
        ]


def can_hold(tensor: Any) -> bool:
    """Whether a parameter's changes can be seen: tensors of inference mode do not count them."""
    return isinstance(tensor, torch.Tensor) and not tensor.is_inference()


class ShapedPart:
    """A part that no executable computes for all sizes: one for each shape, as many as are kept."""

    def __init__(self, make: Callable[[Sequence[Any]], Part]) -> None:
        """`make` compiles for the shapes of the arguments of a call."""
        self._make = make
        self._parts: OrderedDict[tuple[Any, ...], Part] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> tuple[torch.Tensor, ...]:
        """The outputs of the part."""
        key = tuple(
            tuple(each.shape) if isinstance(each, torch.Tensor) else each for each in arguments
        )
        with self._lock:
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = self._make(arguments)
                while len(self._parts) > 2 * _MOST_KEPT:
                    self._parts.popitem(last=False)
            else:
                self._parts.move_to_end(key)
        return part(*arguments)
