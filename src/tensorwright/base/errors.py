"""Every error that the package raises on purpose.

    TensorwrightError
      UserError                  the caller can mend it; the command line shows no traceback
        UsageError        2      a bad knob, a bad argument value, an unknown name
        ModelError        3      a model file unreadable, truncated, not ONNX, or an invalid graph
        UnsupportedError  4      an operator, dtype or attribute that is not supported
        InputError        5      a wrong input name, shape or dtype
        ScheduleError     6      an illegal schedule primitive; shows the program, the place marked
        RecordError       7      a record store that is corrupt, foreign or locked
        OutputError       8      an output that cannot be written, a full disk
        MachineError      9      a library, extra or target that this machine does not have
        ExpressionError  12      a tensor expression that means nothing; it is a TypeError, too
      InternalError      70      a fault of ours; please report it

The number is the exit code of the command line. Errors carry fields, compare by them and survive
pickling; the text is rendered from the fields.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self

REPORT = "report it, with the model or program"
"""The remedy for a fault of ours."""
_MOST_LONGER = 3  # names that begin with a given one which are shown


class Advice(str):
    """A remedy that reads differently in Python, which is the text, and on the command line.

    command   options and commands instead of calls
    """

    command: str

    def __new__(cls, python: str, command: str) -> Self:
        """Both texts, the one for Python first."""
        advice = super().__new__(cls, python)
        advice.command = command
        return advice

    def __reduce__(self) -> tuple[type[Advice], tuple[str, str]]:
        return Advice, (str(self), self.command)


def sizes_advice(sizes: Mapping[str, object], before: str = "", after: str = "") -> Advice:
    """Advice to give sizes: `sizes={"n": "3.."}` in Python, `--sizes "n=3.."` as an option.

    before, after   words around it
    """
    python = ", ".join(
        f'"{name}": {value}' if isinstance(value, int) else f'"{name}": "{value}"'
        for name, value in sizes.items()
    )
    option = ",".join(f"{name}={value}" for name, value in sizes.items())
    return Advice(f"{before}sizes={{{python}}}{after}", f'{before}--sizes "{option}"{after}')


class TensorwrightError(Exception):
    """Base of all our errors.

    stage   which part of the pipeline speaks: "import", "schedule", "codegen", ...
    where   the position, for a person: "file x.onnx", "node conv_3", "knob threads"
    reason  what is wrong there
    remedy  what the reader can do about it; "" where nothing is known; `Advice` where the command
            line and Python differ
    """

    exit_code: ClassVar[int] = 70
    field_names: ClassVar[tuple[str, ...]] = ("stage", "where", "reason", "remedy")

    def __init__(self, *, stage: str, where: str, reason: str, remedy: str = "") -> None:
        super().__init__()
        self.stage = stage
        self.where = where
        self.reason = reason
        self.remedy = remedy

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The fields with their values, in declaration order."""
        return tuple((name, getattr(self, name)) for name in self.field_names)

    def at(self, where: str, stage: str = "") -> Self:
        """The same error at the position that the caller knows."""
        return type(self)(**{**dict(self.fields), "where": where, "stage": stage or self.stage})

    @property
    def section(self) -> str:
        """The kind under which the page of errors explains it: the one that gives the exit code."""
        return next(kind.__name__ for kind in type(self).__mro__ if "exit_code" in vars(kind))

    def for_command(self) -> Self:
        """The same error for the reader of a command line, whose remedies are options."""
        if not isinstance(self.remedy, Advice):
            return self
        return self.with_remedy(self.remedy.command)

    def with_remedy(self, remedy: str) -> Self:
        """The same error with another remedy."""
        return type(self)(**{**dict(self.fields), "remedy": remedy})

    def message(self) -> str:
        """The text without the kind of error in front."""
        text = f"{self.where}: {self.reason}"
        remedy = self.remedy.replace("\n", "\n  ")  # what is to be copied stands below "try:"
        return f"{text}\n  try: {remedy}" if remedy else text

    def __str__(self) -> str:
        return self.message()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.fields)
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorwrightError) or type(self) is not type(other):
            return NotImplemented
        return self.fields == other.fields

    def __hash__(self) -> int:
        return hash((type(self), self.fields))

    def __reduce__(self) -> tuple[Callable[..., TensorwrightError], tuple[Any, ...]]:
        return _rebuild, (type(self), dict(self.fields))


def _rebuild(kind: type[TensorwrightError], fields: dict[str, str]) -> TensorwrightError:
    return kind(**fields)


class UserError(TensorwrightError):
    """The caller can mend it: the message names the place and the remedy."""

    exit_code = 1


class UsageError(UserError):
    """An unknown option, command, target or network; a setting that cannot be read."""

    exit_code = 2


class ModelError(UserError):
    """A model file that is missing, truncated or not ONNX; an invalid graph; an open shape."""

    exit_code = 3


class UnsupportedError(UserError):
    """An operator, element type, attribute or named size that is not supported.

    operator   its name; "" where the error concerns no single operator
    """

    exit_code = 4
    field_names = (*UserError.field_names, "operator")

    def __init__(
        self, *, stage: str, where: str, reason: str, remedy: str = "", operator: str = ""
    ) -> None:
        super().__init__(stage=stage, where=where, reason=reason, remedy=remedy)
        self.operator = operator

    def of(self, operator: str) -> Self:
        """The same error with an operator's name, unless it has one already."""
        return type(self)(**{**dict(self.fields), "operator": self.operator or operator})

    def message(self) -> str:
        """Name the operator first."""
        text = super().message()
        return f"operator {self.operator}: {text}" if self.operator else text


class InputError(UserError):
    """An input with a wrong name, shape or element type; a file that holds no array."""

    exit_code = 5


class ScheduleError(UserError):
    """An illegal step of a schedule.

    step     the primitive as it prints, "vectorize(k)"
    program  the loop nest, with the place marked by "<- here"; "" where there is none
    """

    exit_code = 6
    field_names = (*UserError.field_names, "step", "program")

    def __init__(
        self,
        *,
        stage: str = "schedule",
        where: str,
        reason: str,
        remedy: str = "",
        step: str,
        program: str | Callable[[], str] = "",
    ) -> None:
        super().__init__(stage=stage, where=where, reason=reason, remedy=remedy)
        self.step = step
        self._program = program

    @property
    def program(self) -> str:
        """The text; a function gives it only when it is asked for: most refusals are not shown."""
        if not isinstance(self._program, str):
            self._program = self._program()
        return self._program

    def message(self) -> str:
        """The directive first, then the program with the place marked, then why and what to try."""
        lines = [f"{self.step}: {self.where}"]
        lines += [f"  {line}" for line in self.program.splitlines()]
        advice = f"      try: {self.remedy}" if self.remedy else ""
        lines.append(f"  why: {self.reason}{advice}")
        return "\n".join(lines)


class RecordError(UserError):
    """A record store that is damaged, foreign or locked."""

    exit_code = 7


class OutputError(UserError):
    """An output that cannot be written: no permission, no such folder, a full disk."""

    exit_code = 8


class MachineError(UserError):
    """What this machine lacks: an extra, the target's instructions, memory."""

    exit_code = 9


class ExpressionError(UserError, TypeError):
    """A tensor expression that means nothing, or would read outside its operands.

    It is a TypeError, too, because Python raises that where operands do not fit.
    """

    exit_code = 12


class InternalError(TensorwrightError):
    """A fault of tensorwright itself; a remedy may go round it."""

    exit_code = 70

    def __init__(self, *, stage: str, where: str, reason: str, remedy: str = REPORT) -> None:
        super().__init__(stage=stage, where=where, reason=reason, remedy=remedy)


ERROR_KINDS: tuple[type[TensorwrightError], ...] = (
    UsageError,
    ModelError,
    UnsupportedError,
    InputError,
    ScheduleError,
    RecordError,
    OutputError,
    MachineError,
    ExpressionError,
    InternalError,
)
"""The kinds of the tree above. Each has its own exit code."""


@contextmanager
def naming_faults(stage: str, part: str, remedy: str = REPORT) -> Iterator[None]:
    """Turn an unforeseen exception inside the block into an InternalError with its kind and line.

    The block is a part without which its caller can go on. Errors of this module, MemoryError and
    interrupts pass unchanged.
    """
    try:
        yield
    except (TensorwrightError, MemoryError):
        raise
    except Exception as error:
        where, reason = f"{part} ({line_of(error)})", f"{type(error).__name__}: {error}"
        raise InternalError(stage=stage, where=where, reason=reason, remedy=remedy) from error


def line_of(error: BaseException) -> str:
    """The file and the line in which an exception was raised."""
    places = traceback.extract_tb(error.__traceback__)
    return f"{Path(places[-1].filename).name}, line {places[-1].lineno}" if places else "no line"


def unknown_name(
    stage: str, where: str, reason: str, name: str, names: Iterable[str]
) -> UsageError:
    """The error for a name that is none of some: the remedy is the nearest of them, else all."""
    listed = tuple(names)
    remedy = did_you_mean(name, listed, "one of " + ", ".join(listed))
    return UsageError(stage=stage, where=where, reason=reason, remedy=remedy)


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "", most: int = 1) -> str:
    """The remedy for an unknown name: the nearest names, or some that it begins, or `otherwise`."""
    listed = tuple(dict.fromkeys(names))
    near = get_close_matches(name, listed, n=most)
    if not near and name:
        near = [each for each in listed if each.startswith(name)][:_MOST_LONGER]
    return f"did you mean {' or '.join(near)}?" if near else otherwise
