"""ONNX Runtime's own operators, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

import tensorwright
from tensorwright.base import UnsupportedError
from tensorwright.graph import interpret, simplify, verify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.com_microsoft import COM_MICROSOFT
from tensorwright.ops import Array

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


def model_of(
    operator: str,
    inputs: Sequence[Array | None],
    constants: int = 0,
    outputs: int = 1,
    domain: str = "com.microsoft",
    **attributes: Any,
) -> tuple[ModelProto, dict[str, Array]]:
    """A model of one node, and its inputs; the last ones are constants."""
    names = ["" if array is None else f"x{n}" for n, array in enumerate(inputs)]
    results = [f"y{n}" for n in range(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    given = {n: np.asarray(a) for n, a in zip(names, inputs, strict=True) if a is not None}
    fixed = [name for name in names[len(names) - constants :] if name]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in given.items()
        if n not in fixed
    ]
    initializers = [numpy_helper.from_array(given[name], name) for name in fixed]
    wanted = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "test", infos, wanted, initializers)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    return model, {name: array for name, array in given.items() if name not in fixed}


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


PLAIN: dict[str, tuple[str, Sequence[Array | None], dict[str, Any]]] = {
    "gelu": ("Gelu", [normal(3, 5)], {}),
    "bias gelu": ("BiasGelu", [normal(3, 5), normal(5)], {}),
    "fast gelu": ("FastGelu", [normal(3, 5)], {}),
    "fast gelu of a sum": ("FastGelu", [normal(3, 5), normal(5)], {}),
    "quick gelu": ("QuickGelu", [normal(3, 5)], {"alpha": 1.5}),
    "product": ("FusedMatMul", [normal(2, 3, 5), normal(2, 5, 4)], {"alpha": 0.3}),
    "product, transposed": (
        "FusedMatMul",
        [normal(2, 5, 3), normal(2, 4, 5)],
        {"transA": 1, "transB": 1},
    ),
    "product of a vector": ("FusedMatMul", [normal(5), normal(5, 4)], {"transA": 1}),
    "convolution": (
        "FusedConv",
        [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4)],
        {"activation": "Relu", "pads": [1, 1, 1, 1]},
    ),
    "convolution and a sum": (
        "FusedConv",
        [normal(1, 3, 6, 6), normal(4, 3, 1, 1), normal(4), normal(1, 4, 6, 6)],
        {"activation": "LeakyRelu", "activation_params": [0.2]},
    ),
    "gemm": (
        "FusedGemm",
        [normal(3, 5), normal(4, 5), normal(4)],
        {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1},
    ),
    "rotary": ("RotaryEmbedding", [normal(2, 3, 8), np.array([1]), normal(9, 2), normal(9, 2)], {}),
    "rotary, heads": (
        "RotaryEmbedding",
        [normal(2, 3, 4, 8), RANDOM.integers(0, 9, (2, 4)), normal(9, 4), normal(9, 4)],
        {"interleaved": 1},
    ),
    "rotary, a part": (
        "RotaryEmbedding",
        [normal(2, 4, 24), RANDOM.integers(0, 9, (2, 4)), normal(9, 2), normal(9, 2)],
        {"num_heads": 3, "rotary_embedding_dim": 4},
    ),
    "rms": ("SkipSimplifiedLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8)], {}),
}


@pytest.mark.parametrize("case", PLAIN)
def test_floats(case: str) -> None:
    operator, inputs, attributes = PLAIN[case]
    check(*model_of(operator, inputs, **attributes))


@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)])
def test_a_normalised_sum_is_an_output_too(skip: tuple[int, ...]) -> None:
    inputs = [normal(2, 3, 8), normal(*skip), normal(8), normal(8), normal(8)]
    model, given = model_of("SkipLayerNormalization", inputs, outputs=4, epsilon=1e-3)
    del model.graph.output[1:3]
    model.graph.node[0].output[1:3] = ["", ""]
    check(model, given)


def test_an_rms_normalisation_in_the_default_domain() -> None:
    check(*model_of("SimplifiedLayerNormalization", [normal(2, 8), normal(8)], domain=""))


@pytest.mark.parametrize("has_mask", [True, False])
def test_embeddings(has_mask: bool) -> None:
    words = [RANDOM.integers(0, 9, (2, 5)).astype(np.int32) for _ in range(2)]
    tables = [normal(9, 8), normal(7, 8), normal(9, 8), normal(8), normal(8)]
    mask = [RANDOM.integers(0, 2, (2, 5)).astype(np.int32)] if has_mask else []
    check(*model_of("EmbedLayerNormalization", [*words, *tables, *mask], outputs=2))


MASKS: dict[str, Array | None] = {
    "none": None,
    "keys": RANDOM.integers(0, 2, (2, 5)).astype(np.int32) | np.array([1, 0, 0, 0, 0], np.int32),
    "rows and keys": np.tril(np.ones((2, 5, 5), np.int32)),
    "lengths": np.array([3, 5], np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(mask: str, unidirectional: int) -> None:
    inputs = [normal(2, 5, 12), normal(12, 36), normal(36), MASKS[mask]]
    flags = {"num_heads": 3, "unidirectional": unidirectional}
    check(*model_of("Attention", inputs, **flags))


def test_attention_with_sizes_a_past_and_numbers_for_the_scores() -> None:
    inputs = [normal(2, 5, 12), normal(12, 32), normal(32)]
    sizes = {"num_heads": 2, "qkv_hidden_sizes": [12, 12, 8]}
    check(*model_of("Attention", [*inputs, None, None, normal(2, 2, 5, 5)], **sizes))
    inputs = [normal(2, 5, 12), normal(12, 36), normal(36), None, normal(2, 2, 3, 4, 4)]
    flags = {"num_heads": 3, "unidirectional": 1, "scale": 0.7}
    check(*model_of("Attention", inputs, outputs=2, **flags))


@pytest.mark.parametrize("mask", ["none", "keys", "lengths"])
def test_attention_of_what_is_projected(mask: str) -> None:
    rows = [normal(2, 4, 12), normal(2, 5, 12), normal(2, 5, 18)]
    check(*model_of("MultiHeadAttention", [*rows, normal(42), MASKS[mask]], num_heads=3))


def test_attention_of_a_decoder() -> None:
    rows = [normal(2, 2, 12) for _ in range(3)]
    past = [normal(2, 3, 4, 4) for _ in range(2)]
    inputs = [*rows, None, None, normal(1, 3, 2, 6), *past]
    check(*model_of("MultiHeadAttention", inputs, outputs=3, num_heads=3, unidirectional=1))
    split = [normal(2, 2, 12), normal(2, 3, 7, 4), normal(2, 3, 7, 4)]
    check(*model_of("MultiHeadAttention", split, num_heads=3))


def of_codes(*shapes: tuple[int, ...]) -> list[Array | None]:
    """Codes, scale and zero point of each shape."""
    return [each for shape in shapes for each in (codes(*shape), scale(), ZERO)]


ONE = (1, 4, 6, 6)
QUANTIZED: dict[str, tuple[str, Sequence[Array | None], dict[str, Any]]] = {
    "add": ("QLinearAdd", [*of_codes((3, 4), (4,)), scale(), ZERO], {}),
    "mul": ("QLinearMul", [*of_codes((3, 4), (3, 4)), scale(), ZERO], {}),
    "sigmoid": ("QLinearSigmoid", [*of_codes((3, 4)), np.float32(0.004), np.uint8(0)], {}),
    "leaky": ("QLinearLeakyRelu", [*of_codes((3, 4)), scale(), ZERO], {"alpha": 0.3}),
    "softmax": (
        "QLinearSoftmax",
        [*of_codes((3, 8)), np.float32(0.004), np.uint8(0)],
        {"axis": -1, "opset": 13},
    ),
    "average": (
        "QLinearAveragePool",
        [*of_codes(ONE), scale(), ZERO],
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    ),
    "mean": ("QLinearGlobalAveragePool", [*of_codes(ONE), np.float32(0.01), ZERO], {}),
    "concat": ("QLinearConcat", [scale(), ZERO, *of_codes((3, 4), (3, 2))], {"axis": 1}),
    "where": (
        "QLinearWhere",
        [np.array([True, False, True]), *of_codes((2, 3), (2, 3)), scale(), ZERO],
        {},
    ),
    "gemm": (
        "QGemm",
        [
            *(codes(3, 8), scale(), ZERO, codes(5, 8, signed=True), scale(5)),
            *(np.full(5, ZERO_I8), RANDOM.integers(-99, 99, 5).astype(np.int32), scale(), ZERO),
        ],
        {"transB": 1},
    ),
    "gemm to floats": (
        "QGemm",
        [codes(3, 8), scale(), ZERO, codes(8, 5, signed=True), scale(), ZERO_I8],
        {"alpha": 0.5},
    ),
    "product": (
        "MatMulIntegerToFloat",
        [codes(3, 8), codes(8, 5, signed=True), scale(), scale(5), ZERO, np.full(5, ZERO_I8)],
        {},
    ),
    "product and bias": (
        "MatMulIntegerToFloat",
        [codes(3, 8), codes(8, 5), scale(), scale(), ZERO, ZERO, normal(5)],
        {},
    ),
    "dynamic": (
        "DynamicQuantizeMatMul",
        [normal(2, 3, 8), codes(8, 5, signed=True), scale(5), np.full(5, ZERO_I8), normal(5)],
        {},
    ),
    "attention": (
        "QAttention",
        [
            *(codes(2, 5, 12), codes(12, 36, signed=True), normal(36), scale(), scale()),
            *(MASKS["keys"], ZERO, ZERO_I8),
        ],
        {"num_heads": 3},
    ),
}


@pytest.mark.parametrize("case", QUANTIZED)
def test_codes(case: str) -> None:
    operator, inputs, attributes = QUANTIZED[case]
    apart = 0.3 if case == "softmax" else 0.05  # its sums are of integers there
    check(*model_of(operator, inputs, **attributes), tolerance=2e-4, apart=apart)


def test_codes_of_their_own_types() -> None:
    check(*model_of("QuantizeLinear", [normal(3, 4), scale(), ZERO]))
    check(*model_of("DequantizeLinear", [codes(3, 4), scale(), ZERO]))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [True, False])
def test_weights_of_few_bits(bits: int, has_zeros: bool) -> None:
    columns, inner, block = 6, 40, 16
    blocks = -(-inner // block)
    inputs = [normal(3, inner), codes(columns, blocks, block * bits // 8), scale(columns * blocks)]
    if has_zeros:
        inputs.append(codes(columns * -(-blocks * bits // 8)))
    sizes = {"N": columns, "K": inner, "bits": bits, "block_size": block}
    check(*model_of("MatMulNBits", inputs, constants=len(inputs) - 1, **sizes), tolerance=1e-4)


def test_each_operator_has_a_case() -> None:
    tried = {operator for operator, _, _ in (*PLAIN.values(), *QUANTIZED.values())}
    tried |= {"SkipLayerNormalization", "SimplifiedLayerNormalization", "EmbedLayerNormalization"}
    tried |= {"Attention", "MultiHeadAttention", "QuantizeLinear", "DequantizeLinear"}
    assert tried | {"MatMulNBits", "DynamicQuantizeLSTM"} == COM_MICROSOFT.keys()


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "reason"),
    [
        ("FusedMatMul", [normal(2, 3, 5), normal(2, 5, 4)], {"transBatchA": 1}, "transBatchA"),
        ("FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 1, 1)], {"activation": "Cbrt"}, "Cbrt"),
        ("Attention", [normal(2, 5, 12), normal(12, 36)], {"num_heads": 5}, "5 heads"),
        ("QLinearSigmoid", [*of_codes((2, 3)), scale(), ZERO], {"channels_last": 1}, "channels_l"),
        (
            "MatMulNBits",
            [normal(3, 32), codes(6, 2, 6), scale(12)],
            {"N": 6, "K": 32, "bits": 3, "block_size": 16},
            "3 bits",
        ),
        ("NGramRepeatBlock", [normal(2)], {}, "we have no operator for it"),
    ],
)
def test_what_is_refused(
    operator: str, inputs: Sequence[Array], attributes: dict[str, Any], reason: str
) -> None:
    model, _ = model_of(operator, inputs, **attributes)
    with pytest.raises(UnsupportedError, match=reason):
        load_onnx(model)


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
    model, inputs = model_of(operator, [np.asarray(rows, np.float32)], domain="", **more)
    check(model, inputs, apart=0)
    (positions,) = tensorwright.compile(model).run(inputs).values()
    np.testing.assert_array_equal(positions, by_onnxruntime(model, inputs)[0])
