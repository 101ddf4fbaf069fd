"""Each pass: what it rewrites, what it leaves alone, and that values stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.graph.onnx.onnx_models import assert_same_values
from tests.unit.graph.random_graphs import graphs

from tensorwright.base import DType, knobs
from tensorwright.graph import (
    PASSES,
    FoldedConstants,
    Graph,
    GraphBuilder,
    interpret,
    simplify,
    verify,
)
from tensorwright.graph.builder import frozen_array
from tensorwright.graph.passes.identities import remove_dead_code
from tensorwright.ops import infer_types
from tensorwright_lab.zoo import build as build_network

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RANDOM.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RANDOM.uniform(0.5, 2, shape).astype(np.float32)


def build(body: Callable[[GraphBuilder, str], str], *shape: int) -> Graph:
    b = GraphBuilder()
    x = b.input("x", shape)
    return b.finish([body(b, x)])


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


def becomes(graph: Graph, *expected: str) -> Graph:
    """Simplify, check the operators that are left and the values."""
    simple = verify(simplify(graph))
    assert operators(simple) == list(expected)
    assert_same_values(graph, simple)
    return simple


@given(graphs())
@settings(max_examples=100)
def test_values_and_signatures_stay(graph: Graph) -> None:
    simple = verify(simplify(graph))
    assert_same_values(graph, simple)
    assert len(simple.nodes) <= len(graph.nodes)
    assert str(simplify(simple)) == str(simple)


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.__name__)
@given(graphs())
@settings(max_examples=15)
def test_each_pass_alone(each: Callable[[Graph], tuple[Graph, int]], graph: Graph) -> None:
    changed, count = each(graph)
    assert_same_values(graph, verify(changed))
    if not count and each is not remove_dead_code:  # it may drop constants alone
        assert changed is graph


def test_types_are_inferred_of_what_changes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred: list[str] = []

    def counted(name: str, *arguments: Any) -> Any:
        inferred.append(name)
        return infer_types(name, *arguments)

    graph = build_network("squeezenet", 0)
    monkeypatch.setattr("tensorwright.graph.infer.infer_types", counted)
    assert simplify(graph) is graph
    assert inferred == []
    monkeypatch.undo()
    graph = build_network("resnet18", 0)  # 20 convolutions, each with a batch norm
    monkeypatch.setattr("tensorwright.graph.infer.infer_types", counted)
    simplify(graph)
    made = {"mul": 20, "add": 20, "conv": 2 * 20}  # a norm becomes a mul and an add, absorbed
    assert Counter(inferred) == made


def batch_norm(b: GraphBuilder, x: str) -> str:
    channels = b.shape_of(x)[1]
    vectors = (positive(channels), normal(channels), normal(channels), positive(channels))
    return b.add("batch_norm", x, *(b.constant(v) for v in vectors), epsilon=1e-3)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_goes_into_the_convolution(groups: int, bias: bool) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        inputs = [x, b.constant(normal(6, 4 // groups, 3, 3))]
        inputs += [b.constant(normal(6))] if bias else []
        return batch_norm(b, b.add("conv", *inputs, groups=groups, pads=(1, 1, 1, 1)))

    simple = becomes(build(body, 2, 4, 5, 5), "conv")
    assert len(simple.nodes[0].inputs) == 3
    assert simple.outputs == ("batch_norm_0",)


@pytest.mark.parametrize("groups", [1, 2])
def test_batch_norm_goes_into_the_transposed_convolution(groups: int) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        w = b.constant(normal(4, 6 // groups, 3, 3))
        return batch_norm(b, b.add("conv_transpose", x, w, groups=groups, strides=(2, 2)))

    becomes(build(body, 1, 4, 5, 5), "conv_transpose")


@pytest.mark.parametrize("trans_b", [False, True])
def test_batch_norm_goes_into_gemm(trans_b: bool) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        w = b.constant(normal(5, 3) if trans_b else normal(3, 5))
        c = b.constant(normal(1, 5))
        return batch_norm(b, b.add("gemm", x, w, c, alpha=0.5, beta=2.0, trans_b=trans_b))

    becomes(build(body, 2, 3), "gemm")


def test_a_bias_per_row_stays_outside() -> None:
    """c (5, 1) adds a number per row of a (5, 5) product: it is not a bias of the channels."""

    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("gemm", x, b.constant(normal(3, 5)), b.constant(normal(5, 1)))
        return b.add("add", y, b.constant(normal(5)))

    becomes(build(body, 5, 3), "gemm", "add")


def test_a_convolution_with_another_reader_keeps_its_weights() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4, 5, 5))
    y = b.add("conv", x, b.constant(normal(4, 4, 1, 1)))
    becomes(b.finish([b.add("relu", y), batch_norm(b, y)]), "conv", "relu", "mul", "add")


def test_scales_and_shifts_per_channel_merge() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("mul", batch_norm(b, x), b.constant(normal(4, 1, 1)))
        return b.add("relu", b.add("add", y, b.constant(normal(1, 4, 1, 1))))

    becomes(build(body, 2, 4, 3, 3), "mul", "add", "relu")


def test_a_shift_that_grows_the_shape_is_left_alone() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("conv", x, b.constant(normal(1, 4, 1, 1)))
        return b.add("add", y, b.constant(normal(6, 1, 1)))

    becomes(build(body, 1, 4, 3, 3), "conv", "add")


def test_an_elementwise_shift_is_no_bias() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("conv", x, b.constant(normal(3, 4, 1, 1)))
        return b.add("add", y, b.constant(normal(3, 2, 2)))

    becomes(build(body, 1, 4, 2, 2), "conv", "add")


def test_pads_go_into_windows() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("pad", x, pads=(0, 0, 1, 0, 0, 0, 2, 1))
        return b.add("conv", y, b.constant(normal(3, 4, 3, 3)), pads=(1, 1, 1, 1))

    simple = becomes(build(body, 1, 4, 5, 5), "conv")
    assert simple.nodes[0].ints("pads") == (2, 1, 3, 2)


def test_a_padded_average_counts_the_padding() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("pad", x, pads=(0, 0, 1, 1, 0, 0, 1, 1))
        return b.add("average_pool", y, kernel=(3, 3))

    becomes(build(body, 1, 4, 5, 5), "average_pool")


@pytest.mark.parametrize(
    ("pads", "value", "mode"),
    [
        ((0, 0, 1, 1, 0, 0, 1, 1), 1.0, "constant"),
        ((0, 0, 1, 1, 0, 0, 1, 1), 0.0, "edge"),
        ((1, 0, 1, 1, 0, 0, 1, 1), 0.0, "constant"),
        ((0, 0, -1, 0, 0, 0, 1, 1), 0.0, "constant"),
    ],
)
def test_other_pads_stay(pads: tuple[int, ...], value: float, mode: str) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("pad", x, pads=pads, value=value, mode=mode)
        return b.add("conv", y, b.constant(normal(3, 4, 3, 3)))

    becomes(build(body, 1, 4, 5, 5), "pad", "conv")


def test_transpositions_cancel() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("transpose", x, perm=(0, 2, 3, 1))
        return b.add("relu", b.add("transpose", y, perm=(0, 3, 1, 2)))

    becomes(build(body, 2, 3, 4, 5), "relu")


def test_transpositions_merge_and_ones_are_moved_by_reshape() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("transpose", b.add("transpose", x), perm=(1, 2, 0))
        return b.add("transpose", b.add("unsqueeze", y, axes=(0,)), perm=(1, 0, 2, 3))

    becomes(build(body, 2, 3, 4), "transpose", "reshape")


def test_dimensions_that_are_joined_around_a_transposition_stay_apart() -> None:
    def turned(last: tuple[int, ...]) -> Graph:
        b = GraphBuilder()
        joined = b.add("reshape", b.input("x", (2, 3, 4, 5)), shape=(6, 4, 5))
        moved = b.add("transpose", joined, perm=(0, 2, 1))
        return b.finish([b.add("reshape", moved, shape=last)])

    simple = becomes(turned((2, 3, 5, 4)), "transpose")
    assert simple.nodes[0].ints("perm") == (0, 1, 3, 2)
    becomes(turned((3, 2, 5, 4)), "reshape", "transpose", "reshape")


def test_reshapes_merge() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        y = b.add("squeeze", b.add("unsqueeze", x, axes=(0,)), axes=(0,))
        return b.add("relu", b.add("reshape", b.add("reshape", y, shape=(6,)), shape=(2, 3)))

    becomes(build(body, 2, 3), "relu")


def test_constants_are_computed() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        c = b.add("transpose", b.constant(normal(3, 2)))
        return b.add("add", x, b.add("exp", c))

    simple = becomes(build(body, 2, 3), "add")
    assert len(simple.constants) == 1


def test_an_expansion_to_a_large_constant_is_not_computed() -> None:
    graph = build(
        lambda b, x: b.add("add", x, b.add("expand", b.constant(normal(1)), shape=(1024, 512))),
        1024,
        512,
    )
    assert operators(simplify(graph)) == ["expand", "add"]


def test_the_same_thing_is_computed_once() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        left = b.add("clip", b.add("exp", x), min=0.0, max=1.0)
        right = b.add("clip", b.add("exp", x), min=0.0, max=1.0)
        other = b.add("clip", b.add("exp", x), min=-0.0, max=1.0)
        return b.add("sub", b.add("mul", left, right), other)

    becomes(build(body, 4), "exp", "clip", "clip", "mul", "sub")


def test_equal_small_constants_are_one_input() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        left = b.add("mul", x, b.constant(np.full(4, 2, np.float32)))
        right = b.add("mul", x, b.constant(np.full(4, 2, np.float32)))
        return b.add("add", left, right)

    becomes(build(body, 4), "mul", "add")


def test_outputs_keep_their_names() -> None:
    b = GraphBuilder()
    x = b.input("x", (3,))
    y = b.add("relu", x)
    first = b.add("identity", y, output="first")
    second = b.add("identity", y, output="second")
    third = b.add("identity", x, output="third")
    constant = b.add("exp", b.constant(normal(2)), output="constant")
    graph = b.finish([first, second, third, constant])
    simple = becomes(graph, "relu", "identity", "identity")
    assert simple.outputs == ("first", "second", "third", "constant")
    assert list(simple.constants) == ["constant"]


def test_casts_there_and_back_go_where_nothing_is_lost() -> None:
    def back(first: DType, held: DType) -> Graph:
        b = GraphBuilder()
        x = b.input("x", (3,), first)
        again = b.add("cast", b.add("cast", x, to=held), to=first)
        condition = b.add("cast", again, to=DType.BOOL)
        return b.finish([b.add("where", condition, b.input("y", (3,)), b.input("z", (3,)))])

    becomes(back(DType.BOOL, DType.F32), "where")
    becomes(back(DType.I32, DType.F64), "cast", "where")
    becomes(back(DType.F32, DType.I32), "cast", "cast", "cast", "where")


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("extents", [(5,), (3, 4), ()])
def test_group_norm_is_a_norm_of_rows_with_a_scale_behind_it(
    groups: int, extents: tuple[int, ...]
) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        scale, bias = b.constant(positive(6)), b.constant(normal(6))
        return b.add("relu", b.add("group_norm", x, scale, bias, groups=groups))

    graph = build(body, 2, 6, *extents)
    simple = verify(simplify(graph))
    assert operators(simple)[-3:] == ["mul", "add", "relu"]
    assert "instance_norm" in operators(simple)
    assert_same_values(graph, simple)


def test_the_scale_of_group_norm_may_be_an_input() -> None:
    b = GraphBuilder()
    x, scale = b.input("x", (1, 6, 4)), b.input("scale", (6,))
    graph = b.finish([b.add("group_norm", x, scale, b.constant(normal(6)), groups=2)])
    simple = verify(simplify(graph))
    assert "instance_norm" in operators(simple)
    assert_same_values(graph, simple)


def test_dead_code_goes_and_inputs_stay() -> None:
    b = GraphBuilder()
    x, unused = b.input("x", (3,)), b.input("unused", (3,))
    b.add("exp", unused)
    b.constant(normal(3))
    simple = becomes(b.finish([b.add("relu", x)]), "relu")
    assert simple.inputs == ("x", "unused")
    assert not simple.constants


def test_the_dump_counts(tmp_path: Path) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        return batch_norm(b, b.add("conv", x, b.constant(normal(4, 4, 1, 1))))

    with knobs.override(dump="rules", dump_dir=str(tmp_path)):
        simplify(build(body, 1, 4, 2, 2))
    (text,) = [path.read_text() for path in tmp_path.rglob("*simplify*")]
    made = ["lower_batch_norm 1", "absorb_scale 1", "absorb_shift 1"]
    assert [line.strip() for line in text.splitlines()[1:]] == made


@pytest.mark.parametrize("position", [0, 2, -1])
@pytest.mark.parametrize("axis", [0, 1])
def test_gathering_one_position_is_a_slice(position: int, axis: int) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        index = b.constant(np.array(position, np.int64))
        return b.apply("relu", b.apply("gather", (x, index), axis=axis))[0]

    becomes(build(body, 3, 4, 5), "slice", "reshape", "relu")


def test_gathering_several_positions_stays() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        return b.apply("gather", (x, b.constant(np.array([0, 2], np.int64))), axis=0)[0]

    becomes(build(body, 3, 4), "gather")


def test_pieces_are_joined_before_they_are_reshaped() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        rows = [b.apply(each, (x,))[0] for each in ("relu", "tanh", "sigmoid")]
        return b.apply("concat", [b.apply("unsqueeze", (r,), axes=(0,))[0] for r in rows], axis=0)[
            0
        ]

    becomes(build(body, 2, 5), "relu", "tanh", "sigmoid", "concat", "reshape")


def test_reshaped_pieces_that_do_not_lie_one_behind_the_other_are_joined_as_they_are() -> None:
    def inner(b: GraphBuilder, x: str) -> str:
        rows = [b.apply(each, (x,))[0] for each in ("relu", "tanh")]
        return b.apply("concat", [b.apply("unsqueeze", (r,), axes=(1,))[0] for r in rows], axis=1)[
            0
        ]

    def unlike(b: GraphBuilder, x: str) -> str:
        row = b.apply("reshape", (b.apply("relu", (x,))[0],), shape=(1, 10))[0]
        flat = b.apply("reshape", (b.apply("transpose", (x,), perm=(1, 0))[0],), shape=(1, 10))[0]
        return b.apply("concat", (row, flat), axis=0)[0]

    becomes(build(inner, 2, 5), "relu", "tanh", "reshape", "reshape", "concat")
    becomes(build(unlike, 2, 5), "relu", "reshape", "transpose", "reshape", "concat")


def scaled_filter(b: GraphBuilder, weights: str, scale: str, *, is_normal: bool) -> str:
    """As StyleGAN2's: (1, o, i, k, k) * (1, 1, i, 1, 1), and divided by the norm for each o."""
    weight = b.add("mul", weights, scale)
    if not is_normal:
        return weight
    squares = b.add("pow", weight, b.constant(np.float32(2)))
    norm = b.add("sqrt", b.add("reduce_sum", squares, axes=(2, 3, 4)))
    return b.add("div", weight, norm)


@pytest.mark.parametrize("bias", [False, True])
def test_the_data_is_scaled_instead_of_the_filter(bias: bool) -> None:
    b = GraphBuilder()
    x, s = b.input("x", (2, 4, 5, 5)), b.input("s", (1, 1, 4, 1, 1))
    weight = scaled_filter(b, b.constant(normal(1, 6, 4, 3, 3)), s, is_normal=True)
    inputs = [x, b.add("reshape", weight, shape=(6, 4, 3, 3))]
    inputs += [b.constant(normal(6))] if bias else []
    graph = b.finish([b.add("conv", *inputs, pads=(1, 1, 1, 1))])
    norm = ("pow", "mul", "reduce_sum", "sqrt")
    simple = becomes(graph, *norm, "reshape", "mul", "conv", "reshape", "div", *["add"] * bias)
    conv = next(node for node in simple.nodes if node.operator == "conv")
    assert simple.constants[conv.inputs[1]].shape == (6, 4, 3, 3)
    summed = next(node for node in simple.nodes if node.operator == "mul")
    assert simple.constants[summed.inputs[0]].shape == (1, 6, 4, 1, 1)


def test_the_data_is_scaled_before_a_transposed_convolution() -> None:
    b = GraphBuilder()
    x, s = b.input("x", (1, 4, 5, 5)), b.input("s", (1, 1, 4, 1, 1))
    weight = scaled_filter(b, b.constant(normal(1, 6, 4, 3, 3)), s, is_normal=False)
    weight = b.add("transpose", weight, perm=(0, 2, 1, 3, 4))
    weight = b.add("reshape", weight, shape=(4, 6, 3, 3))
    graph = b.finish([b.add("conv_transpose", x, weight, strides=(2, 2))])
    becomes(graph, "reshape", "mul", "conv_transpose")


def test_a_filter_scaled_for_each_output_scales_the_result() -> None:
    b = GraphBuilder()
    x, d = b.input("x", (1, 4, 50, 50)), b.input("d", (3, 1, 1, 1))
    weight = b.add("div", b.constant(normal(3, 4, 1, 1)), d)
    becomes(b.finish([b.add("conv", x, weight)]), "conv", "reshape", "div")


@pytest.mark.parametrize(
    ("scale", "groups"),
    [((1, 4, 1, 1), 1), ((1, 1, 3, 1), 1), ((6, 4, 1, 1), 1), ((6, 1, 1, 1), 2)],
)
def test_other_scaled_filters_stay(scale: tuple[int, ...], groups: int) -> None:
    """A large image for a small filter; along the kernel; along two dimensions; groups."""
    b = GraphBuilder()
    x, s = b.input("x", (1, 4, 40, 40)), b.input("s", scale)
    weight = b.add("mul", b.constant(normal(6, 4 // groups, 3, 3)), s)
    becomes(b.finish([b.add("conv", x, weight, groups=groups)]), "mul", "conv")


def test_a_filter_without_a_constant_stays() -> None:
    b = GraphBuilder()
    x, w, s = b.input("x", (1, 4, 3, 3)), b.input("w", (6, 4, 3, 3)), b.input("s", (1, 4, 1, 1))
    becomes(b.finish([b.add("conv", x, b.add("mul", w, s))]), "mul", "conv")


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("axes", [(2,), (1, 2), (-1, 0), ()])
def test_what_computed_factors_do_not_vary_with_is_summed_beforehand(
    power: int, axes: tuple[int, ...], keepdims: bool
) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        terms = b.add("mul", x, b.constant(normal(5, 4, 3)))
        if power > 1:
            terms = b.add("pow", terms, b.constant(np.float32(power)))
        return b.add("reduce_sum", terms, axes=axes, keepdims=keepdims)

    graph = build(body, 4, 1)
    simple = simplify(graph)
    assert_same_values(graph, simple)
    product = next(node for node in simple.nodes if node.operator == "mul")
    constants = [simple.constants[n] for n in product.inputs if n in simple.constants]
    assert constants[0].size < 60


@pytest.mark.parametrize("exponent", [0.5, -2.0, 5.0, float("inf")])
def test_sums_of_other_powers_stay(exponent: float) -> None:
    def body(b: GraphBuilder, x: str) -> str:
        terms = b.add("mul", x, b.constant(positive(5, 4, 3)))
        terms = b.add("pow", terms, b.constant(np.float32(exponent)))
        return b.add("reduce_sum", terms, axes=(2,))

    assert operators(simplify(build(body, 4, 1))) == ["mul", "pow", "reduce_sum"]


def test_sums_along_which_both_factors_vary_stay() -> None:
    def body(b: GraphBuilder, x: str) -> str:
        return b.add("reduce_sum", b.add("mul", x, b.constant(normal(4, 3))), axes=(1,))

    becomes(build(body, 4, 3), "mul", "reduce_sum")


def test_what_is_made_of_the_same_constants_is_computed_once_for_several_graphs() -> None:
    left, right, other = (frozen_array(normal(6, 6)) for _ in range(3))
    known = FoldedConstants()

    def product(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> Any:
        b = GraphBuilder()
        x = b.input("x", (6, 6))
        made = b.add("matmul", b.constant(first, "a"), b.constant(second, "b"))
        simple = simplify(b.finish([b.add("add", x, made)]), known)
        (array,) = simple.constants.values()
        assert np.allclose(array, first @ second, atol=1e-5)
        return array

    assert product(left, right) is product(left, right)
    assert product(left, other) is not product(left, right)


def test_mish_is_recognised() -> None:
    def written_out(b: GraphBuilder, x: str) -> str:
        return b.add("mul", x, b.add("tanh", b.add("softplus", x)))

    becomes(build(written_out, 3, 40), "mish")


def test_what_is_not_quite_mish_stays() -> None:
    def of_another(b: GraphBuilder, x: str) -> str:
        return b.add("mul", b.add("relu", x), b.add("tanh", b.add("softplus", x)))

    def read_again(b: GraphBuilder, x: str) -> str:
        soft = b.add("softplus", x)
        return b.add("add", soft, b.add("mul", x, b.add("tanh", soft)))

    becomes(build(of_another, 3, 40), "relu", "softplus", "tanh", "mul")
    becomes(build(read_again, 3, 40), "softplus", "tanh", "mul", "add")


def rows_graph(operator: str, positions: np.ndarray[Any, Any] | None, **attributes: Any) -> Graph:
    """Of x (9, 4, 5) along axis 0, at positions (6, 1, 1) of an input or a constant, spread."""
    b = GraphBuilder()
    x = b.input("x", (9, 4, 5))
    if positions is None:
        indices = b.add("expand", b.input("i", (6, 1, 1), DType.I64), shape=(6, 4, 5))
    else:
        indices = b.constant(positions)
    updates = (b.input("u", (6, 4, 5)),) if operator == "scatter_elements" else ()
    return b.finish([b.add(operator, x, indices, *updates, axis=0, **attributes)])


@pytest.mark.parametrize("is_known", [True, False])
def test_whole_rows_are_moved_as_rows(is_known: bool) -> None:
    positions = np.broadcast_to(RANDOM.integers(-9, 9, (6, 1, 1)), (6, 4, 5)).copy()
    known = positions if is_known else None
    reshaped = () if is_known else ("reshape",)
    becomes(rows_graph("gather_elements", known), *reshaped, "gather_nd")
    becomes(rows_graph("scatter_elements", known, reduction="add"), *reshaped, "scatter_nd")


def test_rows_of_a_batch_are_gathered() -> None:
    b = GraphBuilder()
    x, i = b.input("x", (2, 9, 4)), b.input("i", (2, 6, 1), DType.I64)
    indices = b.add("expand", i, shape=(2, 6, 4))
    gathered = b.finish([b.add("gather_elements", x, indices, axis=1)])
    assert becomes(gathered, "gather_nd").nodes[0].attribute_map["batch_dims"] == 1


def test_rows_of_a_batch_are_not_scattered_as_rows() -> None:
    """scatter_nd has no dimensions of a batch: it would write to other rows."""
    b = GraphBuilder()
    x, i, u = b.input("x", (2, 9, 4)), b.input("i", (2, 6, 1), DType.I64), b.input("u", (2, 6, 4))
    indices = b.add("expand", i, shape=(2, 6, 4))
    scattered = b.finish([b.add("scatter_elements", x, indices, u, axis=1, reduction="add")])
    becomes(scattered, "expand", "scatter_elements")


def test_what_moves_no_whole_rows_stays() -> None:
    positions = RANDOM.integers(-9, 9, (6, 4, 5))
    becomes(rows_graph("gather_elements", positions), "gather_elements")
    b = GraphBuilder()
    x, i, u = b.input("x", (9, 4)), b.input("i", (6, 1), DType.I64), b.input("u", (6, 3))
    indices = b.add("expand", i, shape=(6, 3))
    part = b.add("scatter_elements", x, indices, u, axis=0)
    along = b.add("gather_elements", x, b.add("expand", i, shape=(6, 4)), axis=1)
    becomes(b.finish([part, along]), "expand", "scatter_elements", "expand", "gather_elements")


@pytest.mark.parametrize(
    ("kernel", "attributes"),
    [
        ((5, 5), {"pads": (2, 2, 2, 2)}),
        ((9, 6), {"pads": (1, 0, 4, 3), "strides": (2, 1), "ceil_mode": True}),
        ((5, 7), {"dilations": (2, 1), "strides": (1, 2)}),
    ],
)
def test_large_windows_are_pooled_one_dimension_after_the_other(
    kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    graph = build(lambda b, x: b.add("max_pool", x, kernel=kernel, **attributes), 2, 3, 17, 19)
    becomes(graph, "max_pool", "max_pool")


def test_windows_of_a_volume_are_pooled_one_dimension_after_the_other() -> None:
    graph = build(lambda b, x: b.add("max_pool", x, kernel=(5, 5, 5)), 1, 2, 8, 9, 7)
    becomes(graph, "max_pool", "max_pool", "max_pool")


@pytest.mark.parametrize(("kernel", "strides"), [((3, 3), (1, 1)), ((7, 7), (7, 7))])
def test_windows_that_share_little_are_pooled_at_once(
    kernel: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    graph = build(lambda b, x: b.add("max_pool", x, kernel=kernel, strides=strides), 1, 3, 14, 14)
    becomes(graph, "max_pool")


def fake_quantized(
    zero: np.ndarray[Any, Any] | None, scale: float = 0.25, other: float | None = None
) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (3, 40))
    first = b.constant(np.array(scale, np.float32))
    second = b.constant(np.array(scale if other is None else other, np.float32))
    zeros = () if zero is None else (b.constant(zero),)
    wide = b.add("mul", x, b.constant(30 * positive(40)))
    codes = b.add("quantize_linear", wide, first, *zeros)
    return b.finish([b.add("dequantize_linear", codes, second, *zeros)])


@pytest.mark.parametrize(
    "zero", [None, np.array(7, np.uint8), np.array([-100], np.int8), np.array(300, np.uint16)]
)
def test_what_is_quantised_and_no_longer_so_is_rounded_in_floats(
    zero: np.ndarray[Any, Any] | None,
) -> None:
    graph = fake_quantized(zero)
    simple = becomes(graph, "mul", "div", "round", "clip", "mul")
    inputs = {"x": normal(3, 40)}
    (expected,), (found,) = (interpret(each, inputs).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


def test_codes_that_stay_or_change_their_scale_are_not_rounded_in_floats() -> None:
    becomes(fake_quantized(None, other=0.5), "mul", "quantize_linear", "dequantize_linear")
    b = GraphBuilder()
    x, scales = b.input("x", (3, 4)), b.constant(positive(4))
    codes = b.add("quantize_linear", x, scales)
    rounded = b.finish([b.add("dequantize_linear", codes, scales)])
    becomes(rounded, "quantize_linear", "dequantize_linear")


@pytest.mark.parametrize("rows", [512, 4096])
def test_codes_of_weights_become_numbers_unless_reading_them_is_the_work(rows: int) -> None:
    b = GraphBuilder()
    codes = b.constant(RANDOM.integers(-9, 9, (rows, 4096), np.int8))
    weights = b.add("dequantize_linear", codes, b.constant(np.array(0.5, np.float32)))
    product = b.finish([b.add("matmul", b.input("x", (1, rows)), weights)])
    stays = ("dequantize_linear", "matmul") if rows == 4096 else ("matmul",)
    assert operators(simplify(product)) == [*stays]
