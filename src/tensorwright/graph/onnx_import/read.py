"""Get a ModelProto from a path, bytes or a ModelProto, and refuse what is not an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import GraphProto, ModelProto

from tensorwright.base import HEAD_BYTES, UnsupportedError, kind_of_bytes
from tensorwright.graph.onnx_import.refusals import model_error, wrong_type

OLDEST_OPSET = 7
NEWEST_OPSET = onnx.defs.onnx_opset_version()
_PROTOBUF_LIMIT_BYTES = (1 << 31) - 1
DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class Source:
    """A model and where it comes from: the folder that external data must lie in, and how messages
    call it.
    """

    model: ModelProto
    folder: Path | None
    label: str


def _read_bytes(path: Path) -> bytes:
    where = f"file {path}"
    if path.is_dir():
        raise model_error(where, "it is a folder", "give the .onnx file inside it")
    try:
        if path.stat().st_size > _PROTOBUF_LIMIT_BYTES:
            raise model_error(
                where,
                "it is larger than 2 GiB, the most that a protobuf file can hold",
                "save it with its weights as external data",
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise model_error(where, "there is no such file", "check the path") from None
    except OSError as error:
        raise model_error(where, f"it cannot be read: {error.strerror or error}") from None


def _decode(data: bytes, where: str) -> ModelProto:
    if not data:
        raise model_error(where, "it is empty", "export or download the model again")
    kind = kind_of_bytes(data[:HEAD_BYTES])
    if kind is not None:
        remedy = kind.remedy_for(where.removeprefix("file ") if where.startswith("file ") else "")
        raise model_error(where, f"it is not an ONNX model, but {kind.name}", remedy)
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise model_error(
            where,
            "it is not an ONNX model, or it is truncated",
            "export or download the model again",
        ) from None
    return model


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
        raise model_error(
            where,
            f"it is not an ONNX model, or it is truncated: {broken}",
            "export or download the model again",
        )


def opset_of(model: ModelProto, where: str) -> int:
    """The version of the default operator set.

    Raises:  UnsupportedError for a version that is too old or too new.
    """
    found = [o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS]
    version = found[0] if found else (NEWEST_OPSET if model.opset_import else 1)
    if version < OLDEST_OPSET:
        raise UnsupportedError(
            stage="import",
            where=where,
            reason=f"operator set {version} is older than {OLDEST_OPSET}",
            remedy="convert it with onnx.version_converter.convert_version",
            operator="opset",
        )
    if version > NEWEST_OPSET:
        raise UnsupportedError(
            stage="import",
            where=where,
            reason=f"operator set {version} is newer than {NEWEST_OPSET}, "
            "the newest that the onnx package here knows",
            remedy="update the onnx package, or export the model with an older operator set",
            operator="opset",
        )
    return version


def read_model(source: str | os.PathLike[str] | bytes | ModelProto) -> Source:
    """Read and check a model; external data stays where it is.

    Raises:  ModelError for what is no ONNX model; UsageError for an object of another type.
    """
    if isinstance(source, ModelProto):
        loaded = Source(source, None, f"model {source.graph.name or 'without a name'}")
    elif isinstance(source, bytes):
        loaded = Source(_decode(source, "model bytes"), None, "model bytes")
    elif not isinstance(source, str | os.PathLike):
        raise wrong_type(source)
    else:
        path = Path(source)
        loaded = Source(_decode(_read_bytes(path), f"file {path}"), path.parent, f"file {path}")
    _check(loaded.model, loaded.label)
    return loaded
