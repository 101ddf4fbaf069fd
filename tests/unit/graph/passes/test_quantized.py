"""Products of codes as sums of floats: the same numbers, where they are floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.targets import AVX2, AVX512

from tensorwright.base import CpuTarget, DType
from tensorwright.graph import Graph, GraphBuilder, Workload, interpret, simplify, verify
from tensorwright.graph.passes.quantized import lower_quantized

RANDOM = np.random.default_rng(3)
VNNI = replace(AVX512, features=(*AVX512.features, "avx512vnni"))
X = RANDOM.integers(0, 256, (2, 8, 6, 6)).astype(np.uint8)
ROWS = RANDOM.integers(0, 256, (5, 200)).astype(np.uint8)


def bytes_of(*shape: int, largest: int = 128) -> NDArray[np.int8]:
    return RANDOM.integers(-largest, largest, shape).astype(np.int8)


def convolution(zeros: tuple[NDArray[Any], ...], uses: int = 1) -> Graph:
    b = GraphBuilder()
    x = b.input("x", X.shape, DType.U8)
    parts = [b.constant(each) for each in (bytes_of(6, 8, 3, 3), *zeros)]
    sums = b.add("conv_integer", x, *parts, pads=(1, 1, 1, 1))
    return b.finish([b.add("cast", sums, to=DType.F32), *[b.add("abs", sums)] * (uses - 1)])


def product(weights: NDArray[Any], zeros: tuple[NDArray[Any], ...] = ()) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (5, len(weights)), DType.U8)
    sums = b.add("matmul_integer", x, b.constant(weights), *map(b.constant, zeros))
    return b.finish([b.add("cast", sums, to=DType.F32)])


def lowered(graph: Graph, target: CpuTarget = AVX2) -> Graph:
    return verify(simplify(lower_quantized(simplify(graph), target)))


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


def becomes_floats(graph: Graph, x: NDArray[Any]) -> None:
    """No integer is left but those given, and the numbers are the same."""
    simple = lowered(graph)
    assert {*operators(simple)} <= {"cast", "sub", "conv", "matmul", "reshape"}
    (expected,), (found,) = (interpret(each, {"x": x}).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "zeros",
    [
        (),
        (np.array(7, np.uint8),),
        (np.array([200], np.uint8), np.array(-3, np.int8)),
        (np.array(0, np.uint8), bytes_of(6)),
    ],
)
def test_convolutions(zeros: tuple[NDArray[Any], ...]) -> None:
    becomes_floats(convolution(zeros), X)


@pytest.mark.parametrize(
    "zeros",
    [(), (np.array(9, np.uint8), np.array(5, np.int8)), (np.array(9, np.uint8), bytes_of(7))],
)
def test_products(zeros: tuple[NDArray[Any], ...]) -> None:
    becomes_floats(product(bytes_of(200, 7), zeros), ROWS)


def test_sums_that_are_read_as_integers_stay_so() -> None:
    assert "conv_integer" in operators(lowered(convolution((), uses=2)))


def test_a_zero_point_for_each_row_stays() -> None:
    zeros = (RANDOM.integers(0, 9, 5).astype(np.uint8),)
    assert "matmul_integer" in operators(lowered(product(bytes_of(200, 4), zeros)))


@pytest.mark.parametrize("zero", [(), (np.array(30, np.uint8),)])
def test_codes_that_are_only_multiplied_are_not_made(zero: tuple[NDArray[Any], ...]) -> None:
    b = GraphBuilder()
    x, scale = b.input("x", (5, 200)), b.constant(np.array(0.02, np.float32))
    zeros = tuple(map(b.constant, zero))
    codes = b.add("quantize_linear", x, scale, *zeros)
    sums = b.add("matmul_integer", codes, b.constant(bytes_of(200, 7)), *zeros)
    graph = b.finish([b.add("cast", sums, to=DType.F32)])
    simple = lowered(graph)
    assert {kind.dtype for kind in simple.types.values()} == {DType.F32}
    rows = {"x": RANDOM.standard_normal((5, 200)).astype(np.float32)}
    (expected,), (found,) = (interpret(each, rows).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


def from_codes(operator: str, scales: NDArray[Any], **attributes: Any) -> Graph:
    """A product of numbers that come from codes, as exporters of quantised networks write it."""
    b = GraphBuilder()
    scale, zero = b.constant(np.array(0.02, np.float32)), b.constant(np.array(30, np.uint8))
    codes = b.add("quantize_linear", b.input("x", (5, 64)), scale, zero)
    x = b.add("dequantize_linear", codes, scale, zero)
    is_turned = bool(attributes.get("trans_b"))
    weights = b.constant(bytes_of(32, 64) if is_turned else bytes_of(64, 32))
    axis = 0 if is_turned else 1
    w = b.add("dequantize_linear", weights, b.constant(scales), axis=axis)
    bias = (b.constant(RANDOM.standard_normal(32).astype(np.float32)),) if attributes else ()
    return b.finish([b.add(operator, x, w, *bias, **attributes)])


@pytest.mark.parametrize("target", [AVX2, VNNI])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [("matmul", {}), ("gemm", {"trans_b": True}), ("gemm", {"beta": 1.0})],
)
@pytest.mark.parametrize("scales", [0.01, RANDOM.uniform(0.01, 0.02, 32)])
def test_numbers_that_come_from_codes_are_multiplied_as_codes(
    operator: str, attributes: dict[str, Any], scales: Any, target: CpuTarget
) -> None:
    graph = from_codes(operator, np.asarray(scales, np.float32), **attributes)
    assert "matmul_integer" in operators(simplify(graph))
    simple = lowered(graph, target)
    (made,) = (node for node in simple.nodes if node.operator == "matmul_integer")
    assert simple.types[made.inputs[0]].dtype is (DType.U8 if target is VNNI else DType.I16)
    rows = {"x": RANDOM.standard_normal((5, 64)).astype(np.float32)}
    (expected,), (found,) = (interpret(each, rows).values() for each in (graph, simple))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("zero", [np.array(-5, np.int8), np.array(120, np.uint8)])
def test_signed_codes_become_unsigned_for_the_instruction(zero: NDArray[Any]) -> None:
    b = GraphBuilder()
    scale, point = b.constant(np.array(0.02, np.float32)), b.constant(zero)
    codes = b.add("quantize_linear", b.input("x", (5, 64)), scale, point)
    sums = b.add("matmul_integer", codes, b.constant(bytes_of(64, 32)), point)
    graph = b.finish([b.add("cast", sums, to=DType.F32)])
    simple = lowered(graph, VNNI)
    (product_node,) = (node for node in simple.nodes if node.operator == "matmul_integer")
    assert simple.types[product_node.inputs[0]].dtype is DType.U8
    assert len(product_node.inputs) == 2
    rows = {"x": RANDOM.standard_normal((5, 64)).astype(np.float32)}
    (expected,), (found,) = (interpret(each, rows).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(65, 32), (64, 20)])
def test_shapes_that_the_instruction_does_not_take_are_multiplied_as_floats(
    shape: tuple[int, int],
) -> None:
    assert "matmul" in operators(lowered(product(bytes_of(*shape)), VNNI))


@pytest.mark.parametrize("target", [AVX2, VNNI])
@pytest.mark.parametrize("zero", [np.array(200, np.uint8), bytes_of(16)])
def test_matrices_of_other_codes_are_multiplied_as_short_numbers(
    zero: NDArray[Any], target: CpuTarget
) -> None:
    of_weights = zero if zero.ndim else np.array(200, np.uint8)
    weights = RANDOM.integers(0, 256, (200, 16)).astype(of_weights.dtype)
    graph = product(weights, (np.array(9, np.uint8), of_weights))
    simple = lowered(graph, target)
    (made,) = (node for node in simple.nodes if node.operator == "matmul_integer")
    assert {simple.types[name].dtype for name in made.inputs} == {DType.I16}
    assert lower_quantized(simple, target) is simple
    (expected,), (found,) = (interpret(each, {"x": ROWS}).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("target", "columns", "whole"),
    [
        *((AVX2, 1021, 1024), (AVX2, 1000, 1000), (AVX2, 21, 0)),
        *((VNNI, 1021, 1024), (VNNI, 1000, 1008), (VNNI, 21, 0)),
    ],
)
def test_many_columns_are_filled_up_to_whole_vectors(
    target: CpuTarget, columns: int, whole: int
) -> None:
    graph = product(bytes_of(200, columns), (np.array(9, np.uint8),))
    simple = lowered(graph, target)
    made = [node for node in simple.nodes if node.operator == "matmul_integer"]
    weights = [simple.types[node.inputs[1]] for node in made]
    assert [each.shape for each in weights] == ([(200, whole)] if whole else [])
    assert all(each.dtype is (DType.I8 if target is VNNI else DType.I16) for each in weights)
    (expected,), (found,) = (interpret(each, {"x": ROWS}).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


def image_from_codes(
    window: int,
    zero: int,
    *,
    groups: int = 1,
    channels: int = 32,
    pad: int = 0,
    kind: type = np.uint8,
    is_last: bool = False,
) -> Graph:
    b = GraphBuilder()
    scale, point = b.constant(np.array(0.02, np.float32)), b.constant(np.array(zero, kind))
    codes = b.add("quantize_linear", b.input("x", (2, channels, 6, 6)), scale, point)
    x = b.add("dequantize_linear", codes, scale, point)
    weights = b.constant(bytes_of(48, channels // groups, window, window))
    scales = b.constant(RANDOM.uniform(0.01, 0.02, 48).astype(np.float32))
    w = b.add("dequantize_linear", weights, scales, axis=0)
    bias = b.constant(RANDOM.standard_normal(48).astype(np.float32))
    y = b.add("relu", b.add("conv", x, w, bias, groups=groups, pads=(pad,) * 4))
    return b.finish([y if is_last else b.add("global_average_pool", y)])


@pytest.mark.parametrize("target", [AVX2, VNNI])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize(("window", "zero", "pad"), [(1, 0, 0), (1, 30, 0), (3, 30, 1), (3, 0, 1)])
def test_images_that_come_from_codes_are_multiplied_as_codes(
    window: int, zero: int, pad: int, kind: type, target: CpuTarget
) -> None:
    graph = image_from_codes(window, zero, pad=pad, kind=kind)
    assert "conv_integer" in operators(simplify(graph))
    simple = lowered(graph, target)
    (made,) = (node for node in simple.nodes if node.operator == "conv_integer")
    assert simple.types[made.inputs[0]].dtype is (DType.U8 if target is VNNI else DType.I16)
    image = {"x": RANDOM.standard_normal((2, 32, 6, 6)).astype(np.float32)}
    (expected,), (found,) = (interpret(each, image).values() for each in (graph, simple))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("window", "faster"), [(3, "conv"), (3, "conv_integer"), (1, "conv")])
def test_a_price_decides_whether_windows_are_floats(window: int, faster: str) -> None:
    asked = []

    def price(workload: Workload) -> float:
        operator = "conv_integer" if workload.inputs[0].dtype is DType.I16 else "conv"
        asked.append(operator)
        return 1.0 if operator == faster else 2.0

    graph = image_from_codes(window, 0, pad=window // 2)
    made = operators(simplify(lower_quantized(simplify(graph), AVX2, price)))
    assert (faster if window > 1 else "conv_integer") in made
    assert {*asked} == ({"conv", "conv_integer"} if window > 1 else set())


@pytest.mark.parametrize(
    ("least", "steps", "is_kept"), [(0.0, 0.02, True), (1.0, 0.02, False), (0.0, 0.04, False)]
)
def test_codes_that_stay_the_same_are_not_made_again(
    least: float, steps: float, *, is_kept: bool
) -> None:
    b = GraphBuilder()
    zero = b.constant(np.array(0, np.uint8))
    scales = [b.constant(np.array(each, np.float32)) for each in (0.02, steps)]
    codes = b.add("quantize_linear", b.input("x", (4, 64)), scales[0], zero)
    numbers = b.add("clip", b.add("dequantize_linear", codes, scales[0], zero), min=least, max=9.0)
    again = b.add("quantize_linear", numbers, scales[1], zero)
    graph = b.finish([again])
    simple = simplify(graph)
    assert (operators(simple) == ["quantize_linear"]) == is_kept
    rows = {"x": RANDOM.standard_normal((4, 64)).astype(np.float32) * 3}
    (expected,), (found,) = (interpret(each, rows).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("steps", "rounded"), [(0.02, 1), (0.04, 2)])
def test_numbers_in_another_order_are_not_rounded_again(steps: float, rounded: int) -> None:
    b = GraphBuilder()
    zero = b.constant(np.array(7, np.uint8))
    y = b.input("x", (1, 4, 6, 6))
    for each in (0.02, steps):
        scale = b.constant(np.array(each, np.float32))
        y = b.add("dequantize_linear", b.add("quantize_linear", y, scale, zero), scale, zero)
        pooled = b.add("max_pool", y, kernel=(3, 3), pads=(1, 1, 1, 1))
        y = b.add("transpose", pooled, perm=(0, 1, 3, 2))
    graph = b.finish([b.add("exp", y)])
    simple = verify(simplify(graph))
    assert operators(simple).count("round") == rounded
    image = {"x": RANDOM.standard_normal((1, 4, 6, 6)).astype(np.float32)}
    (expected,), (found,) = (interpret(each, image).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


def test_codes_that_others_read_as_numbers_are_stored_as_codes() -> None:
    b = GraphBuilder()
    scale, zero = b.constant(np.array(0.02, np.float32)), b.constant(np.array(30, np.uint8))
    codes = b.add("quantize_linear", b.input("x", (2, 32, 6, 6)), scale, zero)
    x = b.add("dequantize_linear", codes, scale, zero)
    w = b.add("dequantize_linear", b.constant(bytes_of(32, 32, 1, 1)), scale)
    y = b.add("add", b.add("conv", x, w), x)
    graph = b.finish([b.add("global_average_pool", y)])
    simple = lowered(graph)
    readers = [node.operator for node in simple.nodes if "i16" in node.inputs[0]]
    assert sorted(readers) == ["cast", "conv_integer"]
    image = {"x": RANDOM.standard_normal((2, 32, 6, 6)).astype(np.float32)}
    (expected,), (found,) = (interpret(each, image).values() for each in (graph, simple))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "graph",
    [
        image_from_codes(1, 5, groups=2),
        image_from_codes(1, 5, channels=20),
        image_from_codes(3, 0, is_last=True),  # its channels do not lie in blocks
    ],
)
def test_groups_and_what_is_not_in_blocks_are_multiplied_as_floats(graph: Graph) -> None:
    simple = lowered(graph, VNNI)
    assert "conv_integer" not in operators(simple)
    assert "conv" in operators(simple)
