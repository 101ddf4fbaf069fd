"""The kind of an argument: an executable, a model, a network of a suite, a tensor expression.

This module does not import onnx or read models, so that a command that only runs an executable
starts fast.
"""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path

from tensorwright.base import EXECUTABLE, SUITE_LOADERS, UsageError, kind_of_file


class ProgramKind(StrEnum):
    """The kinds of programs, with their names in messages."""

    EXECUTABLE = "an executable of tensorwright"
    EXPRESSION = "a tensor expression"
    MODEL = "a model"


def kind_of(text: str) -> ProgramKind:
    """The kind of an argument: the content of a file decides, not its suffix."""
    if kind_of_file(text) is EXECUTABLE:
        return ProgramKind.EXECUTABLE
    return ProgramKind.EXPRESSION if is_reference(text) else ProgramKind.MODEL


def is_reference(text: str) -> bool:
    """Whether an argument is MODULE:NAME, and not a file or a network of a suite."""
    kind, name = split(text)
    module, colon, attribute = name.rpartition(":")
    is_drive = len(module) == 1  # as in C:\\model.onnx
    return (
        not kind and bool(colon and module and attribute) and not (is_drive or Path(text).exists())
    )


def split(model: str) -> tuple[str, str]:
    """Split a MODEL argument into suite and name; the suite is "" for a file."""
    kind, _, name = model.partition(":")
    if kind in SUITE_LOADERS and not Path(model).exists():
        return kind, name
    return "", model


def refuse_other_than_model(text: str) -> None:
    """Refuse an argument that is not a model, for a command that needs a model.

    Raises:  UsageError for an executable, a tensor expression or a Python file. Its remedy says
             what the user can do with the argument.
    """
    name = shlex.quote(text)
    kind = kind_of(text)
    if kind is ProgramKind.EXECUTABLE:
        raise _refusal(
            f"file {text}",
            f"it is {kind}, compiled already; a model is needed",
            "give the model from which it was compiled, or use it as it is:\n"
            f"  tensorwright run {name} --input random\n"
            f"  tensorwright profile {name}",
        )
    if kind is ProgramKind.EXPRESSION:
        raise _refusal(
            text,
            f"it names {kind}; a model is needed, a network of operators",
            "give a model, or use the expression with another command:\n"
            f"  tensorwright tune {name}\n"
            f"  tensorwright run {name} --input random",
        )
    if Path(text).suffix == ".py" and Path(text).is_file():
        raise _refusal(
            f"file {text}",
            "it is a Python file, not a model",
            f"name a tensor expression in it:\n  {text}:NAME",
        )


def _refusal(where: str, reason: str, remedy: str) -> UsageError:
    return UsageError(stage="cli", where=where, reason=reason, remedy=remedy)
