"""From a path, bytes or a ModelProto to a checked model.

Decode an ONNX file without its weights, which stay in the file until they are needed.

protobuf copies each weight when it decodes a file, and again when it hands the weight out.  So the
bytes of large initialisers are left out of what it decodes, and are read from the file itself.

    model = field*                      field = tag length bytes | tag number
    model.graph (7) .initializer (5) .raw_data (9) is what stays; all else is decoded

A file that is unusual in any way is decoded as a whole, so that protobuf and the importer judge it.
Source:  protobuf.dev/programming-guides/encoding; onnx.proto.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from tensorwright import base
from tensorwright.graph.imports import gguf, refusals
from tensorwright.ops import Array

_LEAST_BYTES = 4096  # smaller ones are decoded as they are
_GRAPH, _INITIALIZER = 7, 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _DOC_STRING = 1, 2, 8, 9, 12
_PLAIN_FIELDS = frozenset((_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _DOC_STRING))
_BYTES = 2  # the kind of a field that has a length
_MOST_BITS = 70

Buffer: TypeAlias = bytes | mmap.mmap


class Undecoded(Protocol):
    """Initialisers whose elements are not in the model."""

    def array(self, tensor: TensorProto, dtype: base.DType) -> Array | None:
        """The elements of an initialiser; None for one that the model holds."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Initialisers that were not decoded, by name: where their bytes lie in a file's (start, end).

    A file is mapped, so it is the same one, whatever takes its name meanwhile.
    """

    data: Buffer
    spans: Mapping[str, tuple[int, int]]

    def array(self, tensor: TensorProto, dtype: base.DType) -> Array | None:
        """A copy of the elements of an initialiser; None where it was decoded.

        One that does not have as many bytes as its shape needs gets them back, to be refused.
        """
        if tensor.name not in self.spans:
            return None
        start, end = self.spans[tensor.name]
        shape = tuple(tensor.dims)
        count = math.prod(shape)
        if end - start != count * dtype.size_bytes:
            tensor.raw_data = self.data[start:end]
            return None
        array = base.empty(shape, dtype)  # where kernels may read it, too
        flat = np.frombuffer(self.data, dtype.numpy.newbyteorder("<"), count, start)
        np.copyto(array, flat.reshape(shape))
        return array


NO_WEIGHTS = Weights(b"", MappingProxyType({}))


class _Field(NamedTuple):
    """A field of a message: where it begins, and where its content does and ends."""

    number: int
    begin: int
    start: int
    end: int


def set_aside(data: Buffer) -> tuple[bytes, Weights]:
    """The bytes of a model without its large weights, and these."""
    with memoryview(data) as view:
        try:
            return _without_weights(data, view)
        except (ValueError, LookupError):
            return bytes(view), NO_WEIGHTS


def _without_weights(data: Buffer, view: memoryview) -> tuple[bytes, Weights]:
    """Raises:  ValueError, LookupError for a file that is unusual."""
    (graph,) = (each for each in _fields(view, 0, len(view)) if each.number == _GRAPH)
    spans: dict[str, tuple[int, int]] = {}
    names: set[str] = set()
    pieces: list[memoryview | bytes] = []
    begin = graph.start
    for field in _fields(view, graph.start, graph.end):
        if field.number != _INITIALIZER:
            continue
        parts = {each.number: each for each in _fields(view, field.start, field.end)}
        name = str(view[parts[_NAME].start : parts[_NAME].end], "utf-8")
        if name in names:
            raise ValueError("two initialisers of one name, which the importer compares")
        names.add(name)
        raw = parts.get(_RAW_DATA)
        if raw is None or raw.end - raw.start < _LEAST_BYTES or not parts.keys() <= _PLAIN_FIELDS:
            continue
        tensor = view[field.start : raw.begin], view[raw.end : field.end]
        pieces += view[begin : field.begin], *_message(_INITIALIZER, tensor)
        spans[name] = raw.start, raw.end
        begin = field.end
    if not spans:
        return bytes(view), NO_WEIGHTS
    pieces.append(view[begin : graph.end])
    whole = view[: graph.begin], *_message(_GRAPH, pieces), view[graph.end :]
    return b"".join(whole), Weights(data, spans)


def _message(number: int, pieces: Sequence[memoryview | bytes]) -> tuple[memoryview | bytes, ...]:
    """A field of a message that consists of some pieces."""
    head = bytearray()
    for each in (number << 3 | _BYTES, sum(map(len, pieces))):
        while each > 0x7F:
            head.append(each & 0x7F | 0x80)
            each >>= 7
        head.append(each)
    return bytes(head), *pieces


def _fields(view: memoryview, at: int, end: int) -> Iterator[_Field]:
    """The fields of a message, in order."""
    while at < end:
        begin = at
        tag, at = _varint(view, at)
        size = 0
        match tag & 7:
            case 0:
                _, at = _varint(view, at)
            case 1:
                size = 8
            case 2:
                size, at = _varint(view, at)
            case 5:
                size = 4
            case _:
                raise ValueError("a group, or no field")
        if at + size > end:
            raise ValueError("a field is longer than its message")
        yield _Field(tag >> 3, begin, at, at + size)
        at += size


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    byte = view[at]
    number = byte & 0x7F
    shift = 7
    while byte & 0x80:
        at += 1
        byte = view[at]
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _MOST_BITS:
            raise ValueError("a number of more than 64 bits")
    return number, at + 1


OLDEST_OPSET = 7
NEWEST_OPSET = onnx.defs.onnx_opset_version()
_PROTOBUF_LIMIT_BYTES = (1 << 31) - 1
DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class Source:
    """A model, the folder of its external data, its name in messages, weights left undecoded."""

    model: ModelProto
    folder: Path | None
    label: str
    weights: Undecoded = NO_WEIGHTS


def _mapped(path: Path) -> Buffer:
    where = f"file {path}"
    if path.is_dir():
        raise refusals.model_error(where, "it is a folder", "give the .onnx file inside it")
    try:
        if path.stat().st_size > _PROTOBUF_LIMIT_BYTES and not is_gguf(path):
            raise refusals.model_error(
                where,
                "it is larger than 2 GiB, the most that a protobuf file can hold",
                "save it with its weights as external data",
            )
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise refusals.missing_file(path) from None
    except OSError as error:
        raise refusals.model_error(where, f"it cannot be read: {error.strerror or error}") from None


def is_gguf(source: object) -> bool:
    """Whether it is the path or the bytes of a GGUF file."""
    if isinstance(source, bytes):
        return source[: len(gguf.MAGIC)] == gguf.MAGIC
    return isinstance(source, str | os.PathLike) and base.kind_of_file(source) is base.GGUF


def _decode(data: Buffer, where: str) -> tuple[ModelProto, Undecoded]:
    if data[: len(gguf.MAGIC)] == gguf.MAGIC:
        return gguf.read_decoder(data, where)
    if len(data) == 0:
        raise refusals.model_error(where, "it is empty", "export or download the model again")
    kind = base.kind_of_bytes(data[: base.HEAD_BYTES])
    if kind is not None:
        remedy = kind.remedy_for(where.removeprefix("file ") if where.startswith("file ") else "")
        raise refusals.model_error(where, f"it is not an ONNX model, but {kind.name}", remedy)
    model = ModelProto()
    decoded, weights = set_aside(data)
    try:
        model.ParseFromString(decoded)
    except DecodeError:
        raise refusals.model_error(
            where,
            "it is not an ONNX model, or it is truncated",
            "export or download the model again",
        ) from None
    return model, weights


def _names(graph: GraphProto) -> Iterator[object]:
    """Names of the graph; protobuf gives those that are not UTF-8 as bytes."""
    yield graph.name
    for info in (*graph.input, *graph.output, *graph.initializer):
        yield info.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield attribute.name
            if attribute.HasField("g"):
                yield from _names(attribute.g)


def _all_names(model: ModelProto) -> Iterator[object]:
    yield from _names(model.graph)
    for function in model.functions:
        yield from (function.name, function.domain, *function.input, *function.output)
        for node in function.node:
            yield from (node.name, node.op_type, node.domain, *node.input, *node.output)


def _check(model: ModelProto, where: str) -> None:
    broken = ""
    if not model.HasField("graph"):
        broken = "it holds no graph"
    elif not model.graph.output:
        broken = "its graph has no outputs"
    elif not model.opset_import and model.ir_version >= 3:
        broken = "it does not say its operator set"
    elif not all(isinstance(name, str) for name in _all_names(model)):
        broken = "a name in it is not text"
    if broken:
        raise refusals.model_error(
            where,
            f"it is not an ONNX model, or it is truncated: {broken}",
            "export or download the model again",
        )


def _check_definitions(model: ModelProto, where: str) -> None:
    """Refuse a tensor with two definitions: which one a reader means, nothing says."""
    _check_graph(model.graph, {}, where)
    for function in model.functions:
        given = dict.fromkeys(function.input, f"the inputs of function {function.name}")
        _check_nodes(function.node, given)


def _check_graph(graph: GraphProto, around: Mapping[str, str], where: str) -> None:
    """`around`: what defines each tensor that a nested graph sees; an initialiser may hide one."""
    defined: dict[str, str] = {}
    for info in graph.input:
        if info.name in defined:
            raise _defined_twice(where, info.name, "two inputs")
        defined[info.name] = "an input"
    held: dict[str, TensorProto] = {}
    for tensor in graph.initializer:  # the same once more does no harm, and files have it
        if held.setdefault(tensor.name, tensor) != tensor:
            raise _defined_twice(where, tensor.name, "two initialisers")
    held.update((sparse.values.name, sparse.values) for sparse in graph.sparse_initializer)
    _check_nodes(graph.node, {**around, **defined, **dict.fromkeys(held, "an initialiser")})


def _check_nodes(nodes: Sequence[NodeProto], defined: dict[str, str]) -> None:
    for node in nodes:
        label = refusals.node_label(node)
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                _check_graph(graph, defined, f"{attribute.name} of {label}")
        for name in filter(None, node.output):
            if name in defined:
                raise _defined_twice(label, name, f"this node and {defined[name]}")
            defined[name] = label


def _defined_twice(where: str, tensor: str, definers: str) -> base.ModelError:
    remedy = "give each tensor of the model a name of its own"
    return refusals.model_error(where, f"tensor {tensor} is defined twice: by {definers}", remedy)


def opset_of(model: ModelProto, where: str) -> int:
    """The version of the default operator set."""
    versions = [o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS]
    version = versions[0] if versions else (NEWEST_OPSET if model.opset_import else 1)
    if version < OLDEST_OPSET:
        reason = f"operator set {version} is older than {OLDEST_OPSET}"
        remedy = "convert it with onnx.version_converter.convert_version"
        raise refusals.unsupported(where, "opset", reason, remedy)
    if version > NEWEST_OPSET:
        newest = f"{NEWEST_OPSET}, the newest that the onnx package here knows"
        reason = f"operator set {version} is newer than {newest}"
        remedy = "update the onnx package, or export the model with an older operator set"
        raise refusals.unsupported(where, "opset", reason, remedy)
    return version


def read_model(source: str | os.PathLike[str] | bytes | ModelProto) -> Source:
    """Read and check a model; external data stays where it is."""
    if isinstance(source, ModelProto):
        loaded = Source(source, None, f"model {source.graph.name or 'without a name'}")
    elif isinstance(source, bytes):
        model, weights = _decode(source, "model bytes")
        loaded = Source(model, None, "model bytes", weights)
    elif not isinstance(source, str | os.PathLike):
        raise refusals.wrong_type(source)
    else:
        path = Path(source)
        model, weights = _decode(_mapped(path), f"file {path}")
        loaded = Source(model, path.parent, f"file {path}", weights)
    _check(loaded.model, loaded.label)
    _check_definitions(loaded.model, loaded.label)
    return loaded


def whole_model(source: str | os.PathLike[str] | bytes) -> ModelProto:
    """The ONNX model of a file or its bytes, with its weights inside, for other runtimes."""
    if is_gguf(source):
        read = read_model(source)
        return gguf.with_weights(read.model, read.weights)
    return onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(source)


def external_files(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files beside a model that hold its weights, as the model names them."""
    locations = {
        entry.value
        for tensor in _tensors(read_model(path).model)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return tuple(Path(path).parent / each for each in sorted(locations))


def _tensors(message: Any) -> Iterator[TensorProto]:
    """All tensors inside a protobuf message, those of attributes and subgraphs among them."""
    if isinstance(message, TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in (value,) if isinstance(value, Message) else value:
                yield from _tensors(each)
