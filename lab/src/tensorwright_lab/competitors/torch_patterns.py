"""What one who runs PyTorch for inference would write by hand, found in an ONNX graph.

Batch normalisations go into the weights of the convolutions before them; attention that is spelt
out (matmul, scale, softmax, matmul) becomes the one operator that PyTorch has for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, numpy_helper

Constants = dict[str, np.ndarray[Any, Any]]

ATTENTION = "ScaledDotProductAttention"
"""Kind of the node that stands for attention: inputs q, transposed k, v; attribute `scale`."""


def read_attributes(node: NodeProto) -> Mapping[str, Any]:
    """The attributes as Python values: bytes as text, tensors as arrays."""
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            value = value.decode()
        elif isinstance(value, onnx.TensorProto):
            value = numpy_helper.to_array(value)
        attributes[attribute.name] = value
    return attributes


def fold_norms(
    nodes: Sequence[NodeProto], constants: Constants, outputs: Sequence[str]
) -> list[NodeProto]:
    """Multiply batch normalisations into the convolutions before them, if these have no other
    reader.

    Rewrite:  (conv(x, w, b) - mean) * s + bias    ->    conv(x, w * s, (b - mean) * s + bias)
              with s = scale / sqrt(var + epsilon)
    The nodes are copies; new weights are added to `constants`.
    """
    reads = _count_reads(nodes, outputs)
    makers: dict[str, NodeProto] = {}
    kept: list[NodeProto] = []
    for node in nodes:
        maker = makers.get(node.input[0]) if node.input else None
        if (
            node.op_type == "BatchNormalization"
            and maker is not None
            and maker.op_type in ("Conv", "ConvTranspose")
            and reads[node.input[0]] == 1
            and all(name in constants for name in (*node.input[1:5], *maker.input[1:]))
        ):
            _fold(maker, node, constants)
            makers[node.output[0]] = maker
            continue
        copy = NodeProto()
        copy.CopyFrom(node)
        kept.append(copy)
        makers.update(dict.fromkeys(copy.output, copy))
    return kept


def join_attention(
    nodes: Sequence[NodeProto], constants: Constants, outputs: Sequence[str]
) -> list[NodeProto]:
    """Replace matmul, multiplication by a number, softmax and matmul by one node.

    Rewrite:  softmax((q @ k) * scale, -1) @ v    ->    attention(q, k, v)
    """
    reads = _count_reads(nodes, outputs)
    makers = {name: node for node in nodes for name in node.output}

    def before(node: NodeProto | None, kind: str) -> NodeProto | None:
        """The node that makes the first input, if it is of that kind and has no other reader."""
        maker = makers.get(node.input[0]) if node is not None and node.input else None
        fits = maker is not None and maker.op_type == kind and reads[maker.output[0]] == 1
        return maker if fits else None

    gone: set[str] = set()
    joined: dict[str, NodeProto] = {}
    for node in nodes:
        if node.op_type != "MatMul":
            continue
        softmax = before(node, "Softmax")
        product = before(softmax, "Mul")
        scores = before(product, "MatMul")
        if softmax is None or product is None or scores is None:
            continue
        scale = constants.get(product.input[1])
        if (
            scale is None
            or scale.size != 1
            or read_attributes(softmax).get("axis", -1) not in (-1, 3)
        ):
            continue
        gone.update(each.output[0] for each in (softmax, product, scores))
        joined[node.output[0]] = onnx.helper.make_node(
            ATTENTION, [*scores.input, node.input[1]], node.output, scale=float(scale.item())
        )
    return [joined.get(node.output[0], node) for node in nodes if node.output[0] not in gone]


def _count_reads(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> Counter[str]:
    reads = Counter(name for node in nodes for name in node.input)
    reads.update(outputs)
    return reads


def _fold(maker: NodeProto, norm: NodeProto, constants: Constants) -> None:
    """w' = w * s, b' = (b - mean) * s + bias, with s = scale / sqrt(var + epsilon)."""
    scale, bias, mean, var = (constants[name].astype(np.float64) for name in norm.input[1:5])
    factor = scale / np.sqrt(var + read_attributes(norm).get("epsilon", 1e-5))
    weight = constants[maker.input[1]]
    rest = (1,) * (weight.ndim - 2)
    if maker.op_type == "Conv":
        shaped = factor.reshape(-1, 1, *rest)
    else:  # (inputs, outputs of a group, ...): each group of inputs has its own outputs
        groups = int(read_attributes(maker).get("group", 1))
        each = np.repeat(factor.reshape(groups, -1), weight.shape[0] // groups, axis=0)
        shaped = each.reshape(*each.shape, *rest)
    old = constants[maker.input[2]] if len(maker.input) > 2 else np.zeros_like(mean)
    names = [f"{norm.output[0]}/weight", f"{norm.output[0]}/bias"]
    constants[names[0]] = (weight * shaped).astype(weight.dtype)
    constants[names[1]] = ((old - mean) * factor + bias).astype(weight.dtype)
    kept = maker.input[0]
    del maker.input[:]
    maker.input.extend([kept, *names])
    maker.output[0] = norm.output[0]
