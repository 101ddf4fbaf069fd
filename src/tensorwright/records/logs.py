"""The logs of other tuners.

Read the parts of log lines; errors name the file and the line.

Ansor's log lines: each has one measured program, as the steps of Ansor's tuner.

    {"i": [[WORKLOAD, TARGET, HARDWARE, TARGET_HOST, LAYOUT_REWRITE, INPUTS], [[], STEPS]],
     "r": [[COSTS_S...], ERROR_NO, ALL_COST_S, TIMESTAMP], "v": "v0.6"}

The workload is JSON text: the name of a function and its arguments, or a digest and shapes.  The
steps name stages of a program that the line does not have, so they are listed and not replayed.
Source:  Zheng et al., "Ansor", OSDI 2020, and its program, TVM.

AutoTVM's log lines, version 0.2: each has one measured configuration of a template.

    {"input": [TARGET, TASK, ARGUMENTS, KEYWORDS],
     "config": {"index": 263, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 3]], ...]},
     "result": [[COSTS_S...], ERROR_NO, ALL_COST_S, TIMESTAMP],
     "version": 0.2, "tvm_version": "..."}

Arguments that are tensors are ["TENSOR", SHAPE, DTYPE]. An entity is a name, its kind, its value:
"sp" sizes, outermost first, -1 for the size that the others leave; "ot" one value; "re" positions
of loops; "an" words for loops.
Source:  Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018, and its program, TVM.

Files of log lines: the tuner that wrote them, and their content.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tensorwright.base import RecordError, atomic_writer
from tensorwright.records.record import lines_of, parse_object, record_error

FAILURES = {
    1: "the program could not be made",
    2: "the host's part did not compile",
    3: "the device's part did not compile",
    4: "it failed while it ran",
    5: "it gave a wrong answer",
    6: "building it took too long",
    7: "running it took too long",
    8: "it failed",
}
"""The meaning of the error numbers of AutoTVM and Ansor; 0 is not an error."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a measurement of another tuner.

    costs_s   seconds of each repeat     all_cost_s   seconds of the whole measurement
    error_no  a key of `FAILURES`, or 0  timestamp    seconds since 1970
    """

    costs_s: tuple[float, ...]
    error_no: int
    all_cost_s: float
    timestamp: float

    @property
    def latency_s(self) -> float:
        """The mean of the repeats; infinite if it failed."""
        return math.inf if self.error_no else math.fsum(self.costs_s) / len(self.costs_s)

    @property
    def failure(self) -> str:
        """Why there is no time, or ""."""
        return FAILURES.get(self.error_no, "it failed") if self.error_no else ""

    def to_json(self) -> list[object]:
        """The result in the form of a line."""
        return [list(self.costs_s), self.error_no, self.all_cost_s, self.timestamp]


class LineReader:
    """Reads the parts of a parsed line; its errors name the file and the line."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fault(self, reason: str, *remedy: str) -> RecordError:
        """The error that the line has this fault; the remedy may be left out."""
        return record_error(self.where, reason, *remedy)

    def items(self, value: object, count: int | None, what: str) -> list[object]:
        """A list, of `count` items if that is given."""
        if not isinstance(value, list) or (count is not None and len(value) != count):
            wanted = "a list" if count is None else f"a list of {count} items"
            raise self.fault(f"{what} must be {wanted}")
        return value

    def text(self, value: object, what: str) -> str:
        """A text."""
        if not isinstance(value, str):
            raise self.fault(f"{what} must be text")
        return value

    def whole(self, value: object, what: str) -> int:
        """A whole number."""
        if type(value) is not int:
            raise self.fault(f"{what} must be a whole number")
        return value

    def number(self, value: object, what: str) -> float:
        """A number; whole numbers stay whole, so that they are written in the same form."""
        if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
            raise self.fault(f"{what} must be a number")
        return value  # type: ignore[return-value]

    def result(self, value: object) -> Result:
        """[[costs], error_no, all_cost, timestamp]."""
        costs, error_no, all_cost, timestamp = self.items(value, 4, "the result")
        times = [self.number(cost, "a cost") for cost in self.items(costs, None, "the costs")]
        number = self.whole(error_no, "the error number")
        if number == 0 and (not times or min(times) <= 0):
            raise self.fault("a line without an error needs costs above 0")
        all_cost_s = self.number(all_cost, "the time of measuring")
        return Result(tuple(times), number, all_cost_s, self.number(timestamp, "the timestamp"))


@dataclass(frozen=True, slots=True)
class AnsorLine:
    """One line.

    function, arguments   the workload: a function's name or a digest, and the rest as text
    target                the machine of the program
    steps                 names of the steps: "SP", "RE", "FU", ..., in order
    """

    function: str
    arguments: str
    target: str
    steps: tuple[str, ...]
    result: Result
    version: str

    @property
    def name(self) -> str:
        """The workload, for people."""
        return f"{self.function} {self.arguments}"

    def __str__(self) -> str:
        time = self.result.failure or f"{1e3 * self.result.latency_s:.4g} ms"
        return f"{self.name}\n  {' '.join(self.steps)}\n  {time}"


def parse_ansor(line: str, where: str) -> AnsorLine:
    """Read one line.

    Raises:  RecordError that names `where`, for a line of another form.
    """
    fields, read = parse_object(line, where), LineReader(where)
    missing = [name for name in ("i", "r", "v") if name not in fields]
    if missing:
        raise read.fault(f"not a line of Ansor: it lacks {', '.join(missing)}")
    given, state = read.items(fields["i"], 2, "the input")
    workload, target, *_ = (*read.items(given, None, "the task"), "", "")
    steps = read.items(read.items(state, 2, "the state")[1], None, "the steps")
    names = [read.items(step, None, "a step")[:1] for step in steps]
    if not all(names):
        raise read.fault("a step has no name")
    function, arguments = _workload(read.text(workload, "the workload"), read)
    return AnsorLine(
        function,
        arguments,
        read.text(target, "the target"),
        tuple(read.text(name, "the name of a step") for (name,) in names),
        read.result(fields["r"]),
        read.text(fields["v"], "the version"),
    )


def _workload(text: str, read: LineReader) -> tuple[str, str]:
    try:
        parts = json.loads(text)
    except ValueError:
        raise read.fault("the workload is not JSON text") from None
    function, *arguments = read.items(parts, None, "the workload") or [""]
    return read.text(function, "the workload's name"), ", ".join(map(json.dumps, arguments))


VERSION = 0.2
KINDS = ("sp", "ot", "re", "an")

Scalar = int | float | str | None
EntityValue = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class LoggedEntity:
    """A knob and its value."""

    name: str
    kind: str
    value: EntityValue

    def to_json(self) -> list[object]:
        """The entity in the form of a line."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return [self.name, self.kind, value]

    def __str__(self) -> str:
        parts = self.value if isinstance(self.value, tuple) else (self.value,)
        return f"{self.name} {' '.join(map(str, parts))}"


@dataclass(frozen=True, slots=True)
class LoggedTensor:
    """An argument of a task that is a tensor."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return "x".join(map(str, self.shape))


Argument = LoggedTensor | Scalar | tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class AutoTvmLine:
    """One line.

    target, task   the machine of the program, and the name of the template
    arguments      of the task: tensors, strides, padding, ...; `keywords` as JSON text
    index          number of the configuration in its space
    entities       its knobs
    """

    target: str
    task: str
    arguments: tuple[Argument, ...]
    keywords: str
    index: int
    code_hash: str | None
    entities: tuple[LoggedEntity, ...]
    result: Result
    tvm_version: str

    @property
    def tensors(self) -> tuple[LoggedTensor, ...]:
        """The arguments that are tensors."""
        return tuple(each for each in self.arguments if isinstance(each, LoggedTensor))

    @property
    def name(self) -> str:
        """The task, for people."""
        return f"{self.task} {', '.join(map(str, self.tensors))}"

    def __str__(self) -> str:
        rest = [str(_to_json(x)) for x in self.arguments if not isinstance(x, LoggedTensor)]
        time = self.result.failure or f"{1e3 * self.result.latency_s:.4g} ms"
        knobs = "; ".join(map(str, self.entities))
        return f"{self.name}, {', '.join(rest)}\n  configuration {self.index}: {knobs}\n  {time}"


def parse_autotvm(line: str, where: str) -> AutoTvmLine:
    """Read one line.

    Raises:  RecordError that names `where`, for a line of another form.
    """
    fields, read = parse_object(line, where), LineReader(where)
    if "v" in fields:
        raise read.fault(f"a line of version {fields['v']}", "only version 0.2 is read")
    names = ("input", "config", "result", "version", "tvm_version")
    missing = [name for name in names[:4] if name not in fields]
    if missing or set(fields) - set(names):
        wrong = [f"lacks {name}" for name in missing]
        wrong += [f"has {name}" for name in fields if name not in names]
        raise read.fault(f"not a line of AutoTVM: it {', '.join(wrong)}")
    if fields["version"] != VERSION:
        raise read.fault(f"a line of version {fields['version']}", "only version 0.2 is read")
    target, task, arguments, keywords = read.items(fields["input"], 4, "the input")
    config = fields["config"]
    if not isinstance(config, dict) or set(config) != {"index", "code_hash", "entity"}:
        raise read.fault("the config must have index, code_hash and entity")
    code_hash = config["code_hash"]
    entities = read.items(config["entity"], None, "the entity")
    return AutoTvmLine(
        read.text(target, "the target"),
        read.text(task, "the task"),
        tuple(_argument(each, read) for each in read.items(arguments, None, "the arguments")),
        json.dumps(keywords),
        read.whole(config["index"], "the index"),
        None if code_hash is None else read.text(code_hash, "the code_hash"),
        tuple(_entity(each, read) for each in entities),
        read.result(fields["result"]),
        read.text(fields.get("tvm_version", ""), "the tvm_version"),
    )


def format_autotvm(line: AutoTvmLine) -> str:
    """The line as JSON in its original form, without its newline."""
    fields: dict[str, object] = {
        "input": [
            line.target,
            line.task,
            [_to_json(each) for each in line.arguments],
            json.loads(line.keywords),
        ],
        "config": {
            "index": line.index,
            "code_hash": line.code_hash,
            "entity": [entity.to_json() for entity in line.entities],
        },
        "result": line.result.to_json(),
        "version": VERSION,
    }
    if line.tvm_version:
        fields["tvm_version"] = line.tvm_version
    return json.dumps(fields)


def _entity(value: object, read: LineReader) -> LoggedEntity:
    name, kind, what = read.items(value, 3, "an entity")
    named = read.text(name, "the name of an entity")
    if kind not in KINDS:
        raise read.fault(f"entity {named} is of an unknown kind {kind!r}", f"one of {KINDS}")
    if kind == "ot":
        return LoggedEntity(named, "ot", _scalar(what, read))
    parts = read.items(what, None, f"the value of entity {named}")
    if kind == "an":
        return LoggedEntity(named, "an", tuple(read.text(part, named) for part in parts))
    return LoggedEntity(named, str(kind), tuple(read.whole(part, named) for part in parts))


def _argument(value: object, read: LineReader) -> Argument:
    if not isinstance(value, list):
        return _scalar(value, read)
    if value[:1] == ["TENSOR"]:
        _, shape, dtype = read.items(value, 3, "a tensor")
        extents = read.items(shape, None, "the shape of a tensor")
        sizes = tuple(read.whole(extent, "an extent") for extent in extents)
        return LoggedTensor(sizes, read.text(dtype, "a dtype"))
    return tuple(_argument(each, read) for each in value)


def _scalar(value: object, read: LineReader) -> Scalar:
    if value is None or isinstance(value, int | float | str):
        return value
    raise read.fault(f"{value!r} is not a plain value")


def _to_json(argument: Argument) -> object:
    match argument:
        case LoggedTensor(shape, dtype):
            return ["TENSOR", list(shape), dtype]
        case tuple():
            return [_to_json(each) for each in argument]
        case _:
            return argument


LogLine = AutoTvmLine | AnsorLine


class LogFormat(StrEnum):
    """The tuners that write such lines."""

    OWN = "tensorwright"
    AUTOTVM = "autotvm"
    ANSOR = "ansor"


_PARSERS: dict[LogFormat, Callable[[str, str], LogLine]] = {
    LogFormat.AUTOTVM: parse_autotvm,
    LogFormat.ANSOR: parse_ansor,
}


def format_of(path: str | os.PathLike[str]) -> LogFormat:
    """The tuner that wrote a file, by its first line; tensorwright if the line does not tell.

    Raises:  RecordError for a file that cannot be read.
    """
    first = next((text for *_, text in _lines(path)), "")
    try:
        fields = json.loads(first)
    except (ValueError, RecursionError):
        return LogFormat.OWN
    names = set(fields) if isinstance(fields, dict) else set()
    if names & {"input", "config"}:
        return LogFormat.AUTOTVM
    if names >= {"i", "r"}:
        is_ansor = isinstance(fields.get("v"), str) and "v" in fields
        return LogFormat.ANSOR if is_ansor else LogFormat.AUTOTVM
    return LogFormat.OWN


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str, str]]:
    return (line for line in lines_of(path) if not line[2].startswith("#"))


def read_log(path: str | os.PathLike[str], written_by: LogFormat) -> dict[int, LogLine]:
    """The lines of a file of another tuner, by their numbers from 1.

    Empty lines, and lines that start with #, are skipped.
    Raises:  RecordError for a file that cannot be read, or with the first bad line.
    """
    parse = _PARSERS[written_by]
    return {number: parse(text, where) for number, where, text in _lines(path)}


def write_autotvm(path: str | os.PathLike[str], lines: Iterable[AutoTvmLine]) -> int:
    """Write lines in AutoTVM's form; return their number.  Raises: OutputError."""
    count = 0
    with atomic_writer(path) as file:
        for line in lines:
            file.write(format_autotvm(line).encode() + b"\n")
            count += 1
    return count
