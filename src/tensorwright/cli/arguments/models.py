"""Read a MODEL argument: a file (.onnx, .gguf, .pt2), or a network: zoo:NAME and its like.

Compare the outputs of a program with those of the model in another runtime.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tensorwright.base import Array, LaboratoryPart
from tensorwright.cli.arguments.options import (
    Compilation,
    refuse_given,
    refuse_other_than_model,
    split,
)
from tensorwright.compile_options import Shapes, Sizes
from tensorwright.graph import Graph, require_numbers
from tensorwright.graph.imports import whole_model
from tensorwright.graph.imports.aten import is_archive
from tensorwright.graph.model_import import load_model
from tensorwright.graph.onnx_export import save_proto, to_onnx
from tensorwright.peers.process import PeerProcess, describe_error, max_rel_error, max_steps


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


def _of_suites(model: str, function: str) -> Callable[..., Any]:
    """A function of the module that reads suites of networks; it is part of the laboratory."""
    called: Callable[..., Any] = LaboratoryPart(f"network {model}", "suites", function).load()
    return called


TOLERANCE = 1e-4
"""The allowed difference, relative to an output's largest number: sums may be in another order."""
TOLERANCE_STEPS = 1.01
"""The allowed difference of a quantised output, in steps: two roundings may differ by one step."""
_MOVING = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Dropout")
_CODES = (TensorProto.INT8, TensorProto.UINT8)
_DEQUANTIZING = "DequantizeLinear"


def quantised_steps(model: ModelProto) -> dict[str, float]:
    """The step of each quantised output: the distance between neighbouring numbers.

    The step of an output of eight-bit codes is 1. The step of an output of DequantizeLinear is its
    scale, if the scale is one constant number. Other outputs have no step.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    numbers = {each.name: each for each in model.graph.initializer}
    steps: dict[str, float] = {}
    for output in model.graph.output:
        node = moved_from(output.name, makers)
        if output.type.tensor_type.elem_type in _CODES:
            steps[output.name] = 1.0
        elif node is not None and node.op_type == _DEQUANTIZING and node.input[1] in numbers:
            scale = numpy_helper.to_array(numbers[node.input[1]])
            if scale.size == 1 and float(scale.reshape(-1)[0]) > 0:
                steps[output.name] = float(scale.reshape(-1)[0])
    return steps


def moved_from(name: str, makers: Mapping[str, NodeProto]) -> NodeProto | None:
    """The node that computes the numbers of a tensor; nodes that only move numbers are skipped."""
    node = makers.get(name)
    while node is not None and node.op_type in _MOVING:
        node = makers.get(node.input[0])
    return node


def agrees(
    peer: str,
    model: str,
    how: Compilation,
    threads: int,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
) -> bool:
    """Run a MODEL in another runtime on the same inputs; return whether its outputs agree.

    Print the largest error, and whether it is small enough.
    Raises:  PeerFailed if the other runtime refuses, crashes or hangs.
    """
    called = {name: array.shape for name, array in inputs.items()}
    proto = read_proto(model, how.input_shapes, how.seed, called)
    steps = quantised_steps(proto)
    with tempfile.TemporaryDirectory(prefix="tensorwright-check-") as folder:
        path = Path(folder) / "model.onnx"
        save_proto(proto, path)
        with PeerProcess(peer, peer) as process:
            info = process.load(str(path), threads)
            theirs = process.check(inputs)
    error, apart = max_rel_error(outputs, theirs, steps), max_steps(outputs, theirs, steps)
    is_near = error <= TOLERANCE and (apart or 0.0) <= TOLERANCE_STEPS
    limit = f"{TOLERANCE:g} of the largest number" if apart is None else "1 step"
    click.echo(
        f"{peer} {info.version}: largest error {describe_error(error, apart)}, "
        f"{'passes' if is_near else 'FAILS'} (at most {limit})"
    )
    return is_near
