"""The JSON of a .pt2 file as a record (`torch._export.serde.schema`, major version 8).

A union is an object with one key, which is the kind of its value: {"as_int": 3}. An unknown key is
refused, because its meaning is unknown.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from tensorwright.base import ModelError, UnsupportedError
from tensorwright.graph.imports.aten import record
from tensorwright.graph.imports.refusals import model_error, unsupported

MAJOR = 8
_ELEMENT_TYPES = dict(
    enumerate(
        "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool "
        "bfloat16".split(),
        1,
    )
) | dict(
    enumerate(
        "uint16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu uint32 "
        "uint64".split(),
        28,
    )
)
_STRIDED = 7
_PLAIN = re.compile(r"[\w\s+*()/-]+")
_MANY = 1 << 40  # a range whose end lies above it has no greatest number


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """The position of a tensor's elements in a storage.

    Strides and offset count elements.
    """

    path: str
    meta: record.TensorMeta
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Program:
    """The contents of the JSON, without the values of parameters.

    held   name of an input -> name of its parameter, buffer or constant
    """

    inputs: tuple[record.Input, ...]
    held: Mapping[str, str]
    nodes: tuple[record.Node, ...]
    outputs: tuple[record.Argument, ...]
    ranges: Mapping[str, tuple[int, int | None]]
    changed: tuple[str, ...]


def fail(what: str) -> NoReturn:
    """Refuse a file that contradicts itself."""
    raise model_error(record.PROGRAM, what, record.EXPORT_AGAIN)


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Name a part of the program in the errors that are raised inside the block."""
    try:
        yield
    except (ModelError, UnsupportedError) as error:
        raise (error.at(part) if error.where == record.PROGRAM else error) from None


def _of(given: object, kind: type, what: str) -> Any:
    if not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
        fail(f"{what} is {str(given)[:60]!r}, not a {kind.__name__}")
    return given


def _field(given: object, name: str, kind: type) -> Any:
    holder = _of(given, dict, f"what should have {name}")
    if name not in holder:
        fail(f"{name} is missing")
    return _of(holder[name], kind, name)


def _union(given: object, what: str) -> tuple[str, Any]:
    """The key of a union and its value; older files write the unset keys, too, as null."""
    chosen = [(k, v) for k, v in _of(given, dict, what).items() if v is not None]
    if len(chosen) != 1:
        fail(f"{what} has {len(chosen)} values, not one")
    return chosen[0]


def check_version(program: object) -> None:
    """Refuse a file of another schema."""
    version = _field(program, "schema_version", dict)
    major = _field(version, "major", int)
    if major != MAJOR:
        reason = f"its schema has the major version {major}; tensorwright reads {MAJOR}"
        remedy = "give the ExportedProgram itself to tensorwright.compile"
        raise unsupported(record.PROGRAM, "schema", reason, remedy)


def read_program(program: object) -> Program:
    """The graph of a file."""
    check_version(program)
    module = _field(program, "graph_module", dict)
    graph = _field(module, "graph", dict)
    metas = _field(graph, "tensor_values", dict)
    symbols = graph.get("sym_int_values") or {}
    signature = _field(module, "signature", dict)
    inputs, held = _inputs(_field(signature, "input_specs", list), metas, symbols)
    outputs, changed = _outputs(_field(signature, "output_specs", list))
    nodes = tuple(_node(each) for each in _field(graph, "nodes", list))
    ranges = _ranges(program.get("range_constraints") if isinstance(program, dict) else {})
    return Program(inputs, held, nodes, outputs, ranges, changed)


def _ranges(given: object) -> dict[str, tuple[int, int | None]]:
    ranges: dict[str, tuple[int, int | None]] = {}
    for name, each in _of(given or {}, dict, "range_constraints").items():
        limits = _of(each, dict, f"range of {name}")
        least, most = limits.get("min_val"), limits.get("max_val")
        least = 0 if least is None else _of(least, int, f"least of {name}")
        most = None if most is None else _of(most, int, f"greatest of {name}")
        ranges[str(name)] = (max(least, 0), None if most is None or most > _MANY else most)
    return ranges


# -- signature


def _inputs(
    specs: Sequence[object], metas: Mapping[str, Any], symbols: Mapping[str, Any]
) -> tuple[tuple[record.Input, ...], dict[str, str]]:
    held: dict[str, str] = {}
    inputs = []
    for spec in specs:
        kind, told = _union(spec, "input")
        if kind == "user_input":
            inputs.append(_user_input(_field(told, "arg", dict), metas, symbols))
            continue
        if kind == "constant_input":
            name, value = _field(told, "name", str), _field(told, "value", dict)
            inputs.append(record.Input(name, constant=_constant(*_union(value, "constant"))))
            continue
        owners = {
            "parameter": "parameter_name",
            "buffer": "buffer_name",
            "tensor_constant": "tensor_constant_name",
        }
        if kind not in owners:
            raise record.only_in_pytorch("one of the inputs", kind)
        name, owner = (
            _field(_field(told, "arg", dict), "name", str),
            _field(told, owners[kind], str),
        )
        with _naming(f"input {name}"):
            inputs.append(record.Input(name, tensor_meta(metas.get(name)), owner=owner))
        held[name] = owner
    return tuple(inputs), held


def _user_input(
    given: object, metas: Mapping[str, Any], symbols: Mapping[str, Any]
) -> record.Input:
    kind, told = _union(given, "input")
    if kind == "as_tensor":
        name = _field(told, "name", str)
        with _naming(f"input {name}"):
            return record.Input(name, tensor_meta(metas.get(name)))
    if kind == "as_sym_int":
        _, name = _union(told, "input")
        extent = _extent(symbols.get(str(name)))
        return record.Input(str(name), symbol=extent if isinstance(extent, str) else "")
    return record.Input("", constant=_constant(kind, told))


def _constant(kind: str, told: object) -> bool | int | float | str | None:
    """The value of an input that is a constant; None for other kinds."""
    return _plain(told, kind) if kind in _PLAIN_KINDS else None


def _outputs(specs: Sequence[object]) -> tuple[tuple[record.Argument, ...], tuple[str, ...]]:
    outputs: list[record.Argument] = []
    changed = []
    for spec in specs:
        kind, told = _union(spec, "output")
        if kind == "user_output":
            outputs.append(_argument(_field(told, "arg", dict)))
        elif kind.endswith("_mutation"):
            names = [v for k, v in _of(told, dict, kind).items() if k.endswith("_name")]
            changed.append(f"{kind.removesuffix('_mutation').replace('_', ' ')} {names[0]}")
        else:
            fail(f"one of its outputs is a {kind}")
    return tuple(outputs), tuple(changed)


# -- nodes


def _node(given: object) -> record.Node:
    target = _field(given, "target", str)
    outputs = [name for each in _field(given, "outputs", list) for name in _names(each)]
    name = str(_of(given, dict, "node").get("name") or (outputs[0] if outputs else target))
    node = record.Node(name, target, (), tuple(outputs))
    with _naming(node.label):
        arguments = [
            (_field(each, "name", str), _argument(_field(each, "arg", dict)))
            for each in _field(given, "inputs", list)
        ]
    return replace(node, arguments=tuple(arguments))


def _names(given: object) -> tuple[str, ...]:
    """The names of the values of an output: one, or those of a list."""
    kind, told = _union(given, "output of a node")
    match kind:
        case "as_tensor" | "as_token":
            return (_field(told, "name", str),)
        case "as_tensors":
            return tuple(_field(each, "name", str) for each in _of(told, list, kind))
        case "as_sym_int" | "as_sym_bool" | "as_sym_float":
            return (str(_union(told, kind)[1]),)
        case "as_optional_tensors":
            return tuple(_optional(each)[0] for each in _of(told, list, kind))
        case "as_optional_tensor":
            return _optional(told)
        case "as_none":
            return ("",)
    fail(f"an output of a node is {kind}")


def _optional(given: object) -> tuple[str]:
    kind, told = _union(given, "optional tensor")
    return (_field(told, "name", str) if kind == "as_tensor" else "",)


_PLAIN_KINDS = {"as_int": int, "as_float": float, "as_string": str, "as_bool": bool}
_PLAIN_LISTS = {f"{kind}s": type_ for kind, type_ in _PLAIN_KINDS.items()}
_NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_NAMED_LISTS = ("as_tensors", "as_sym_ints", "as_sym_bools", "as_sym_floats", "as_optional_tensors")
_IGNORED = ("as_memory_format", "as_layout", "as_device", "as_none")


def _argument(given: object) -> record.Argument:
    """An argument of a node; the device and the layout of a tensor are ignored."""
    kind, told = _union(given, "argument")
    if kind in _IGNORED:
        return None
    if kind in _PLAIN_KINDS:
        return _plain(told, kind)
    if kind in _PLAIN_LISTS:
        return tuple(_plain(each, kind.removesuffix("s")) for each in _of(told, list, kind))
    if kind in _NAMED_LISTS:
        return tuple(_named(each) for each in _of(told, list, kind))
    if kind in ("as_tensor", "as_sym_int", "as_sym_bool", "as_sym_float", "as_optional_tensor"):
        return _named(told)
    if kind == "as_scalar_type":
        return element_type(told)
    if kind == "as_graph":
        return _body(_field(told, "graph", dict))
    reason = f"an argument of a node is of the kind {kind}, which tensorwright does not read"
    raise unsupported(record.PROGRAM, kind, reason)


def _plain(told: object, kind: str) -> bool | int | float | str:
    """A value of a kind; what JSON has no number for, PyTorch 2.13 writes as a text."""
    if kind == "as_float" and isinstance(told, str) and told in _NOT_FINITE:
        return _NOT_FINITE[told]
    if kind == "as_float" and isinstance(told, int) and not isinstance(told, bool):
        return float(told)
    if not isinstance(told, _PLAIN_KINDS[kind]):
        fail(f"{kind} is {str(told)[:60]!r}")
    value: bool | int | float | str = told  # type: ignore[assignment]
    return value


def _named(given: object) -> record.Argument:
    """An element of a list: a value by name, or a number."""
    if isinstance(given, dict) and "name" in given:
        return record.Ref(_field(given, "name", str))
    kind, told = _union(given, "argument")
    match kind:
        case "as_name":
            return record.Ref(_of(told, str, kind))
        case "as_tensor":
            return record.Ref(_field(told, "name", str))
        case "as_none":
            return None
        case "as_int" | "as_float" | "as_bool":
            return _plain(told, kind)
    fail(f"an element of a list is {kind}")


def _body(graph: object) -> record.Body:
    inputs = tuple(name for each in _field(graph, "inputs", list) for name in _names(each))
    nodes = tuple(_node(each) for each in _field(graph, "nodes", list))
    outputs = tuple(_argument(each) for each in _field(graph, "outputs", list))
    return record.Body(inputs, nodes, outputs)


# -- tensors


def element_type(code: object) -> record.ElementType:
    """An element type by its number."""
    name = _ELEMENT_TYPES.get(_of(code, int, "element type"))
    if name is None:
        fail(f"there is no element type {code}")
    return record.ElementType(name)


def tensor_meta(given: object) -> record.TensorMeta:
    """The type of a tensor."""
    layout = _field(given, "layout", int)
    if layout != _STRIDED:
        remedy = "make it dense before the export: tensor.to_dense()"
        raise unsupported(record.PROGRAM, "tensor", "one of its tensors is sparse", remedy)
    sizes = tuple(_extent(each) for each in _field(given, "sizes", list))
    return record.TensorMeta(element_type(_field(given, "dtype", int)), sizes)


def stored_tensor(given: object) -> StoredTensor:
    """The position of a parameter's elements."""
    path = _field(given, "path_name", str)
    if _field(given, "use_pickle", bool):
        reason = "it is pickled, and reading a pickle can run any code"
        remedy = "export plain tensors; PyTorch pickles quantised tensors and other subclasses"
        raise unsupported(f"weight {path}", "pickle", reason, remedy)
    meta = _field(given, "tensor_meta", dict)
    strides = tuple(_number_of(each) for each in _field(meta, "strides", list))
    offset = _number_of(_field(meta, "storage_offset", dict))
    return StoredTensor(path, tensor_meta(meta), strides, offset)


def _number_of(given: object) -> int:
    extent = _extent(given)
    if isinstance(extent, str):
        fail(f"a size of a weight is {extent}")
    return extent


def _extent(given: object) -> record.Extent:
    kind, told = _union(given, "size")
    if kind == "as_int":
        number: int = _of(told, int, "size")
        if number < 0:
            fail(f"a size is {number}")
        return number
    if kind != "as_expr":
        fail(f"a size is {kind}")
    return expression_text(_field(told, "expr_str", str))


def expression_text(text: str) -> str:
    """An expression of symbols, as SymPy's str or repr: Mul(Integer(2), Symbol('s0'))."""
    if "Symbol(" not in text:
        if not _PLAIN.fullmatch(text):
            fail(f"a size is {text[:60]!r}")
        return text.strip()
    try:
        return _written(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        fail(f"a size is {text[:60]!r}")


def _written(node: ast.expr) -> str:
    """An expression of SymPy as text.  Raises: ValueError for one that is not a size."""
    match node:
        case ast.Call(ast.Name("Symbol"), [ast.Constant(str(name))]) if name.isidentifier():
            return name
        case ast.Call(ast.Name("Integer"), [number]):
            return str(int(ast.unparse(number)))
        case ast.Call(ast.Name("Add"), [_, *_] as parts, []):
            return " + ".join(map(_written, parts))
        case ast.Call(ast.Name("Mul"), [_, *_] as parts, []):
            return "*".join(f"({each})" if "+" in each else each for each in map(_written, parts))
    raise ValueError(ast.unparse(node))
