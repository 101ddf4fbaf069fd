"""The errors of a session: kinds of this package under the names of ONNX Runtime.

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tensorwright.base import (
    InputError,
    MachineError,
    ModelError,
    UnsupportedError,
    UsageError,
    UserError,
)


class Fail(UserError):
    """A call that its RunOptions stopped, or an error that no other name here is for."""


class EPFail(Fail):
    """Never raised here: there are no execution providers beside the processor."""


class EngineError(Fail):
    """Never raised here."""


class ModelLoaded(Fail):
    """Never raised here: a session has one model from its beginning."""


class NoModel(Fail):
    """Never raised here: no session is without a model."""


class InvalidArgument(InputError, UsageError):
    """An input that does not fit, the name of no output, an option that is refused."""


class MissingInput(InvalidArgument, ValueError):
    """An input that is not given."""


class BindingError(InvalidArgument, RuntimeError):
    """A binding that does not fit the model, or lacks something."""


class InvalidProtobuf(ModelError):
    """A file that is not a model, or is damaged."""


class NoSuchFile(ModelError):
    """A path without a file."""


class InvalidGraph(ModelError):
    """A model that is wrong."""


class NotImplemented(UnsupportedError):
    """An operator, type or attribute that is not supported."""


class RuntimeException(MachineError):
    """Something that this machine does not have."""


NAMES_HERE: tuple[tuple[type[UserError], type[UserError]], ...] = (
    (ModelError, InvalidGraph),
    (UnsupportedError, NotImplemented),
    (UsageError, InvalidArgument),
    (InputError, InvalidArgument),
    (MachineError, RuntimeException),
    (UserError, Fail),
)
"""The first that an error is of says under which name it is raised here."""


@contextmanager
def loading(model: Any) -> Iterator[None]:
    """Raise the errors of compiling or loading a model under their names here."""
    try:
        yield
    except ModelError as error:
        if isinstance(model, str | os.PathLike) and not Path(model).exists():
            raise _as(NoSuchFile, error) from error
        is_of_file = error.where in ("model bytes", "the bytes") or error.where.startswith("file ")
        raise _as(InvalidProtobuf if is_of_file else InvalidGraph, error) from error
    except UserError as error:
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
        except InputError as error:
            raise error if isinstance(error, InvalidArgument) else _as(kind, error) from error


def refusal(where: str, reason: str, remedy: str) -> InvalidArgument:
    """An error of a session."""
    return InvalidArgument(stage="session", where=where, reason=reason, remedy=remedy)


def _as(kind: type[UserError], error: UserError) -> UserError:
    """The error under another name, which has all its fields or fewer."""
    kept = {name: value for name, value in error.fields if name in kind.field_names}
    return kind(**kept)
