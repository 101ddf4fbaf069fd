"""What ONNX Runtime is told about how it computes, and what that means here.

What would change answers, leave a file or run foreign code is done or refused; everything else is
kept, can be read again, and has no effect.

The errors of a session: kinds of this package under the names of ONNX Runtime.

    Fail               a call that its RunOptions stopped, and any other UserError; also the kinds
                       that are never raised here
      EPFail, EngineError, ModelLoaded, NoModel
    InvalidArgument    an InputError and UsageError
      MissingInput     a ValueError, too: what ONNX Runtime raises where an input is not given
      BindingError     a RuntimeError, too: what it raises of a binding
    InvalidProtobuf    a ModelError: a file that is not a model
    NoSuchFile         a ModelError
    InvalidGraph       a ModelError: a model that is wrong
    NotImplemented     an UnsupportedError
    RuntimeException   a MachineError: no memory, or instructions that are not there

So a program may catch both its own names and those of tensorwright. An InternalError stays one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn

from tensorwright import base


class Fail(base.UserError):
    """A call that its RunOptions stopped, or an error that no other name here is for."""


class EPFail(Fail):
    """Never raised here: there are no execution providers beside the processor."""


class EngineError(Fail):
    """Never raised here."""


class ModelLoaded(Fail):
    """Never raised here: a session has one model from its beginning."""


class NoModel(Fail):
    """Never raised here: no session is without a model."""


class InvalidArgument(base.InputError, base.UsageError):
    """An input that does not fit, the name of no output, an option that is refused."""


class MissingInput(InvalidArgument, ValueError):
    """An input that is not given."""


class BindingError(InvalidArgument, RuntimeError):
    """A binding that does not fit the model, or lacks something."""


class InvalidProtobuf(base.ModelError):
    """A file that is not a model, or is damaged."""


class NoSuchFile(base.ModelError):
    """A path without a file."""


class InvalidGraph(base.ModelError):
    """A model that is wrong."""


class NotImplemented(base.UnsupportedError):
    """An operator, type or attribute that is not supported."""


class RuntimeException(base.MachineError):
    """Something that this machine does not have."""


NAMES_HERE: tuple[tuple[type[base.UserError], type[base.UserError]], ...] = (
    (base.ModelError, InvalidGraph),
    (base.UnsupportedError, NotImplemented),
    (base.UsageError, InvalidArgument),
    (base.InputError, InvalidArgument),
    (base.MachineError, RuntimeException),
    (base.UserError, Fail),
)
"""The first that an error is of says under which name it is raised here."""


@contextmanager
def loading(model: Any) -> Iterator[None]:
    """Raise the errors of compiling or loading a model under their names here."""
    try:
        yield
    except base.ModelError as error:
        if isinstance(model, str | os.PathLike) and not Path(model).exists():
            raise _as(NoSuchFile, error) from error
        is_of_file = error.where in ("model bytes", "the bytes") or error.where.startswith("file ")
        raise _as(InvalidProtobuf if is_of_file else InvalidGraph, error) from error
    except base.UserError as error:
        if isinstance(error, tuple(theirs for _, theirs in NAMES_HERE)):
            raise
        kind = next(theirs for ours, theirs in NAMES_HERE if isinstance(error, ours))
        raise _as(kind, error) from error


@contextmanager
def calling(kind: type[InvalidArgument] = InvalidArgument) -> Iterator[None]:
    """Raise the errors of a call under their names here.

    kind   of those about its inputs and outputs
    """
    with loading(None):
        try:
            yield
        except base.InputError as error:
            raise error if isinstance(error, InvalidArgument) else _as(kind, error) from error


def refusal(where: str, reason: str, remedy: str) -> InvalidArgument:
    """An error of a session."""
    return InvalidArgument(stage="session", where=where, reason=reason, remedy=remedy)


def _as(kind: type[base.UserError], error: base.UserError) -> base.UserError:
    """The error under another name, which has all its fields or fewer."""
    kept = {name: value for name, value in error.fields if name in kind.field_names}
    return kind(**kept)


class GraphOptimizationLevel(IntEnum):
    """What ONNX Runtime does with a graph; without effect here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """How ONNX Runtime runs nodes; without effect here."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """In which order ONNX Runtime runs nodes; without effect here."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass(slots=True)
class SessionOptions:
    """Options of a session.

    intra_op_num_threads   the number of threads of a call, 0 that of the knob `threads`
    enable_profiling, optimized_model_filepath    must be left as they are
    The others have no effect.
    """

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: Any = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: Any = ExecutionMode.ORT_SEQUENTIAL
    execution_order: Any = ExecutionOrder.DEFAULT
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    profile_file_prefix: str = "onnxruntime_profile_"
    optimized_model_filepath: str = ""
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    _sizes: dict[str, int] = field(default_factory=dict)
    _entries: dict[str, str] = field(default_factory=dict)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry, which has no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was kept.  Raises: RuntimeError."""
        return _entry(self._entries, key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Compile for one value of an open dimension."""
        self._sizes[name] = size

    @property
    def sizes(self) -> dict[str, int] | None:
        """The values of open dimensions, for `compile`."""
        return self._sizes or None

    def add_free_dimension_override_by_denotation(self, *_: Any) -> NoReturn:
        """Raises:  InvalidArgument."""
        raise _unsupported(
            "add_free_dimension_override_by_denotation", "add_free_dimension_override_by_name"
        )

    def add_initializer(self, *_: Any) -> NoReturn:
        """Raises:  InvalidArgument."""
        raise _unsupported("add_initializer", "change the weights in the model")

    def add_external_initializers(self, *_: Any) -> NoReturn:
        """Raises:  InvalidArgument."""
        raise _unsupported("add_external_initializers", "change the weights in the model")

    def register_custom_ops_library(self, *_: Any) -> NoReturn:
        """Raises:  InvalidArgument."""
        raise _unsupported(
            "register_custom_ops_library", "write the operator as a tensor expression"
        )

    def check(self) -> None:
        """Raises:  InvalidArgument for what a program would wait for in vain."""
        if self.enable_profiling:
            raise _unsupported("enable_profiling", "tensorwright profile MODEL --trace FILE")
        if self.optimized_model_filepath:
            raise _unsupported("optimized_model_filepath", "tensorwright rewrite MODEL -o FILE")


class RunOptions:
    """Options of a call.

    terminate    stops the calls that have these options, before their next step, and further ones
    The others have no effect.
    """

    __slots__ = (
        "_calls",
        "_entries",
        "_is_terminated",
        "_lock",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "only_execute_path_to_fetches",
        "training_mode",
    )

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._entries: dict[str, str] = {}
        self._calls: set[Future[Any]] = set()
        self._is_terminated = False
        self._lock = threading.Lock()

    @property
    def terminate(self) -> bool:
        """Whether calls stop."""
        return self._is_terminated

    @terminate.setter
    def terminate(self, value: bool) -> None:
        with self._lock:
            self._is_terminated = bool(value)
            if value:
                for call in self._calls:
                    call.cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry, which has no effect."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was kept.  Raises: RuntimeError."""
        return _entry(self._entries, key)

    def add_active_adapter(self, *_: Any) -> NoReturn:
        """Raises:  InvalidArgument."""
        raise _unsupported("add_active_adapter", "add the adapter to the model's weights")

    def check(self) -> None:
        """Raises:  Fail where `terminate` is set."""
        if self._is_terminated:
            raise Fail(
                stage="session",
                where="a call",
                reason="its RunOptions have stopped it",
                remedy="set terminate to False for further calls",
            )

    @contextmanager
    def watching(self, call: Future[Any]) -> Iterator[None]:
        """Stop a call that runs in the background when `terminate` is set.

        Raises:  Fail where it was.
        """
        with self._lock:
            self._calls.add(call)
            if self._is_terminated:
                call.cancel()
        try:
            yield
        except CancelledError:
            self.check()
            raise
        finally:
            with self._lock:
                self._calls.discard(call)


def _entry(entries: dict[str, str], key: str) -> str:
    try:
        return entries[key]
    except KeyError:
        raise RuntimeError(f"there is no entry {key}") from None


def _unsupported(option: str, remedy: str) -> InvalidArgument:
    reason = "it is not supported, and without it a program would do something else"
    return refusal(f"option {option}", reason, remedy)
