"""The registry, the checks of an application, the words of every refusal, and the pages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.ops.apply import applications, meaning
from tests.unit.ops.operator_page import operator_page

from tensorwright import ops
from tensorwright.base import DType, ModelError, UnsupportedError
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over

ROOT = Path(__file__).parents[3]


def f32(*shape: int) -> ops.TensorType:
    return ops.TensorType(DType.F32, shape)


def i64(*shape: int) -> ops.TensorType:
    return ops.TensorType(DType.I64, shape)


def u8(*shape: int) -> ops.TensorType:
    return ops.TensorType(DType.U8, shape)


def test_names_are_distinct_and_found() -> None:
    assert len({each.name for each in ops.OPERATORS}) == len(ops.OPERATORS)
    assert all(ops.operator(each.name) is each for each in ops.OPERATORS)


@pytest.mark.parametrize("each", ops.OPERATORS, ids=lambda each: each.name)
def test_records_are_complete(each: Any) -> None:
    assert (each.meaning is None) != (each.host is None)
    assert (each.pattern is ops.Pattern.OPAQUE) == (each.host is not None)
    assert each.doc
    assert not each.doc.endswith(".")
    assert all(attribute.doc for attribute in each.attributes)
    optional = [name.endswith("?") for name in each.inputs]
    assert optional == sorted(optional), "only the last inputs can be left out"


def test_every_operator_is_in_a_test() -> None:
    files = Path(__file__).parent.glob("*.py")
    text = "".join(path.read_text() for path in files if path.name != "test_registry.py")
    tried = {*re.findall(r'"(\w+)"', text), *re.findall(r"^(\w+)\(", text, re.MULTILINE)}
    assert {each.name for each in ops.OPERATORS} - tried == set()


@pytest.mark.golden
def test_the_page_of_operators_is_current(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "operators.md"
    if request.config.getoption("--golden-update"):
        page.write_text(operator_page(ops.OPERATORS))
    assert page.read_text() == operator_page(ops.OPERATORS), "run the tests with --golden-update"


def test_an_unknown_operator() -> None:
    with pytest.raises(UnsupportedError) as caught:
        ops.operator("sofmax")
    assert str(caught.value) == (
        "operator sofmax: looking it up: there is no such operator\n"
        "  try: did you mean softmax or log_softmax or max?"
    )
    with pytest.raises(UnsupportedError) as caught:
        ops.operator("qqqq")
    assert caught.value.remedy == ""


def test_defaults_are_filled_in() -> None:
    (result,), attributes = ops.infer_types("gemm", (f32(2, 3), f32(4, 3)), {"trans_b": True})
    assert result == f32(2, 4)
    assert attributes == {"alpha": 1.0, "beta": 1.0, "trans_a": False, "trans_b": True}


def test_the_place_is_named() -> None:
    with pytest.raises(ModelError) as caught:
        ops.infer_types("add", (f32(2), f32(3)), {}, where="node sum_7")
    assert str(caught.value) == (
        "node sum_7 (add): shapes (2,) and (3,) do not broadcast"
        "\n  try: docs/operators.md says what add takes"
    )


REFUSED = """
add(f32(2))
relu(f32(2), slope=1)
cast(f32(2))
add(f32(2), i64(2))
exp(i64(2))
and(f32(2), f32(2))
where(f32(2), f32(2), f32(2))
clip(f32(2), min=nan)
cast(f32(2), to="f32")
softmax(f32(2, 3), axis=2)
softmax(f32(2, 3), axis=1.5)
reduce_sum(f32(2, 3), axes=(0, -2))
reduce_sum(f32(2), axes=0)
reduce_sum(f32(2), keepdims=2)
argmax(f32(0, 3))
matmul(f32(2, 3), f32(4, 5))
matmul(f32(), f32(4))
gemm(f32(2, 3), f32(4, 5))
gemm(f32(3), f32(3, 5))
gemm(f32(2, 3), f32(3, 5), f32(4))
gemm(f32(1, 3), f32(3, 5), f32(2, 5))
matmul_integer(u8(2, 3), i64(3, 2))
conv(f32(1, 3), f32(4, 3))
conv(f32(1, 3, 8), f32(4, 2, 3))
conv(f32(1, 4, 8), f32(3, 2, 3), groups=2)
conv(f32(1, 2, 3), f32(3, 2, 3), dilations=(2,), pads=(0, 1))
conv(f32(1, 2, 3, 3), f32(3, 2, 3, 3), pads=(1, 1))
conv(f32(1, 2, 9), f32(3, 2, 3), strides=(0,))
conv(f32(1, 2, 9), f32(3, 2, 3), pads=(-1, 0))
conv(f32(1, 2, 9), f32(3, 2, 3), f32(2))
conv_transpose(f32(1, 2, 9), f32(3, 2, 3))
conv_transpose(f32(1, 2, 2), f32(2, 2, 2), pads=(2, 1))
max_pool(f32(1, 2, 9), kernel=(3, 3))
batch_norm(f32(2, 3), f32(2), f32(2), f32(2), f32(2))
group_norm(f32(2, 3), f32(3), f32(3), groups=2)
layer_norm(f32(2, 3), f32(4, 1, 1))
lp_normalization(f32(2), p=3)
lrn(f32(2, 3), size=0)
gelu(f32(2), approximate="erf")
attention(f32(1, 2, 3, 4), f32(1, 2, 5, 3), f32(1, 2, 5, 4))
attention(f32(1, 3, 3, 4), f32(1, 2, 5, 4), f32(1, 2, 5, 4))
reshape(f32(2, 3), shape=(4, 2))
reshape(f32(2, 3), shape=(-1,))
transpose(f32(2, 3), perm=(0, 0))
squeeze(f32(2, 3), axes=(0,))
tile(f32(2), repeats=(1, 2))
depth_to_space(f32(1, 6, 2, 2), blocksize=2)
space_to_depth(f32(1, 6, 3, 2), blocksize=2)
concat(f32(2, 3), f32(3, 4), axis=1)
split(f32(4), sizes=(1, 2))
slice(f32(4), starts=(0,), ends=(2,), steps=(0,))
slice(f32(4), starts=(0,), ends=(2, 3))
pad(f32(4), pads=(-3, -2))
pad(f32(0), pads=(1, 0), mode="edge")
gather(f32(4), f32(2))
gather(f32(0, 2), i64(3))
gather_elements(f32(2, 3), i64(2, 4))
gather_nd(f32(2, 3), i64(2, 3))
one_hot(i64(2), f32(3), depth=4)
full(shape=(-1,), value=0)
range(size=3, start=0.5)
einsum(f32(2, 3), f32(4, 5), equation="ij,jk->ik")
einsum(f32(2, 3), equation="ijk->ik")
einsum(f32(2, 3), equation="ij->k")
einsum(f32(2, 3), equation="ij,jk")
resize(f32(2), sizes=(2, 2))
quantize_linear(f32(2, 3), f32(2))
quantize_linear(f32(2, 3), f32(), dtype=DType.F32)
topk(f32(3), k=1, largest=5)
elu(f32(3), alpha="a")
bitcast(f32(3), to=DType.I64)
reverse_sequence(f32(3, 2), i64(2), batch_axis=0)
grid_sample(f32(1, 2, 3, 3), f32(1, 2, 2, 3))
topk(f32(3), k=4)
scatter_nd(f32(3), i64(2, 2), f32(2))
nonzero(f32(3), count=-1)
range_below(f32(), count=c)
range_below(i64(2), count=c)
non_max_suppression(f32(1, 5, 4), f32(1, 2, 6), i64(), f32(), f32(), count=c)
add(f32(n, m), f32(one, m))
add(f32(one), f32(4))
matmul(f32(n, m), f32(k, 4))
conv(f32(1, 3, one), f32(8, 3, 3))
reshape(f32(n, m), shape=(16, 4))
squeeze(f32(one, m))
gather_nd(f32(n, m), i64(3, one))
split(f32(n, m), sizes=(4, n), axis=1)
slice(f32(n, m), starts=(k - 20,), ends=(9,))
topk(f32(n, m), k=n)
add(f32(m), f32(4))
matmul(f32(n, m), f32(m + 1, 4))
add(f32(m), f32(20))
batch_norm(f32(n, m), f32(3), f32(m), f32(m), f32(m))
concat(f32(n, m), f32(n + 1, m), axis=1)
"""


def test_refusals(golden: Callable[..., None]) -> None:
    """Of what is wrong, and of what a size decides."""
    told = []
    for text, (name, types, attributes) in applications(REFUSED).items():
        with pytest.raises((ModelError, UnsupportedError)) as caught:
            ops.infer_types(name, types, attributes)
        assert caught.value.remedy
        told.append(f"{text}\n{textwrap.indent(str(caught.value), '    ')}")
    golden("\n".join(told))


WORK: list[tuple[Callable[[], Any], int]] = [
    (lambda: meaning("add", f32(3, 4), f32(4))[1], 12),
    (lambda: meaning("transpose", f32(3, 4))[1], 0),
    (lambda: meaning("matmul", f32(3, 4), f32(4, 5))[1], 2 * 3 * 4 * 5),
    (
        lambda: meaning("softmax", f32(2, 8))[1],
        2 * 8 * 6,
    ),  # max, sub and exp, sum, reciprocal, product
    (lambda: meaning("split", f32(4), sizes=(1, 3))[1], 0),
]


@pytest.mark.parametrize(("build", "expected"), WORK)
def test_work(build: Callable[[], Any], expected: int) -> None:
    assert ops.work(build()) == expected


def test_work_counts_a_shared_stage_once() -> None:
    x, k = placeholder("x", (8,)), reduce_axis("k", 8)
    total = compute("total", (), lambda: sum_over(x[k] * x[k], k))
    both = (
        compute("a", (8,), lambda i: x[i] * total[()]),
        compute("b", (8,), lambda i: x[i] - total[()]),
    )
    assert ops.work(both) == 16 + 8 + 8


MOVED: list[tuple[Callable[[], Any], int]] = [
    (lambda: meaning("add", f32(3, 4), f32(4))[1], 4 * (12 + 4 + 12)),
    (lambda: meaning("matmul", f32(3, 4), f32(4, 5))[1], 4 * (12 + 20 + 15)),
    (lambda: meaning("slice", f32(100), starts=(0,), ends=(3,), axes=(0,))[1], 4 * (3 + 3)),
]


@pytest.mark.parametrize(("build", "expected"), MOVED)
def test_moved_bytes(build: Callable[[], Any], expected: int) -> None:
    assert ops.moved_bytes(build()) == expected


def test_of_a_table_only_the_rows_that_are_read_are_moved() -> None:
    indices = ops.TensorType(DType.I64, (2,))
    outputs = meaning("gather", f32(1000, 8), indices, axis=0)[1]
    assert ops.moved_bytes(outputs) == 4 * 2 * 8 + 8 * 2 + 4 * 2 * 8
