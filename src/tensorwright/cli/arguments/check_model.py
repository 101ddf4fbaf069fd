"""Compare the outputs of a program with those of another runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import click
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tensorwright.base import Array
from tensorwright.cli.arguments.compilation import Compilation
from tensorwright.cli.arguments.models import read_proto
from tensorwright.graph.onnx_export import save_proto
from tensorwright.peers.process import PeerProcess, describe_error, max_rel_error, max_steps

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
