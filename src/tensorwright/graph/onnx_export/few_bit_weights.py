"""Products of an ONNX model with constant matrices get weights of four or eight bits.

The form is MatMulNBits of ONNX Runtime: codes of a column in blocks, one scale for each block. As
in its quantizer, the number of a block that lies farthest from 0 becomes the lowest code, so that
no code is unused.

Source: com.microsoft.MatMulNBits in ONNX Runtime's ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tensorwright.base import Array
from tensorwright.graph.imports.com_microsoft.quantization import ROUNDED_ROWS

_DOMAIN = "com.microsoft"
_MATRIX = 2  # dimensions
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)


@dataclass(frozen=True, slots=True)
class FewBits:
    """The form of weights.

    bits         4 or 8           block   how many numbers of a column share a scale
    has_codes    whether rows of the data are rounded to 8 bits, too
    """

    bits: int
    block: int
    has_codes: bool = False

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of MatMulNBits."""
        rounding = {"accuracy_level": ROUNDED_ROWS} if self.has_codes else {}
        return {"bits": self.bits, "block_size": self.block, **rounding}


def with_few_bit_weights(
    model: ModelProto, form: FewBits, is_kept: Callable[[NodeProto], bool]
) -> ModelProto:
    """A copy of a model in which MatMul and Gemm multiply with weights of few bits.

    is_kept   for products whose weights stay as they are

    Constant matrices of finite f32 and f16 are quantised; products of a Gemm must not be scaled.
    """
    quantized = ModelProto()
    quantized.CopyFrom(model)
    graph = quantized.graph
    constants = {each.name: each for each in graph.initializer}
    made: dict[tuple[str, bool], tuple[str, str]] = {}
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        weights = None if is_kept(node) else _weights_of(node, constants)
        if weights is None:
            nodes.append(node)
            continue
        matrix, is_turned = weights
        key = (node.input[1], is_turned)
        if key not in made:
            made[key] = names = _names(*key)
            stored = quantized_blocks(matrix, form.bits, form.block)
            for name, array in zip(names, stored, strict=True):
                graph.initializer.append(numpy_helper.from_array(array, name))
        nodes += _product(node, made[key], matrix.shape, form)
    if made and all(each.domain != _DOMAIN for each in quantized.opset_import):
        quantized.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    del graph.node[:]
    graph.node.extend(nodes)
    _drop_unread(quantized)
    return quantized


def quantized_blocks(matrix: Array, bits: int, block: int) -> tuple[Array, Array]:
    """The codes of a matrix in bytes, [columns, blocks, block * bits / 8], and its scales,
    [columns, blocks].

    matrix   [rows, columns]
    """
    rows, columns = matrix.shape
    blocks = -(-rows // block)
    numbers = np.zeros((columns, blocks * block), np.float32)
    numbers[:, :rows] = matrix.T
    numbers = numbers.reshape(columns, blocks, block)
    middle = 1 << (bits - 1)
    farthest = np.take_along_axis(numbers, np.abs(numbers).argmax(-1)[..., None], -1)
    scales = (farthest / -middle).astype(matrix.dtype)
    steps = np.where(scales == 0, 1, scales).astype(np.float32)
    quantized = np.clip(np.rint(numbers / steps) + middle, 0, 2 * middle - 1).astype(np.uint8)
    if bits < 8:  # the first of two codes is the low half of a byte
        quantized = quantized[..., 0::2] | (quantized[..., 1::2] << np.uint8(bits))
    return quantized, scales[..., 0]


def _weights_of(node: NodeProto, constants: Mapping[str, TensorProto]) -> tuple[Array, bool] | None:
    """The constant matrix of a product, [rows, columns], and whether the model stores it turned."""
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    factors = [attributes.get(name, 1) for name in ("alpha", "beta")]
    is_plain = factors == [1, 1] and not attributes.get("transA", 0)
    if node.domain or node.op_type not in ("MatMul", "Gemm") or not is_plain:
        return None
    constant = constants.get(node.input[1])
    if constant is None or len(constant.dims) != _MATRIX or constant.data_type not in _FLOATS:
        return None
    is_turned = bool(attributes.get("transB", 0))
    matrix = numpy_helper.to_array(constant)
    if not np.isfinite(matrix).all():
        return None
    return (matrix.T if is_turned else matrix), is_turned


def _names(weights: str, is_turned: bool) -> tuple[str, str]:
    stem = f"{weights}_transposed" if is_turned else weights
    return f"{stem}_codes", f"{stem}_scales"


def _product(
    node: NodeProto, operands: tuple[str, str], shape: tuple[int, ...], form: FewBits
) -> list[NodeProto]:
    """The product with weights of few bits, and the sum with what a Gemm adds."""
    has_sum = len(node.input) > 2 and bool(node.input[2])
    result = f"{node.output[0]}_product" if has_sum else node.output[0]
    product = helper.make_node(
        "MatMulNBits",
        [node.input[0], *operands],
        [result],
        name=node.name,
        domain=_DOMAIN,
        K=shape[0],
        N=shape[1],
        **form.attributes,
    )
    if not has_sum:
        return [product]
    return [product, helper.make_node("Add", [result, node.input[2]], node.output)]


def _drop_unread(model: ModelProto) -> None:
    """Drop the constants that nothing reads any more; old models list them as inputs, too."""
    read = {each.name for each in model.graph.output}
    stack = [model.graph]
    while stack:
        graph = stack.pop()
        for node in graph.node:
            read.update(node.input)
            stack += [each.g for each in node.attribute if each.HasField("g")]
    dropped = {each.name for each in model.graph.initializer} - read
    for values in (model.graph.initializer, model.graph.input):
        kept = [each for each in values if each.name not in dropped]
        del values[:]
        values.extend(kept)
