"""Read a MODEL argument: a file (.onnx, .gguf, .pt2), or a network: zoo:NAME and its like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from onnx import ModelProto

from tensorwright.base import LaboratoryPart
from tensorwright.cli.arguments.options import refuse_given, refuse_other_than_model, split
from tensorwright.compile_options import Shapes, Sizes
from tensorwright.graph import Graph, require_numbers
from tensorwright.graph.imports import whole_model
from tensorwright.graph.imports.aten import is_archive
from tensorwright.graph.model_import import load_model
from tensorwright.graph.onnx_export import to_onnx


def read_graph(
    model: str,
    shapes: Shapes | None = None,
    seed: int = 0,
    sizes: Sizes | None = None,
    *,
    is_open: bool = False,
) -> Graph:
    """The graph of a MODEL argument.

    is_open  whether the command takes named sizes
    Raises:  ModelError, UnsupportedError and InputError, as the import of models does;
             UnsupportedError for open sizes that the command does not take; UsageError for an
             unknown NAME, and for an argument that is not a model.
    """
    refuse_other_than_model(model)
    kind, name = split(model)
    if not kind:
        imported = load_model(name, shapes, sizes)
        return imported if is_open else require_numbers(imported, "import")
    if sizes:
        refuse_given(("sizes",), because=f"all shapes of {model} are numbers")
    graph: Graph = _of_suites(model, "read_network")(kind, name, shapes, seed)
    return graph


def check_model(model: str) -> None:
    """Refuse a MODEL argument whose file or network does not exist, as `read_graph` does."""
    refuse_other_than_model(model)
    kind, name = split(model)
    if kind:
        _of_suites(model, "check_name")(kind, name)
    elif not Path(name).exists():
        read_graph(model)


def read_proto(
    model: str, shapes: Shapes | None = None, seed: int = 0, called: Shapes | None = None
) -> ModelProto:
    """The ONNX model for another runtime: the original model, or an export of its graph.

    The graph is exported if shapes are given, and if the model is one of PyTorch.

    called   shapes of all inputs of the only call; an exported graph needs no others
    """
    kind, name = split(model)
    if shapes or (not kind and is_archive(name)):
        return to_onnx(read_graph(model, called or shapes, seed, is_open=True))
    if not kind:
        return whole_model(name)
    proto: ModelProto = _of_suites(model, "read_proto")(kind, name, seed)
    return proto


def short_name(model: str) -> str:
    """The short name of a MODEL argument: without suite, folder and suffix."""
    kind, name = split(model)
    return name if kind else Path(model).stem


def row_name(model: str) -> str:
    """The name of a MODEL argument in tables: SUITE:NAME, or a file without folder and suffix."""
    kind, name = split(model)
    return f"{kind}:{name}" if kind else Path(name).stem


def _of_suites(model: str, function: str) -> Callable[..., Any]:
    """A function of the module that reads suites of networks; it is part of the laboratory."""
    called: Callable[..., Any] = LaboratoryPart(f"network {model}", "suites", function).load()
    return called
