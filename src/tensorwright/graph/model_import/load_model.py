"""Import a model, whatever wrote it."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from onnx import ModelProto

from tensorwright.graph.aten_import import ExportedGraph, is_archive, load_exported, read_pt2
from tensorwright.graph.graph import Graph
from tensorwright.graph.onnx_import import declared_types as declared_types_of_onnx
from tensorwright.graph.onnx_import import external_files, load_onnx
from tensorwright.graph.onnx_import.open_dimensions import Sizes
from tensorwright.graph.onnx_import.shapes import InputShapes
from tensorwright.ops import TensorType


class ExportedProgram(Protocol):
    """What torch.export returns, seen from where PyTorch is not installed."""

    graph_module: Any
    graph_signature: Any
    state_dict: Any


Types: TypeAlias = tuple[dict[str, TensorType], dict[str, TensorType]]
Source: TypeAlias = str | os.PathLike[str] | bytes | ModelProto | ExportedGraph | ExportedProgram

_PROGRAMS = "tensorwright.integrations.pytorch.exported"  # by name: it imports PyTorch
_EXPORTED_PROGRAM = "torch.export.exported_program.ExportedProgram"


def load_model(
    source: Source, input_shapes: InputShapes | None = None, sizes: Sizes | None = None
) -> Graph:
    """Import a model: an ONNX file, a .pt2 file, the bytes of either, a ModelProto, or an
    ExportedProgram of PyTorch.

    Raises:  as `load_onnx` and `load_exported`.
    """
    if isinstance(source, ExportedGraph):
        return load_exported(source, input_shapes, sizes)
    if isinstance(source, str | os.PathLike | bytes) and is_archive(source):
        return load_exported(read_pt2(source), input_shapes, sizes)
    if is_exported_program(source):
        record: ExportedGraph = importlib.import_module(_PROGRAMS).record_of(source)
        return load_exported(record, input_shapes, sizes)
    return load_onnx(source, input_shapes, sizes=sizes)  # type: ignore[arg-type]  # it refuses others


def declared_types(
    source: Source, input_shapes: InputShapes | None = None, sizes: Sizes | None = None
) -> Types | None:
    """The types that an ONNX model declares of inputs and outputs; None for other models.

    Raises:  as `load_onnx`, except for nodes, which are not read.
    """
    if isinstance(source, ExportedGraph) or is_archive(source) or is_exported_program(source):
        return None
    return declared_types_of_onnx(source, input_shapes, sizes)  # type: ignore[arg-type]


def files_beside(path: Path) -> tuple[Path, ...]:
    """The files beside a model's file that hold its weights; an archive of PyTorch has them all."""
    return () if is_archive(path) else external_files(path)


def is_exported_program(source: object) -> bool:
    """Whether it is an ExportedProgram, which exists only where PyTorch is imported."""
    return any(
        f"{kind.__module__}.{kind.__qualname__}" == _EXPORTED_PROGRAM
        for kind in type(source).__mro__
    )
