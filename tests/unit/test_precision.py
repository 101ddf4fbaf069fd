"""`precision="bf16"`: operands of products are rounded, sums stay f32, weights are halved."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tensorwright
from tensorwright.base import Array, DType, UsageError, cpu_target, override
from tensorwright.cli.quantize import rounding_errors
from tensorwright.compile_options import CompileArguments
from tensorwright.expr import Placeholder, compute
from tensorwright.graph import Graph, GraphBuilder, Workload, interpret, simplify
from tensorwright.graph.partition import partition
from tensorwright.pipeline import cut, import_graph
from tensorwright.records import Setting
from tensorwright.schedule import format_schedule
from tensorwright.tuning.selection import Chooser

_LAST_PLACES = 2 * 2.0**-8
_OF_TERMS = 2.0**-19
"""Of the sum of the absolute terms: the error of sums of f32."""


def rounded(array: Array) -> Array:
    return array.astype(bfloat16).astype(np.float64)


def draw(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def is_near(graph: Graph, x: Array, reference: Any, w: Array) -> bool:
    """Whether what is compiled is within two units of the last place of the exact sums."""
    program = tensorwright.compile(graph, precision="bf16", threads=1)
    (given,) = program.run({"x": x}).values()
    exact = reference(rounded(x), rounded(w))
    terms = reference(np.abs(rounded(x)), np.abs(rounded(w)))
    return bool(np.all(np.abs(given - exact) <= _LAST_PLACES * np.abs(exact) + _OF_TERMS * terms))


@pytest.mark.parametrize("seed", range(8))
def test_random_products_are_those_of_rounded_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    m, k, n = (int(random.choice(sizes)) for sizes in ((1, 2, 7, 40), (3, 24, 67), (1, 5, 16, 50)))
    w, is_turned = draw(random, k, n), bool(seed % 2)
    b = GraphBuilder("product")
    x = b.input("x", (m, k))
    held = b.constant(np.ascontiguousarray(w.T) if is_turned else w)
    y = b.add("gemm", x, held, trans_b=True) if is_turned else b.add("matmul", x, held)
    assert is_near(b.finish([y]), draw(random, m, k), np.matmul, w)


def convolved(x: Array, w: Array, groups: int, stride: int, pad: int) -> Array:
    out, of, height, width = w.shape
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (2, 3))
    parts = windows[:, :, ::stride, ::stride].reshape(
        x.shape[0], groups, of, *windows[:, :, ::stride, ::stride].shape[2:]
    )
    kernels = w.reshape(groups, out // groups, of, height, width)
    sums = np.einsum("ngchwij,gocij->ngohw", parts, kernels)
    return sums.reshape(x.shape[0], out, *sums.shape[3:])


@pytest.mark.parametrize("seed", range(8))
def test_random_convolutions_are_those_of_rounded_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = (1, 1, 2, 4)[seed % 4]
    channels, out = 8 * int(random.integers(1, 4)), 8 * int(random.integers(1, 4))
    taps, stride = (1, 3, 3)[seed % 3], (1, 1, 2)[int(random.integers(3))]
    size = int(random.integers(5, 14))
    w, pad = draw(random, out, channels // groups, taps, taps), taps // 2
    b = GraphBuilder("convolution")
    x = b.input("x", (1, channels, size, size))
    attributes = {"pads": (pad,) * 4, "strides": (stride, stride), "groups": groups}
    graph = b.finish([b.add("conv", x, b.constant(w), **attributes)])

    def reference(x: Array, w: Array) -> Array:
        return convolved(x, w, groups, stride, pad)

    assert is_near(graph, draw(random, 1, channels, size, size), reference, w)


def network(size: int = 128) -> Graph:
    """Two products with constants."""
    random = np.random.default_rng(0)
    b = GraphBuilder("network")
    x = b.input("x", (5, size))
    for number in range(2):
        w = b.constant(draw(random, size, size) / np.float32(np.sqrt(size)), f"w{number}")
        x = b.add("relu", b.add("matmul", x, w, output=f"product{number}"))
    return b.finish([b.add("neg", x, output="y")])


def test_f32_is_what_it_is_without_the_option() -> None:
    x = draw(np.random.default_rng(1), 5, 128)
    usual = tensorwright.compile(network()).run({"x": x})["y"]
    assert np.array_equal(
        tensorwright.compile(network(), precision="f32").run({"x": x})["y"], usual
    )


def test_weights_take_half_the_memory(tmp_path: Any) -> None:
    sizes = {}
    for precision in ("f32", "bf16"):
        path = tmp_path / f"{precision}.tw"
        tensorwright.compile(network(512), precision=precision).save(path)
        sizes[precision] = path.stat().st_size
    assert sizes["bf16"] < 0.55 * sizes["f32"]


def test_simplification_leaves_weights_in_bf16() -> None:
    rounded = import_graph(network(), CompileArguments(precision="bf16"))
    assert str(simplify(rounded)) == str(rounded)
    assert {array.dtype for array in rounded.constants.values()} == {DType.BF16.numpy}


def test_small_weights_are_rounded_and_stay_f32_where_nothing_multiplies_bf16() -> None:
    targets = (("x86-64-avx2", np.float32), ("x86-64-avx512+avx512bf16", bfloat16))
    for name, kind in targets:
        how = CompileArguments(precision="bf16", target=cpu_target(name))
        (w, _) = import_graph(network(48), how).constants.values()
        assert w.dtype == kind
        assert np.array_equal(w, w.astype(bfloat16).astype(np.float32))


def test_each_product_widens_the_weights_that_several_read() -> None:
    b = GraphBuilder("shared")
    w = b.constant(draw(np.random.default_rng(0), 128, 128) / np.float32(11))
    y = b.add("matmul", b.add("relu", b.add("matmul", b.input("x", (40, 128)), w)), w, output="y")
    simple = import_graph(b.finish([y]), CompileArguments(precision="bf16"))
    parts = partition(simple)
    (short,) = simple.constants
    assert sum(short in step.inputs for step in parts.kernels) == 2
    assert all("matmul" in each.name for each in parts.workloads if each.constants)
    given = {"x": draw(np.random.default_rng(1), 40, 128)}
    assert np.array_equal(interpret(parts.graph, given)["y"], interpret(simple, given)["y"])


def test_kept_products_stay_f32() -> None:
    x = {"x": draw(np.random.default_rng(1), 5, 128)}
    (usual,) = interpret(network(), x).values()
    errors = []
    for keep in ((), ("product0",), "product*"):
        program = tensorwright.compile(network(), precision="bf16", keep=keep)
        errors.append(np.abs(program.run(x)["y"] - usual).max())
    assert errors[0] > errors[1] > 100 * errors[2]


@pytest.mark.parametrize(
    ("options", "reason", "remedy"),
    [
        ({"precision": "int3"}, "has products of f32 and bf16 alone", "one of f32, bf16"),
        ({"precision": "f16"}, "has products of f32 and bf16 alone", "bf16"),
        ({"precision": "bf16", "target": "cuda:sm_90"}, "has products of f32 alone", "f32"),
        ({"keep": ["product1"]}, "nothing is rounded", 'give precision="bf16"'),
        ({"precision": "bf16", "keep": "producd1"}, "no product has this name", "product1"),
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, Any], reason: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        tensorwright.compile(network(), **options)
    assert reason in caught.value.reason
    assert remedy in caught.value.remedy


def test_a_tensor_expression_says_its_types() -> None:
    x = Placeholder("x", (4,), DType.F32)
    doubled = compute("y", (4,), lambda i: x[i] + x[i])
    with pytest.raises(UsageError, match="says the types of its inputs"):
        tensorwright.compile(doubled, precision="bf16")


def attentive_network() -> tuple[Graph, dict[str, Array]]:
    """Attention of two heads, whose queries, keys and values are one product; and an input."""
    random = np.random.default_rng(3)
    b = GraphBuilder("attention")
    x = b.input("x", (6, 16))
    w = b.constant(draw(random, 16, 48) / np.float32(4), "w")
    heads = b.add(
        "transpose",
        b.add("reshape", b.add("matmul", x, w), shape=(1, 6, 3, 2, 8)),
        perm=(2, 0, 3, 1, 4),
    )
    parts = b.apply("split", (heads,), axis=0, sizes=(1, 1, 1))
    q, k, v = (b.add("reshape", each, shape=(1, 2, 6, 8)) for each in parts)
    scores = b.add("matmul", q, b.add("transpose", k, perm=(0, 1, 3, 2)))
    graph = b.finish([b.add("matmul", b.add("softmax", scores, axis=-1), v, output="y")])
    return graph, {"x": draw(random, 6, 16)}


def test_roundings_of_attention_are_made_with_what_they_round() -> None:
    """Orders of elements lie behind the roundings, and the parts of attention are found."""
    graph, given = attentive_network()
    avx2 = cpu_target("x86-64-avx2")
    simple = import_graph(graph, CompileArguments(precision="bf16", target=avx2))
    operators = [node.operator for node in simple.nodes]
    assert operators.count("attention") == 1
    assert operators.count("matmul") == 1
    assert operators.count("cast") == 4  # of x and of its product, there and back
    wanted = interpret(graph, given)["y"]
    assert (
        np.abs(tensorwright.compile(graph, precision="bf16").run(given)["y"] - wanted).max() < 0.02
    )
    assert np.allclose(interpret(simple, given)["y"], wanted, atol=0.02)


def short_operands(workload: Workload) -> list[bool]:
    """For each operand of a kernel that is not constant, whether it is bf16."""
    return [
        each.dtype is DType.BF16 for each in workload.inputs if each.name not in workload.constants
    ]


def test_rounded_numbers_are_stored_in_16_bits_where_that_is_priced_lower() -> None:
    def price(workload: Workload) -> float:
        return 1.0 if any(short_operands(workload)) else 2.0

    x = {"x": draw(np.random.default_rng(1), 5, 128)}
    for graph, given in ((network(), x), attentive_network()):
        simple = import_graph(graph, CompileArguments(precision="bf16"))
        usual, short = partition(simple), partition(simple, price=price)
        assert not any(any(short_operands(each)) for each in usual.workloads)
        stored = {name for step in short.kernels for name in step.outputs} - {"y"}
        assert {short.graph.types[name].dtype for name in stored} == {DType.BF16}
        for name, wanted in interpret(usual.graph, given).items():
            assert np.array_equal(interpret(short.graph, given)[name], wanted)


@pytest.mark.parametrize("reader", ["a product", "an activation", "the caller"])
def test_rounded_numbers_that_others_read_stay_f32(reader: str) -> None:
    random = np.random.default_rng(2)
    b = GraphBuilder("rounded")
    short = b.add("cast", b.input("x", (6, 32)), to=DType.BF16)
    wide = b.add("reshape", b.add("cast", short, to=DType.F32), shape=(12, 16))
    outputs = [b.add("matmul", wide, b.constant(draw(random, 16, 16)))]
    if reader != "a product":
        outputs.append(b.add("exp", wide) if reader == "an activation" else wide)
    graph = b.finish(outputs)

    def price(workload: Workload) -> float:
        return 1.0 if any(short_operands(workload)) else 2.0

    parts = partition(graph, price=price)
    assert (parts.graph.types[wide].dtype is DType.BF16) == (reader == "a product")
    given = {"x": draw(random, 6, 32)}
    for name, wanted in interpret(graph, given).items():
        assert np.array_equal(interpret(parts.graph, given)[name], wanted)


def test_products_of_bf16_are_those_of_the_processor_where_it_has_them() -> None:
    """The kernels between multiply pairs of bf16, and each stores what the next one reads."""
    target = cpu_target("x86-64-avx512+avx512bf16")
    simple = import_graph(network(512), CompileArguments(precision="bf16", target=target))
    with override(assume="avx2"):  # whose rates are nominal
        parts = cut(simple, target, 1)
        chosen = Chooser(Setting(target, 1), is_cold=True).of_network(parts)
    by_name = {each.workload.name: format_schedule(each.schedule) for each in chosen}
    products = [text for name, text in by_name.items() if "matmul" in name]
    assert len(products) == 2
    assert all("dot2_bf16" in text for text in products)
    slower = cut(simple, cpu_target("x86-64-avx2"), 1)
    assert not any(any(short_operands(each)) for each in slower.workloads)


def test_errors_are_told_by_output_and_by_product() -> None:
    outputs, nodes = rounding_errors(network(), CompileArguments(precision="bf16"), 0)
    (output,) = outputs
    assert output.name == "y"
    assert 1e-4 < output.relative < 1e-2
    assert {each.name for each in nodes} == {"product0", "product1"}
    assert all(1e-4 < each.relative < 1e-2 for each in nodes)
    kept = CompileArguments(precision="bf16", keep=("product0",))
    assert [each.name for each in rounding_errors(network(), kept, 0)[1]] == ["product1"]


def test_calls_in_two_precisions_at_once_are_those_of_each_alone() -> None:
    x = [{"x": draw(np.random.default_rng(seed), 5, 128)} for seed in range(8)]
    programs = [
        tensorwright.compile(network(), precision=precision, threads=2)
        for precision in ("f32", "bf16")
    ]
    alone = [[each.run(given)["y"] for given in x] for each in programs]

    def differing(number: int) -> int:
        program, wanted = programs[number % 2], alone[number % 2]
        turns = [(number + turn) % 8 for turn in range(24)]
        return sum(not np.array_equal(program.run(x[at])["y"], wanted[at]) for at in turns)

    with ThreadPoolExecutor(8) as callers:
        assert sum(callers.map(differing, range(8))) == 0
