"""Import a model of any kind: the readers of ONNX, GGUF and PyTorch behind one name."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeAlias

from onnx import ModelProto

from tensorwright.base import DType, ModelError, UnsupportedError
from tensorwright.expr import NamedSize, named_size, named_sizes_of, with_sizes
from tensorwright.graph.graph import Graph
from tensorwright.graph.imports import (
    aten,
    external_files,
    is_gguf,
    load_onnx,
    read_supported_model,
)
from tensorwright.graph.imports import declared_types as declared_types_of_onnx
from tensorwright.graph.imports.open_dimensions import Sizes
from tensorwright.graph.imports.shapes import InputShapes
from tensorwright.ops import TensorType, number_of, sizes_of


class ExportedProgram(Protocol):
    """What torch.export returns, seen from where PyTorch is not installed."""

    graph_module: Any
    graph_signature: Any
    state_dict: Any


Types: TypeAlias = Mapping[str, TensorType | DType]
Source: TypeAlias = (
    str | os.PathLike[str] | bytes | ModelProto | aten.ExportedGraph | ExportedProgram
)

_TRIED_SIZES = (1, 2, 32, 512, 16384)
_PROGRAMS = "tensorwright.integrations.pytorch.fx_record"  # by name: it imports PyTorch
_EXPORTED_PROGRAM = "torch.export.exported_program.ExportedProgram"


def load_model(
    source: Source, input_shapes: InputShapes | None = None, sizes: Sizes | None = None
) -> Graph:
    """Import a model: an ONNX file, a GGUF file, a .pt2 file, the bytes of one, a ModelProto, or
    an ExportedProgram of PyTorch.

    Raises:  as `load_onnx` and `load_exported`.
    """
    source = recorded(source)
    if isinstance(source, aten.ExportedGraph):
        return aten.load_exported(source, input_shapes, sizes)
    return load_onnx(source, input_shapes, sizes=sizes)  # type: ignore[arg-type]  # it refuses others


def recorded(source: Source) -> Source:
    """The record of what PyTorch has exported, from a file or memory; other models unchanged."""
    if isinstance(source, str | os.PathLike | bytes) and aten.is_archive(source):
        return aten.read_pt2(source)
    if is_exported_program(source):
        record: aten.ExportedGraph = importlib.import_module(_PROGRAMS).record_of(source)
        return record
    return source


def check_operators(source: str | os.PathLike[str] | bytes) -> None:
    """Refuse an ONNX model with operators that cannot be imported; its weights are not read."""
    if not aten.is_archive(source):
        read_supported_model(source)


def declared_types(
    source: Source, input_shapes: InputShapes | None = None, sizes: Sizes | None = None
) -> tuple[Types, Types]:
    """The types that a model declares of inputs and outputs; element types where a call alone
    decides the rank.
    """
    source = recorded(source)
    if isinstance(source, aten.ExportedGraph):
        types = aten.declared_inputs(source, input_shapes, sizes)
        graph = _of_some_size(source, types)
        return types, {name: _of_any_size(name, graph.types[name]) for name in graph.outputs}
    given, said = declared_types_of_onnx(source, input_shapes, sizes)  # type: ignore[arg-type]
    ranked = {name: each for name, each in given.items() if isinstance(each, TensorType)}
    results = {name: each for name, each in said.items() if isinstance(each, TensorType)}
    if len(results) == len(said):
        return given, results
    if len(ranked) < len(given):
        return given, {name: each or _without_type(name) for name, each in said.items()}
    graph = _of_some_size(source, ranked)
    others = {name: _of_any_size(name, graph.types[name]) for name in said if name not in results}
    return given, {name: {**results, **others}[name] for name in said}


def _without_type(name: str) -> NoReturn:
    raise ModelError(
        stage="import",
        where=f"output {name}",
        reason="the model does not say its element type, and leaves the rank of an input open",
        remedy="give that input a shape (`input_shapes`), or the output an element type",
    )


def _of_some_size(source: Source, inputs: Mapping[str, TensorType]) -> Graph:
    """The network with one number for all its sizes: the first of a few that fits."""
    sizes = named_sizes_of(*(extent for each in inputs.values() for extent in sizes_of(each)))
    *numbers, last = _TRIED_SIZES
    for number in numbers:
        with suppress(ModelError, UnsupportedError):
            return load_model(source, _shapes_at(number, inputs, sizes))
    return load_model(source, _shapes_at(last, inputs, sizes))


def _shapes_at(
    number: int, inputs: Mapping[str, TensorType], sizes: Sequence[NamedSize]
) -> dict[str, tuple[int, ...]]:
    values = {
        size.name: max(size.least, number if size.most is None else min(number, size.most))
        * size.divisor
        for size in sizes
    }
    return {
        name: tuple(number_of(with_sizes(extent, values)) for extent in sizes_of(each))
        for name, each in inputs.items()
    }


def _of_any_size(name: str, type_: TensorType) -> TensorType:
    """A type of the same rank with an open size for each dimension."""
    stem = re.sub(r"\W", "_", name)
    rank = len(type_.shape)
    return TensorType(type_.dtype, tuple(named_size(f"size_{stem}_{at}") for at in range(rank)))


def files_beside(path: Path) -> tuple[Path, ...]:
    """The files beside a model's file that hold its weights; only those of ONNX have any."""
    return () if aten.is_archive(path) or is_gguf(path) else external_files(path)


def is_exported_program(source: object) -> bool:
    """Whether it is an ExportedProgram, which exists only where PyTorch is imported."""
    return any(
        f"{kind.__module__}.{kind.__qualname__}" == _EXPORTED_PROGRAM
        for kind in type(source).__mro__
    )
