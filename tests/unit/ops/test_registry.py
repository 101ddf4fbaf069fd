"""The registry, the checks of an application, the words of every refusal, and the pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.ops.apply import meaning
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
    files = Path(__file__).parent.glob("test_*.py")
    text = "".join(path.read_text() for path in files if path.name != "test_registry.py")
    assert [each.name for each in ops.OPERATORS if f'"{each.name}"' not in text] == []


def test_every_operator_is_in_the_table_of_its_file() -> None:
    folder = ROOT / "src" / "tensorwright" / "ops"
    tables = "".join(path.read_text().split('"""')[1] for path in folder.rglob("*.py"))
    words = set(tables.replace("|", " ").split())
    assert [each.name for each in ops.OPERATORS if each.name not in words] == []


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


REFUSALS: list[tuple[str, tuple[ops.TensorType, ...], dict[str, Any], str]] = [
    ("add", (f32(2),), {}, "1 inputs given\n  try: it takes (a, b)"),
    ("relu", (f32(2),), {"slope": 1}, "relu has no attribute slope\n  try: it has no attributes"),
    (
        "cast",
        (f32(2),),
        {},
        "cast needs the attribute to\n  try: its attributes are to",
    ),
    (
        "add",
        (f32(2), i64(2)),
        {},
        "the inputs differ in element type: a is f32, b is i64\n  try: cast them to one type",
    ),
    ("exp", (i64(2),), {}, "input x has elements of type i64, not a float"),
    ("and", (f32(2), f32(2)), {}, "input a has elements of type f32, not bool"),
    ("where", (f32(2), f32(2), f32(2)), {}, "input condition has elements of type f32, not bool"),
    ("clip", (f32(2),), {"min": float("nan")}, "attributes min and max must be numbers, not NaN"),
    ("cast", (f32(2),), {"to": "f32"}, "attribute to must be an element type, not 'f32'"),
    ("softmax", (f32(2, 3),), {"axis": 2}, "attribute axis is 2, but there are 2 dimensions"),
    ("softmax", (f32(2, 3),), {"axis": 1.5}, "attribute axis must be an integer, not 1.5"),
    (
        "reduce_sum",
        (f32(2, 3),),
        {"axes": (0, -2)},
        "attribute axes (0, -2) names a dimension twice",
    ),
    ("reduce_sum", (f32(2),), {"axes": 0}, "attribute axes must be a tuple of integers, not 0"),
    ("reduce_sum", (f32(2),), {"keepdims": 2}, "attribute keepdims must be true or false, not 2"),
    (
        "argmax",
        (f32(0, 3),),
        {},
        "dimension 0 of input x is empty: there is no position to give",
    ),
    (
        "matmul",
        (f32(2, 3), f32(4, 5)),
        {},
        "shapes (2, 3) and (4, 5): the inner extents 3 and 4 differ",
    ),
    ("matmul", (f32(), f32(4)), {}, "a matrix product of a scalar\n  try: use mul"),
    (
        "gemm",
        (f32(2, 3), f32(4, 5)),
        {},
        "shapes (2, 3) and (4, 5): the inner extents 3 and 4 differ",
    ),
    ("gemm", (f32(3), f32(3, 5)), {}, "input a has 1 dimensions (3,), not 2"),
    (
        "gemm",
        (f32(2, 3), f32(3, 5), f32(4)),
        {},
        "shapes (4,) and (2, 5) do not broadcast",
    ),
    (
        "gemm",
        (f32(1, 3), f32(3, 5), f32(2, 5)),
        {},
        "input c has shape (2, 5), which does not broadcast to (1, 5)",
    ),
    (
        "matmul_integer",
        (u8(2, 3), i64(3, 2)),
        {},
        "input b has elements of type i64, not i16 or i8 or u8",
    ),
    ("conv", (f32(1, 3), f32(4, 3)), {}, "input x has 2 dimensions (1, 3), not at least 3"),
    (
        "conv",
        (f32(1, 3, 8), f32(4, 2, 3)),
        {},
        "input x has 3 channels, but w (4, 2, 3) in 1 groups takes 2",
    ),
    (
        "conv",
        (f32(1, 4, 8), f32(3, 2, 3)),
        {"groups": 2},
        "3 output channels do not divide into 2 groups",
    ),
    (
        "conv",
        (f32(1, 2, 3), f32(3, 2, 3)),
        {"dilations": (2,), "pads": (0, 1)},
        "a window of (3,) (dilations (2,)) does not fit into (3,) with pads (0, 1)",
    ),
    (
        "conv",
        (f32(1, 2, 3, 3), f32(3, 2, 3, 3)),
        {"pads": (1, 1)},
        "attribute pads (1, 1) has 2 values, not 4",
    ),
    (
        "conv",
        (f32(1, 2, 9), f32(3, 2, 3)),
        {"strides": (0,)},
        "attribute strides (0,) must be positive",
    ),
    (
        "conv",
        (f32(1, 2, 9), f32(3, 2, 3)),
        {"pads": (-1, 0)},
        "attribute pads (-1, 0) must not be negative",
    ),
    ("conv", (f32(1, 2, 9), f32(3, 2, 3), f32(2)), {}, "input bias has shape (2,), not (3,)"),
    (
        "conv_transpose",
        (f32(1, 2, 9), f32(3, 2, 3)),
        {},
        "input x has 2 channels, but w (3, 2, 3) takes 3",
    ),
    (
        "conv_transpose",
        (f32(1, 2, 2), f32(2, 2, 2)),
        {"pads": (2, 1)},
        "pads (2, 1) leave no output along spatial dimension 0",
    ),
    (
        "max_pool",
        (f32(1, 2, 9),),
        {"kernel": (3, 3)},
        "attribute kernel (3, 3) has 2 values, not 1",
    ),
    ("batch_norm", (f32(2, 3), *(f32(2),) * 4), {}, "input scale has shape (2,), not (3,)"),
    (
        "group_norm",
        (f32(2, 3), f32(3), f32(3)),
        {"groups": 2},
        "3 channels do not divide into 2 groups",
    ),
    (
        "layer_norm",
        (f32(2, 3), f32(4, 1, 1)),
        {},
        "input scale (4, 1, 1) does not broadcast to x (2, 3)",
    ),
    ("lp_normalization", (f32(2),), {"p": 3}, "attribute p is 3, not 1 or 2"),
    ("lrn", (f32(2, 3),), {"size": 0}, "attribute size is 0, not positive"),
    (
        "gelu",
        (f32(2),),
        {"approximate": "erf"},
        "attribute approximate is 'erf'\n  try: one of none, tanh",
    ),
    (
        "attention",
        (f32(1, 2, 3, 4), f32(1, 2, 5, 3), f32(1, 2, 5, 4)),
        {},
        "shapes q (1, 2, 3, 4), k (1, 2, 5, 3) and v (1, 2, 5, 4) do not fit",
    ),
    (
        "attention",
        (f32(1, 3, 3, 4), f32(1, 2, 5, 4), f32(1, 2, 5, 4)),
        {},
        "3 heads of q do not divide among 2 heads of k",
    ),
    ("reshape", (f32(2, 3),), {"shape": (4, 2)}, "shape (2, 3) has 6 elements, (4, 2) 8"),
    ("reshape", (f32(2, 3),), {"shape": (-1,)}, "attribute shape (-1,) has a negative extent"),
    (
        "transpose",
        (f32(2, 3),),
        {"perm": (0, 0)},
        "attribute perm (0, 0) is not a permutation of 2 dimensions",
    ),
    ("squeeze", (f32(2, 3),), {"axes": (0,)}, "dimension 0 of shape (2, 3) has extent 2, not 1"),
    ("tile", (f32(2),), {"repeats": (1, 2)}, "attribute repeats (1, 2) does not fit shape (2,)"),
    (
        "depth_to_space",
        (f32(1, 6, 2, 2),),
        {"blocksize": 2},
        "6 channels do not divide into blocks of 2 x 2",
    ),
    (
        "space_to_depth",
        (f32(1, 6, 3, 2),),
        {"blocksize": 2},
        "spatial shape (3, 2) does not divide into blocks of 2 x 2",
    ),
    (
        "concat",
        (f32(2, 3), f32(3, 4)),
        {"axis": 1},
        "shapes (2, 3) and (3, 4) differ outside dimension 1",
    ),
    (
        "split",
        (f32(4),),
        {"sizes": (1, 2)},
        "attribute sizes (1, 2) does not add up to 4, dimension 0",
    ),
    ("slice", (f32(4),), {"starts": (0,), "ends": (2,), "steps": (0,)}, "a step is 0"),
    (
        "slice",
        (f32(4),),
        {"starts": (0,), "ends": (2, 3)},
        "attributes starts, ends, axes and steps differ in length",
    ),
    (
        "pad",
        (f32(4),),
        {"pads": (-3, -2)},
        "attribute pads (-3, -2) crops more than shape (4,) has",
    ),
    (
        "pad",
        (f32(0),),
        {"pads": (1, 0), "mode": "edge"},
        "mode edge cannot fill from shape (0,), which is empty",
    ),
    ("gather", (f32(4), f32(2)), {}, "input indices has elements of type f32, not i32 or i64"),
    (
        "gather",
        (f32(0, 2), i64(3)),
        {},
        "dimension 0 of input x (0, 2) is empty: nothing can be read",
    ),
    (
        "gather_elements",
        (f32(2, 3), i64(2, 4)),
        {},
        "input indices (2, 4) reaches outside x (2, 3)",
    ),
    (
        "gather_nd",
        (f32(2, 3), i64(2, 3)),
        {},
        "indices (2, 3) with 0 batch dimensions does not fit x (2, 3)",
    ),
    ("one_hot", (i64(2), f32(3)), {"depth": 4}, "input values has shape (3,), not (2,)"),
    ("full", (), {"shape": (-1,), "value": 0}, "attribute shape (-1,) has a negative extent"),
    ("range", (), {"size": 3, "start": 0.5}, "attribute start must be an integer, not 0.5"),
    (
        "einsum",
        (f32(2, 3), f32(4, 5)),
        {"equation": "ij,jk->ik"},
        "equation 'ij,jk->ik': j is 3 and 4",
    ),
    (
        "einsum",
        (f32(2, 3),),
        {"equation": "ijk->ik"},
        "equation 'ijk->ik': 'ijk' does not fit shape (2, 3)",
    ),
    (
        "einsum",
        (f32(2, 3),),
        {"equation": "ij->k"},
        "equation 'ij->k': the output is not made of distinct input labels",
    ),
    (
        "einsum",
        (f32(2, 3),),
        {"equation": "ij,jk"},
        "equation 'ij,jk' has 2 terms for 1 inputs",
    ),
    ("resize", (f32(2),), {"sizes": (2, 2)}, "attribute sizes (2, 2) does not fit shape (2,)"),
    (
        "quantize_linear",
        (f32(2, 3), f32(2)),
        {},
        "input scale has shape (2,), not () or (3,)",
    ),
    (
        "quantize_linear",
        (f32(2, 3), f32()),
        {"dtype": DType.F32},
        "codes of type f32\n  try: one of i8, u8, i16, u16",
    ),
    ("topk", (f32(3),), {"k": 1, "largest": 5}, "attribute largest must be true or false, not 5"),
    ("elu", (f32(3),), {"alpha": "a"}, "attribute alpha must be a number, not 'a'"),
    ("bitcast", (f32(3),), {"to": DType.I64}, "elements of f32 and i64 differ in size"),
    (
        "reverse_sequence",
        (f32(3, 2), i64(2)),
        {"batch_axis": 0},
        "attributes batch_axis and time_axis are both dimension 0",
    ),
    (
        "grid_sample",
        (f32(1, 2, 3, 3), f32(1, 2, 2, 3)),
        {},
        "input grid (1, 2, 2, 3) does not fit x (1, 2, 3, 3)",
    ),
    ("topk", (f32(3),), {"k": 4}, "attribute k is 4, but dimension 0 has 3 elements"),
    (
        "scatter_nd",
        (f32(3), i64(2, 2), f32(2)),
        {},
        "positions of 2 numbers in x (3,)",
    ),
]


@pytest.mark.parametrize(
    ("name", "types", "attributes", "message"),
    REFUSALS,
    ids=[f"{n}-{case[0]}" for n, case in enumerate(REFUSALS)],
)
def test_refusals(
    name: str, types: tuple[ops.TensorType, ...], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        ops.infer_types(name, types, attributes)
    remedy = "" if "\n  try: " in message else f"\n  try: docs/operators.md says what {name} takes"
    assert str(caught.value) == f"operator {name}: {message}{remedy}"


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
