"""The structures of well-known networks that the onnx package carries, with seeded random weights.

Their own weights are all 0.02, so that every class gets the same score, and a wrong order of
channels goes unseen.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tensorwright.base import ModelError, unknown_name

LIGHT_MODELS = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
_FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"
_NORM_INPUTS = ("x", "scale", "bias", "mean", "var")


def _fill(node: NodeProto, shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape of a constant-filled weight; None for another node."""
    return shapes.get(node.input[0]) if node.op_type == "ConstantOfShape" else None


def _roles(model: ModelProto) -> dict[str, tuple[str, int]]:
    """For each tensor the operator that reads it and where, seen through Unsqueeze."""
    through = {n.input[0]: n.output[0] for n in model.graph.node if n.op_type == "Unsqueeze"}
    roles = {}
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            roles[name] = (node.op_type, position)
    for source in through:
        target = source
        while target in through:
            target = through[target]
        roles[source] = roles.get(target, ("", 0))
    return roles


def _draw(
    shape: tuple[int, ...],
    role: tuple[str, int],
    generator: np.random.Generator,
    *,
    residual: bool,
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Weights of the scale of He et al. (2015), variances and scales near 1, small biases.

    Where branches are summed both are smaller, or activations double with every block.
    """
    operator, position = role
    kind = _NORM_INPUTS[position] if operator == "BatchNormalization" and position < 5 else ""
    if kind == "scale" and residual:
        return generator.uniform(0.35, 1.05, shape).astype(np.float32)
    if kind in ("scale", "var") or (operator == "Mul" and len(shape) < 4):
        return generator.uniform(0.5, 1.5, shape).astype(np.float32)
    deviation = 0.1
    if len(shape) > 1:
        deviation = math.sqrt((1.0 if residual else 2.0) / math.prod(shape[1:]))
    return generator.standard_normal(shape, np.float32) * np.float32(deviation)


def seeded_weights(model: ModelProto, seed: int) -> ModelProto:
    """A copy of the model with constant-filled weights replaced by random initialisers.

    Every tensor is drawn from the seed and its name: the order of nodes does not matter.
    """
    shapes = {
        tensor.name: tuple(int(n) for n in numpy_helper.to_array(tensor).reshape(-1))
        for tensor in model.graph.initializer
        if tensor.data_type == TensorProto.INT64
    }
    roles = _roles(model)
    residual = any(node.op_type == "Sum" for node in model.graph.node)
    seeded = ModelProto()
    seeded.CopyFrom(model)
    del seeded.graph.node[:]
    for node in model.graph.node:
        shape = _fill(node, shapes)
        if shape is None:
            seeded.graph.node.append(node)
            continue
        name = node.output[0]
        generator = np.random.default_rng((seed, zlib.crc32(name.encode())))
        values = _draw(shape, roles.get(name, ("", 0)), generator, residual=residual)
        seeded.graph.initializer.append(numpy_helper.from_array(values, name))
    used = {name for node in seeded.graph.node for name in node.input}
    initializers = [each for each in seeded.graph.initializer if each.name in used]
    held = {each.name for each in seeded.graph.initializer}
    inputs = [each for each in seeded.graph.input if each.name not in held]
    del seeded.graph.initializer[:], seeded.graph.input[:]
    seeded.graph.initializer.extend(initializers)
    seeded.graph.input.extend(inputs)
    seeded.ir_version = max(seeded.ir_version, 4)  # from 4 on initialisers need not be inputs
    return seeded


def load_light(name: str, seed: int = 0) -> ModelProto:
    """One of `LIGHT_MODELS` with seeded weights; input (1, 3, 224, 224).

    Raises:  UsageError for another name, ModelError if the onnx package lacks its test data.
    """
    if name not in LIGHT_MODELS:
        where = f"light model {name!r}"
        raise unknown_name("zoo", where, "there is no such model", name, LIGHT_MODELS)
    path = _FOLDER / f"light_{name}.onnx"
    if not path.is_file():
        raise ModelError(
            stage="zoo",
            where=f"file {path}",
            reason="the installed onnx package does not carry it",
            remedy="install onnx from its wheel",
        )
    return seeded_weights(onnx.load(path), seed)
