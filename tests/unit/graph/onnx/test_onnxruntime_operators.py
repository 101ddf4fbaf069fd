"""ONNX Runtime's own operators, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from onnx import ModelProto
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, node_cases, node_model

import tensorwright
from tensorwright.base import UnsupportedError
from tensorwright.graph import interpret, simplify, verify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.com_microsoft import COM_MICROSOFT
from tensorwright.ops import Array

pytestmark = pytest.mark.usefixtures("by_rule")

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def codes(*shape: int, signed: bool = False) -> Array:
    """Signed ones of seven bits: without VNNI, ONNX Runtime adds two products in 16 bits."""
    low, high = (-64, 64) if signed else (0, 256)
    return RANDOM.integers(low, high, shape).astype(np.int8 if signed else np.uint8)


def scale(*shape: int) -> Array:
    return RANDOM.uniform(0.01, 0.05, shape).astype(np.float32)


ZERO, ZERO_I8 = np.uint8(120), np.int8(3)


def check(
    model: ModelProto, inputs: Mapping[str, Array], tolerance: float = 2e-5, apart: float = 0.05
) -> None:
    """Equal to ONNX Runtime; a part of the codes may differ by one, where a number lies between."""
    graph = verify(simplify(load_onnx(model)))
    found = interpret(graph, inputs)
    for name, expected in zip(graph.outputs, by_onnxruntime(model, inputs), strict=True):
        assert found[name].dtype == expected.dtype
        if expected.dtype.kind in "iu":
            distance = np.abs(found[name].astype(np.int64) - expected)
            assert distance.max(initial=0) <= 1
            assert (distance > 0).mean() <= apart
        else:
            np.testing.assert_allclose(found[name], expected, rtol=tolerance, atol=tolerance)


MASKS: dict[str, Array | None] = {
    "none": None,
    "keys": RANDOM.integers(0, 2, (2, 5)).astype(np.int32) | np.array([1, 0, 0, 0, 0], np.int32),
    "rows and keys": np.tril(np.ones((2, 5, 5), np.int32)),
    "lengths": np.array([3, 5], np.int32),
}
ONE = (1, 4, 6, 6)


def words(most: int, *shape: int) -> Array:
    return RANDOM.integers(0, most, shape).astype(np.int32)


def of_codes(*shapes: tuple[int, ...]) -> list[Array]:
    """Codes, scale and zero point of each shape."""
    return [each for shape in shapes for each in (codes(*shape), scale(), ZERO)]


PLAIN = """
gelu: Gelu(normal(3, 5))
bias gelu: BiasGelu(normal(3, 5), normal(5))
fast gelu: FastGelu(normal(3, 5))
fast gelu of a sum: FastGelu(normal(3, 5), normal(5))
quick gelu: QuickGelu(normal(3, 5), alpha=1.5)
product: FusedMatMul(normal(2, 3, 5), normal(2, 5, 4), alpha=0.3)
product, transposed: FusedMatMul(normal(2, 5, 3), normal(2, 4, 5), transA=1, transB=1)
product of a vector: FusedMatMul(normal(5), normal(5, 4), transA=1)
convolution: FusedConv(normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4), activation="Relu",
    pads=[1, 1, 1, 1])
convolution and a sum: FusedConv(normal(1, 3, 6, 6), normal(4, 3, 1, 1), normal(4),
    normal(1, 4, 6, 6), activation="LeakyRelu", activation_params=[0.2])
gemm: FusedGemm(normal(3, 5), normal(4, 5), normal(4), activation="LeakyRelu",
    activation_alpha=0.2, transB=1)
rotary: RotaryEmbedding(normal(2, 3, 8), np.array([1]), normal(9, 2), normal(9, 2))
rotary, heads: RotaryEmbedding(normal(2, 3, 4, 8), RANDOM.integers(0, 9, (2, 4)), normal(9, 4),
    normal(9, 4), interleaved=1)
rotary, a part: RotaryEmbedding(normal(2, 4, 24), RANDOM.integers(0, 9, (2, 4)), normal(9, 2),
    normal(9, 2), num_heads=3, rotary_embedding_dim=4)
rms: SkipSimplifiedLayerNormalization(normal(2, 3, 8), normal(2, 3, 8), normal(8))
rms in the default domain: SimplifiedLayerNormalization(normal(2, 8), normal(8), domain="")
embeddings: EmbedLayerNormalization(words(9, 2, 5), words(9, 2, 5), normal(9, 8),
    normal(7, 8), normal(9, 8), normal(8), normal(8), outputs=2)
embeddings and a mask: EmbedLayerNormalization(words(9, 2, 5), words(9, 2, 5), normal(9, 8),
    normal(7, 8), normal(9, 8), normal(8), normal(8), words(2, 2, 5), outputs=2)
attention, {mask}, {once}: Attention(normal(2, 5, 12), normal(12, 36), normal(36), MASKS["{mask}"],
    num_heads=3, unidirectional={once})
    for mask in MASKS for once in (0, 1)
attention with sizes: Attention(normal(2, 5, 12), normal(12, 32), normal(32), None, None,
    normal(2, 2, 5, 5), num_heads=2, qkv_hidden_sizes=[12, 12, 8])
attention with a past: Attention(normal(2, 5, 12), normal(12, 36), normal(36), None,
    normal(2, 2, 3, 4, 4), outputs=2, num_heads=3, unidirectional=1, scale=0.7)
attention of what is projected, {mask}: MultiHeadAttention(normal(2, 4, 12), normal(2, 5, 12),
    normal(2, 5, 18), normal(42), MASKS["{mask}"], num_heads=3)
    for mask in ("none", "keys", "lengths")
attention of a decoder: MultiHeadAttention(normal(2, 2, 12), normal(2, 2, 12), normal(2, 2, 12),
    None, None, normal(1, 3, 2, 6), normal(2, 3, 4, 4), normal(2, 3, 4, 4), outputs=3, num_heads=3,
    unidirectional=1)
attention of heads: MultiHeadAttention(normal(2, 2, 12), normal(2, 3, 7, 4), normal(2, 3, 7, 4),
    num_heads=3)
codes: QuantizeLinear(normal(3, 4), scale(), ZERO)
numbers of codes: DequantizeLinear(codes(3, 4), scale(), ZERO)
weights of {bits} bits: MatMulNBits(normal(3, 40), codes(6, 3, 2 * {bits}), scale(18),
    constants=2, N=6, K=40, bits={bits}, block_size=16)
    for bits in (4, 8)
weights of {bits} bits, zeros: MatMulNBits(normal(3, 40), codes(6, 3, 2 * {bits}), scale(18),
    codes(6 * -(-3 * {bits} // 8)), constants=3, N=6, K=40, bits={bits}, block_size=16)
    for bits in (4, 8)
"""
QUANTIZED = """
add: QLinearAdd(*of_codes((3, 4), (4,)), scale(), ZERO)
mul: QLinearMul(*of_codes((3, 4), (3, 4)), scale(), ZERO)
sigmoid: QLinearSigmoid(*of_codes((3, 4)), np.float32(0.004), np.uint8(0))
leaky: QLinearLeakyRelu(*of_codes((3, 4)), scale(), ZERO, alpha=0.3)
softmax: QLinearSoftmax(*of_codes((3, 8)), np.float32(0.004), np.uint8(0), axis=-1, opset=13)
average: QLinearAveragePool(*of_codes(ONE), scale(), ZERO, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
mean: QLinearGlobalAveragePool(*of_codes(ONE), np.float32(0.01), ZERO)
concat: QLinearConcat(scale(), ZERO, *of_codes((3, 4), (3, 2)), axis=1)
where: QLinearWhere(np.array([True, False, True]), *of_codes((2, 3), (2, 3)), scale(), ZERO)
gemm: QGemm(codes(3, 8), scale(), ZERO, codes(5, 8, signed=True), scale(5), np.full(5, ZERO_I8),
    RANDOM.integers(-99, 99, 5).astype(np.int32), scale(), ZERO, transB=1)
gemm to floats: QGemm(codes(3, 8), scale(), ZERO, codes(8, 5, signed=True), scale(), ZERO_I8,
    alpha=0.5)
product: MatMulIntegerToFloat(codes(3, 8), codes(8, 5, signed=True), scale(), scale(5), ZERO,
    np.full(5, ZERO_I8))
product and bias: MatMulIntegerToFloat(codes(3, 8), codes(8, 5), scale(), scale(), ZERO, ZERO,
    normal(5))
dynamic: DynamicQuantizeMatMul(normal(2, 3, 8), codes(8, 5, signed=True), scale(5),
    np.full(5, ZERO_I8), normal(5))
attention: QAttention(codes(2, 5, 12), codes(12, 36, signed=True), normal(36), scale(), scale(),
    MASKS["keys"], ZERO, ZERO_I8, num_heads=3)
"""
FLOATS, CODES = node_cases(PLAIN, globals()), node_cases(QUANTIZED, globals())


@pytest.mark.parametrize("case", FLOATS)
def test_floats(case: str) -> None:
    check(*FLOATS[case], tolerance=1e-4 if "bits" in case else 2e-5)


@pytest.mark.parametrize("case", CODES)
def test_codes(case: str) -> None:
    apart = 0.3 if case == "softmax" else 0.05  # its sums are of integers there
    check(*CODES[case], tolerance=2e-4, apart=apart)


@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)])
def test_a_normalised_sum_is_an_output_too(skip: tuple[int, ...]) -> None:
    rows = [normal(2, 3, 8), normal(*skip), normal(8), normal(8), normal(8)]
    model, given = node_model("SkipLayerNormalization", *rows, outputs=4, epsilon=1e-3)
    del model.graph.output[1:3]
    model.graph.node[0].output[1:3] = ["", ""]
    check(model, given)


def test_each_operator_has_a_case() -> None:
    models = [model for model, _ in (*FLOATS.values(), *CODES.values())]
    tried = {model.graph.node[0].op_type for model in models}
    elsewhere = {"SkipLayerNormalization", "DynamicQuantizeLSTM"}
    elsewhere |= {"GatherBlockQuantized", "GroupQueryAttention"}
    assert tried | elsewhere == COM_MICROSOFT.keys()


REFUSED = """
transBatchA: FusedMatMul(normal(2, 3, 5), normal(2, 5, 4), transBatchA=1)
Cbrt: FusedConv(normal(1, 3, 6, 6), normal(4, 3, 1, 1), activation="Cbrt")
5 heads: Attention(normal(2, 5, 12), normal(12, 36), num_heads=5)
channels_l: QLinearSigmoid(*of_codes((2, 3)), scale(), ZERO, channels_last=1)
3 bits: MatMulNBits(normal(3, 32), codes(6, 2, 6), scale(12), N=6, K=32, bits=3, block_size=16)
blocks of 20 weights: MatMulNBits(normal(3, 32), codes(6, 2, 8), scale(6), N=6, K=32, block_size=20)
we have no operator for it: NGramRepeatBlock(normal(2))
"""


@pytest.mark.parametrize("reason", node_cases(REFUSED, globals()))
def test_what_is_refused(reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        load_onnx(node_cases(REFUSED, globals())[reason][0])


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_positions_among_nan_are_those_that_onnxruntime_gives(
    operator: str, axis: int, last: int
) -> None:
    """NaN counts only as the first element; to PyTorch it is the extremum."""
    nan, inf = np.nan, np.inf
    rows = [[1, nan, 3, -inf], [nan, 2, nan, 1], [0, 1, 2, 2], [nan] * 4, [inf, nan, inf, 1]]
    more = {"axis": axis, "select_last_index": last}
    model, inputs = node_model(operator, np.asarray(rows, np.float32), domain="", **more)
    check(model, inputs, apart=0)
    (positions,) = tensorwright.compile(model).run(inputs).values()
    np.testing.assert_array_equal(positions, by_onnxruntime(model, inputs)[0])
