"""AutoTVM's log lines, version 0.2: each has one measured configuration of a template.

    {"input": [TARGET, TASK, ARGUMENTS, KEYWORDS],
     "config": {"index": 263, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 3]], ...]},
     "result": [[COSTS_S...], ERROR_NO, ALL_COST_S, TIMESTAMP],
     "version": 0.2, "tvm_version": "..."}

Arguments that are tensors are ["TENSOR", SHAPE, DTYPE]. An entity is a name, its kind, its value:
"sp" sizes, outermost first, -1 for the size that the others leave; "ot" one value; "re" positions
of loops; "an" words for loops.
Source:  Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018, and its program, TVM.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tensorwright.records.logs.fields import LineReader, Result
from tensorwright.records.record import parse_object

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
