"""The settings of the package: each declared once, here, with its type and its meaning.

A knob's value is, first of these: the innermost `override(...)`, the environment variable
TENSORWRIGHT_<NAME>, the default. Overrides belong to the context (`contextvars`) that made them: a
thread that is started inside one does not see it, so a stage reads its knobs on entry and hands
plain values to its workers.

    with override(threads=1, dump="loop"):
        ...
    THREADS.get()
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, cleandoc, getdoc, signature
from pathlib import Path
from textwrap import indent
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from tensorwright.base.errors import UsageError, unknown_name
from tensorwright.base.machines import ASSUMED, AssumedMachine, available_cores

PREFIX = "TENSORWRIGHT_"
DUMP_STAGES = ("graph", "rules", "layouts", "partition", "schedule", "loop", "source", "asm")
LOG_LEVELS = ("quiet", "warning", "info", "debug")

T = TypeVar("T")
_Given = ParamSpec("_Given")
_Subject = TypeVar("_Subject", contravariant=True)
_Record = TypeVar("_Record", contravariant=True)
_Result = TypeVar("_Result", covariant=True)

_overrides: ContextVar[Mapping[str, Any] | None] = ContextVar("tensorwright_knobs", default=None)


@dataclass(frozen=True, slots=True)
class Knob(Generic[T]):
    """One setting. `parse` raises ValueError, with a text that says what is allowed."""

    name: str
    doc: str
    kind: str
    default: Callable[[], T]
    parse: Callable[[str], T]

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    def get(self) -> T:
        """The value in force here.

        Raises:  UsageError if the environment variable has a value that cannot be read.
        """
        scoped = _overrides.get() or {}
        if self.name in scoped:
            value: T = scoped[self.name]
            return value
        text = os.environ.get(self.variable, "")
        if text == "":
            return self.default()
        return self.read(text, where=f"environment variable {self.variable}")

    def read(self, value: object, where: str = "") -> T:
        """Turn a value, or the text of one, into the knob's type.

        Raises:  UsageError for a value that is not allowed.
        """
        text = str(value)
        if isinstance(value, frozenset | set | tuple | list):
            text = ",".join(sorted(str(part) for part in value))
        try:
            return self.parse(text)
        except ValueError as error:
            raise UsageError(
                stage="knobs",
                where=where or f"knob {self.name}",
                reason=f"{text!r} is not {self.kind}",
                remedy=str(error),
            ) from None


def _integer(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        advice = f"give a whole number, at least {least}"
        try:
            value = int(text)
        except ValueError:
            raise ValueError(advice) from None
        if value < least:
            raise ValueError(advice)
        return value

    return parse


def _boolean(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError("give 1 or 0")
    return words[text.lower()]


def _choice(choices: tuple[str, ...], *, or_none: bool = False) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices and not (or_none and text == ""):
            raise ValueError("give one of " + ", ".join(choices))
        return text

    return parse


def _subset(choices: tuple[str, ...]) -> Callable[[str], frozenset[str]]:
    def parse(text: str) -> frozenset[str]:
        names = frozenset(part.strip() for part in text.split(",") if part.strip())
        if "all" in names:
            return frozenset(choices)
        if not names <= set(choices):
            raise ValueError("give some of " + ",".join(choices) + ", or all")
        return names

    return parse


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _optional_path(text: str) -> Path | None:
    return _path(text) if text and text != "None" else None


def _default_threads() -> int:
    """The cores of an assumed machine; else OMP_NUM_THREADS where it holds a number (its first, for
    a nested list), else the cores here.
    """
    assumed = assumed_machine()
    if assumed is not None:
        return assumed.cores
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else available_cores()


def _default_home() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base:
        return Path(base).absolute() / "tensorwright"
    try:
        return Path.home() / ".cache" / "tensorwright"
    except RuntimeError:  # no home folder is known for this user
        return Path(tempfile.gettempdir()) / "tensorwright"


def _share_of_the_disk() -> int:
    """Megabytes: a sixteenth of the disk on which the home folder is."""
    home = HOME.get()
    there = next(each for each in (home, *home.parents) if each.exists())
    return max(4096, shutil.disk_usage(there).total // 16_000_000)


def _switch(name: str, doc: str, *, is_on: bool) -> Knob[bool]:
    """A knob that is on or off where it is not set."""
    return Knob(name, doc, "a yes or no", lambda: is_on, _boolean)


THREADS = Knob(
    "threads",
    "how many threads a compiled program uses; OMP_NUM_THREADS counts where this is not set",
    "a number of threads",
    _default_threads,
    _integer(1),
)
CORES = Knob(
    "cores",
    "how many cores the calls of a process share; read once, when the first program is loaded",
    "a number of cores",
    available_cores,
    _integer(1),
)
HOME = Knob(
    "home",
    "folder of the caches and of the record store",
    "a folder",
    _default_home,
    _path,
)
RECORDS_FILE = "records.sqlite"
"""The default record store, in that folder."""
DUMP = Knob(
    "dump",
    "which stages print what they make, separated by commas: "
    + ", ".join(DUMP_STAGES)
    + "; or all",
    "a set of stages",
    frozenset[str],
    _subset(DUMP_STAGES),
)
DUMP_DIR: Knob[Path | None] = Knob(
    "dump_dir",
    "folder for the dumps, one numbered file per pass; on the terminal where not set",
    "a folder",
    lambda: None,
    _optional_path,
)
VERIFY = _switch("verify", "check every intermediate program at each stage", is_on=False)
LOG = Knob("log", "how much to say", "a log level", lambda: "warning", _choice(LOG_LEVELS))
ASSUME = Knob(
    "assume",
    "the machine for which all choices are made, whatever this one is: "
    + ", ".join(each.name for each in ASSUMED)
    + "; this one where not set",
    "a machine that can be assumed",
    str,
    _choice(tuple(each.name for each in ASSUMED), or_none=True),
)
TARGET = Knob("target", "what to compile for", "a target", lambda: "native", str)
SEED = Knob("seed", "seed of every random choice", "a seed", int, _integer(0))
KERNEL_CACHE = _switch(
    "kernel_cache",
    "keep compiled kernels, and schedules that were chosen, on disk",
    is_on=True,
)
EXECUTABLE_CACHE = Knob(
    "executable_cache",
    "how many megabytes of compiled networks are kept on disk; 0 keeps none; if it is not set, a "
    "sixteenth of the disk, and at least 4096",
    "a number of megabytes",
    _share_of_the_disk,
    _integer(0),
)
COST_MODEL = _switch(
    "cost_model",
    "keep what a tuning session's cost model has learned, in a file beside the record store",
    is_on=True,
)
DEFAULT_SCHEDULE = Knob(
    "default_schedule",
    "what chooses the schedule of a workload that was not tuned: the pre-trained time model, or "
    "(rule) the heuristic alone",
    "a way to choose",
    lambda: "model",
    _choice(("model", "rule")),
)
TIME_MODEL: Knob[Path | None] = Knob(
    "time_model",
    "file of the pre-trained time model; the one in the package where not set",
    "a file",
    lambda: None,
    _optional_path,
)
WINOGRAD = _switch(
    "winograd",
    "compute convolutions of 3x3 taps by Winograd's algorithm where that is faster; it rounds "
    "more, about 2e-6 of the largest number",
    is_on=True,
)
HALVES_IN_FLOATS = _switch(
    "halves_in_floats",
    "compute networks in f16 and bf16 in f32, and round their outputs alone, not every result",
    is_on=True,
)
DENORMALS = Knob(
    "denormals",
    "what kernels on processors do with denormal numbers, those nearest to 0: flush (they count as "
    "0, because some processors take 100 times as long for them) or keep; read when a program is "
    "loaded",
    "a way to treat them",
    lambda: "flush",
    _choice(("flush", "keep")),
)
C_COMPILER = Knob(
    "c_compiler",
    "the C compiler that builds kernels written in C",
    "a command",
    lambda: "cc",
    str,
)
FAST_MATH = _switch(
    "fast_math",
    "let kernels for graphics processors use their less exact exponentials, sines and roots",
    is_on=False,
)
OPENCL_DEVICE = Knob(
    "opencl_device",
    "which OpenCL device runs kernels: a part of its name, or of its platform's",
    "a name",
    str,
    str,
)
DEVICE_GRAPHS = _switch(
    "device_graphs",
    "let the driver make all launches of a network together, where it can (CUDA graphs)",
    is_on=True,
)

KNOBS: tuple[Knob[Any], ...] = tuple(
    each for each in tuple(globals().values()) if isinstance(each, Knob)
)
"""All knobs above, as declared."""
_BY_NAME: dict[str, Knob[Any]] = {knob.name: knob for knob in KNOBS}


def find_knob(name: str) -> Knob[Any]:
    """The knob of that name.

    Raises:  UsageError for an unknown name, with the nearest known one.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise unknown_name("knobs", f"knob {name}", "no such knob", name, _BY_NAME)


def assumed_machine() -> AssumedMachine | None:
    """The machine that the knob `assume` names; None if choices are made for this one."""
    name = ASSUME.get()
    return next((each for each in ASSUMED if each.name == name), None)


def misspelt_variables() -> dict[str, str]:
    """Environment variables that set nothing, and the knob's variable that each resembles."""
    variables = [knob.variable for knob in KNOBS]
    unknown = [name for name in os.environ if name.startswith(PREFIX) and name not in variables]
    nearest = {name: get_close_matches(name, variables, n=1, cutoff=0.9) for name in unknown}
    return {name: match[0] for name, match in nearest.items() if match}


@contextmanager
def override(**values: object) -> Iterator[None]:
    """Set knobs inside the block: `with override(threads=1): ...`.

    values   by the names of knobs: of the knob's type, or a text as in the environment variable

    Raises:  UsageError for an unknown knob or a bad value, before anything changes.
    """
    scoped = dict(_overrides.get() or {})
    for name, value in values.items():
        scoped[name] = find_knob(name).read(value)
    token = _overrides.set(scoped)
    try:
        yield
    finally:
        _overrides.reset(token)


def option(default: Any, text: str, **facts: Any) -> Any:
    """A field of a record of options that people give by name, in Python and on command lines.

    text    what it does
    facts   of its texts: `metavar`, their name; `least`, `most`, `unit`, of a number; `words`, the
            possible ones; `kind`, Path or float; `spelling`, if it is not the name of the field
    """
    return field(default=default, metadata={"text": text, **facts})


def options_of(record: type[Any]) -> tuple[Field[Any], ...]:
    """The fields of a record that `option` made."""
    return tuple(each for each in fields(record) if "text" in each.metadata)


class TakesOptions(Protocol[_Subject, _Record, _Given, _Result]):
    """A function of something and of options, as a record or as its fields by name."""

    @overload
    def __call__(self, subject: _Subject, how: _Record, /) -> _Result: ...

    @overload
    def __call__(
        self, subject: _Subject, /, *args: _Given.args, **given: _Given.kwargs
    ) -> _Result: ...


def takes_options(
    record: Callable[_Given, _Record], *hidden: str
) -> Callable[
    [Callable[[_Subject, _Record], _Result]], TakesOptions[_Subject, _Record, _Given, _Result]
]:
    """Let a function of something and a record take the fields of the record as keywords, too.

    hidden   fields that the function sets by itself, which its `help` does not show
    The function raises a UsageError for a keyword that is not a field.
    """
    kind: Any = record
    names = signature(record).parameters
    options = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in names.values()]

    def taking(
        function: Callable[[_Subject, _Record], _Result],
    ) -> TakesOptions[_Subject, _Record, _Given, _Result]:
        @wraps(function)
        def called(*args: Any, **given: Any) -> Any:
            for name in given.keys() - taken.parameters:
                where, reason = f"argument {name}", "there is no option of this name"
                raise unknown_name(function.__name__, where, reason, name, names)
            if len(args) == 2 and isinstance(args[1], kind):
                return function(args[0], args[1])
            bound = taken.bind(*args, **given)
            return function(bound.args[0], kind(**bound.kwargs))

        own = signature(function)
        taken = own.replace(parameters=[*own.parameters.values()][:1] + options)
        texts = [f"{each.name:<12}  {each.metadata['text']}" for each in options_of(kind)]
        docs = [cleandoc(each.__doc__) for each in kind.__mro__[-2::-1] if each.__doc__]
        told = indent("\n\n".join(["\n".join(texts), *docs]), "    ")
        called.__doc__ = f"{getdoc(function)}\n\nOptions\n{told}"
        shown = [each for name, each in taken.parameters.items() if name not in hidden]
        vars(called)["__signature__"] = taken.replace(parameters=shown)
        return called

    return taking
