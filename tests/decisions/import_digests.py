"""Digests of what models become when they are read and written: graphs by import, models by export.

    onnx Softmax                 3f0c52a9d1e4    a model of one node, from the table of operators
    network encoder, dynamo      ...             a network with open sizes, as PyTorch exports it
    aten clamps                  ...             a function that PyTorch has traced
    file torch-2.9.1/cnn         ...             a .pt2 file
    export Softmax               ...             an imported graph, written as a model again

`python -m tests.decisions.import_digests NAME` prints the text whose digest a line has.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx.printer
import torch
from onnx import TensorProto, helper
from tests.unit.graph.onnx import operator_cases
from tests.unit.graph.onnx.operator_cases import OF_ONNXRUNTIME, RECIPES, Recipe
from tests.unit.graph.onnx.torch_networks import NETWORKS, exported
from tests.unit.integrations.pytorch.aten_cases import CASES
from tests.unit.integrations.pytorch.modules import Cnn, Transformer
from tests.unit.integrations.pytorch.records import record_of

from tensorwright.base import UnsupportedError
from tensorwright.graph import Graph
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.aten import load_exported
from tensorwright.graph.model_import import load_model
from tensorwright.graph.onnx_export import to_onnx

_SAVED = Path(__file__).parents[1] / "unit" / "graph" / "aten" / "saved"
_LARGE = 8  # bytes
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_PROGRAMS = {
    "cnn": (Cnn, (2, 3, 16, 16)),
    "transformer": (Transformer, (2, 7)),
}


def texts() -> Iterator[tuple[str, Callable[[], str]]]:
    """The name of each line, and what makes its text."""
    for recipe in (*RECIPES, *OF_ONNXRUNTIME):
        yield f"onnx {recipe}", functools.partial(_imported, recipe)
        yield f"export {recipe}", functools.partial(_written, recipe)
    for name in NETWORKS:
        yield f"network {name}", functools.partial(_network, name)
        yield f"export network {name}", functools.partial(_network, name, is_written=True)
    for case in CASES:
        yield f"aten {case[0]}", functools.partial(_traced, case[0])
    for name in _PROGRAMS:
        yield f"program {name}", functools.partial(_program, name)
    for path in sorted(_SAVED.glob("torch-2.1*/*.pt2")):
        if path.stem != "counter":
            yield f"file {path.parent.name}/{path.stem}", functools.partial(_file, path)


def page() -> str:
    """All lines."""
    lines = []
    for name, text in texts():
        lines.append(f"{name:44} {hashlib.sha256(text().encode()).hexdigest()[:12]}")
    return "\n".join(lines) + "\n"


def graph_text(graph: Graph) -> str:
    """A graph as text; of weights, which are random, only the types."""
    lines = str(graph).splitlines()
    weights = {
        name
        for name, array in graph.constants.items()
        if np.issubdtype(array.dtype, np.floating) and array.size > 1
    }
    kept = []
    for line in lines:
        head, is_constant, _ = line.partition(" = sha256:")
        name = head.strip().removeprefix("constant ").partition(":")[0]
        kept.append(head if is_constant and name in weights else line)
    return "\n".join(kept)


def model_text(model: onnx.ModelProto) -> str:
    """A model as text; weights, which are random, are its inputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    held = list(copy.graph.initializer)
    del copy.graph.initializer[:]
    for tensor in held:
        if tensor.data_type in _FLOATS and len(tensor.raw_data) > _LARGE:
            info = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            copy.graph.input.append(info)
        else:
            copy.graph.initializer.append(tensor)
    return onnx.printer.to_text(copy)


@functools.cache
def _graph(recipe: Recipe) -> Graph:
    case = operator_cases.cases_of(recipe)[0]
    model, _ = operator_cases.model_of(case, operator_cases.arrays_of(case))
    return load_onnx(model)


def _imported(recipe: Recipe) -> str:
    try:
        return graph_text(_graph(recipe))
    except UnsupportedError as error:
        return str(error)


def _written(recipe: Recipe) -> str:
    try:
        return model_text(to_onnx(_graph(recipe)))
    except UnsupportedError as error:
        return str(error)


@functools.cache
def _of_network(name: str) -> Graph:
    return load_onnx(exported(NETWORKS[name]), sizes=NETWORKS[name].sizes)


def _network(name: str, *, is_written: bool = False) -> str:
    graph = _of_network(name)
    return model_text(to_onnx(graph)) if is_written else graph_text(graph)


def _traced(name: str) -> str:
    (case,) = (each for each in CASES if each[0] == name)
    return graph_text(load_exported(record_of(*case[1:])))


def _program(name: str) -> str:
    kind, shape = _PROGRAMS[name]
    example = torch.zeros(shape, dtype=torch.float32 if name == "cnn" else torch.int64)
    batch = torch.export.Dim("batch", min=1, max=8)
    with torch.no_grad():
        program = torch.export.export(kind().eval(), (example,), dynamic_shapes=({0: batch},))
        return "\n".join(
            graph_text(load_model(each)) for each in (program, program.run_decompositions())
        )


def _file(path: Path) -> str:
    return graph_text(load_model(path))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(dict(texts())[" ".join(sys.argv[1:])]())
