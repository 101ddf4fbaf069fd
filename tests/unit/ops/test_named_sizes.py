"""Shape rules over named sizes: with numbers put in, they give what they give for the numbers."""

from __future__ import annotations

import pytest
from tests.draws import random_source

from tensorwright.base import DType, ModelError, TensorType, UnsupportedError
from tensorwright.expr import Index, IndexExpr, named_size, with_sizes
from tensorwright.ops import infer_types
from tensorwright.ops.named_sizes import sizes_of

n = named_size("n", least=2, greatest=64)
m = named_size("m", least=8, greatest=512, divisor=8)
k = named_size("k", least=16)
one = named_size("one")  # which may be 1
VALUES = {"n": range(2, 65), "m": range(8, 513, 8), "k": range(16, 100), "one": range(1, 9)}


def typed(shape: tuple[Index, ...], dtype: DType = DType.F32) -> TensorType:
    return TensorType(dtype, shape)


def positions(*shape: Index) -> TensorType:
    return typed(shape, DType.I64)


def at(shape: tuple[Index, ...], values: dict[str, int]) -> tuple[int, ...]:
    numbers = tuple(with_sizes(extent, values) for extent in shape)
    assert all(isinstance(number, int) for number in numbers)
    return numbers


def number_at(value: object, values: dict[str, int]) -> object:
    return with_sizes(value, values) if isinstance(value, IndexExpr) else value


CASES = {
    "relu": ("relu", [(n, 3, m)], {}),
    "add, stretched": ("add", [(n, 1, m), (k, 1)], {}),
    "add, same": ("add", [(one, m), (one, m)], {}),
    "where": ("where", [typed((n, 1), DType.BOOL), (n, m), (m,)], {}),
    "pow": ("pow", [(n, m), (m,)], {}),
    "matmul": ("matmul", [(n, 1, m, k), (8, k, 5)], {}),
    "matmul of a vector": ("matmul", [(n, m), (m,)], {}),
    "gemm": ("gemm", [(m, n), (k, m), (n, 1)], {"trans_a": True, "trans_b": True}),
    "attention": ("attention", [(n, m, k, 64), (n, 8, m, 64), (n, 8, m, 64)], {}),
    "conv": (
        "conv",
        [(n, 2 * m, k, m + 5), (32, m, 3, 5), (32,)],
        {"groups": 2, "strides": (2, 3), "pads": (1, 1, 1, 2), "dilations": (2, 1)},
    ),
    "max_pool": ("max_pool", [(n, m, k, 2 * k)], {"kernel": (3, 2), "strides": (2, 2)}),
    "global pooling": ("global_average_pool", [(n, m, k, k)], {}),
    "reshape": ("reshape", [(n, 8, m)], {"shape": (n, 2, m, 4)}),
    "reshape by a divisor": ("reshape", [(n, m)], {"shape": (n * 4, m // 4)}),
    "transpose": ("transpose", [(n, 3, m)], {"perm": (2, 0, 1)}),
    "expand": ("expand", [(n, 1, 1)], {"shape": (m, 1, k, 4)}),
    "squeeze": ("squeeze", [(n, 1, m)], {"axes": (1,)}),
    "unsqueeze": ("unsqueeze", [(n, m)], {"axes": (0, 3)}),
    "tile": ("tile", [(n, m)], {"repeats": (2, 3)}),
    "depth_to_space": ("depth_to_space", [(n, m, k, k)], {"blocksize": 2}),
    "space_to_depth": ("space_to_depth", [(n, 3, m, 2 * k)], {"blocksize": 2}),
    "concat": ("concat", [(n, m), (n, 3), (n, k - 1)], {"axis": 1}),
    "split": ("split", [(n, 8)], {"sizes": (3, 5), "axis": 1}),
    "slice, inside": ("slice", [(n, m)], {"starts": (1, 0), "ends": (2, -1)}),
    "slice, beyond": ("slice", [(n, k)], {"starts": (-5, 3), "ends": (100, 60), "steps": (2, 7)}),
    "slice, backwards": (
        "slice",
        [(n, k)],
        {"starts": (-1, 9), "ends": (-99, 2), "steps": (-1, -3)},
    ),
    "pad": ("pad", [(n, k)], {"pads": (1, -3, 2, 0)}),
    "pad, reflected": ("pad", [(n, k)], {"pads": (1, 2, 1, 3), "mode": "reflect"}),
    "reduce_sum": ("reduce_sum", [(n, 3, m)], {"axes": (0, 2), "keepdims": False}),
    "argmax": ("argmax", [(n, m)], {"axis": 1}),
    "softmax": ("softmax", [(n, m)], {}),
    "cumsum": ("cumsum", [(n, m)], {"axis": 0}),
    "gather": ("gather", [(m, k), positions(n, 4)], {"axis": 0}),
    "gather_elements": ("gather_elements", [(n, m), positions(n, 3)], {"axis": 1}),
    "gather_nd": ("gather_nd", [(m, 4, k), positions(n, 5, 2)], {}),
    "one_hot": ("one_hot", [positions(n, m), (2,)], {"depth": 10}),
    "batch_norm": ("batch_norm", [(n, m, k), (m,), (m,), (m,), (m,)], {}),
    "group_norm": ("group_norm", [(n, m, k), (m,), (m,)], {"groups": 4}),
    "layer_norm": ("layer_norm", [(n, k, m), (m,), (m,)], {}),
    "quantize_linear": ("quantize_linear", [(n, m), (), typed((), DType.U8)], {}),
    "topk": ("topk", [(n, k)], {"k": 5}),
    "topk, all": ("topk", [(n, k)], {"k": k}),
    "one_hot, open": ("one_hot", [positions(n, m), (2,)], {"depth": k + 1}),
    "split, open": ("split", [(n, m + k)], {"sizes": (m, k), "axis": 1}),
    "slice, open": ("slice", [(n, k)], {"starts": (0, m), "ends": (n - 1, -m)}),
    "pad, open": ("pad", [(n, k)], {"pads": (m, -n, 0, n + 3)}),
    "tile, open": ("tile", [(n, 3)], {"repeats": (2, m)}),
    "resize": ("resize", [(1, n, m)], {"sizes": (1, 2 * n, 7)}),
    "full": ("full", [], {"shape": (n, m // 8, 3), "value": 1.0}),
    "full, of a size": ("full", [], {"shape": (), "value": n * m}),
    "range": ("range", [], {"size": m - 2, "start": k, "step": -2}),
    "trilu": ("trilu", [(n, m)], {"k": m - n}),
    "max_pool, rounded up": (
        "max_pool",
        [(1, 3, k)],
        {"kernel": (3,), "strides": (2,), "pads": (1, 1), "ceil_mode": True},
    ),
    "conv_transpose": (
        "conv_transpose",
        [(n, 4, m), (4, 2, 3)],
        {"strides": (2,), "pads": (1, 0), "groups": 2},
    ),
}


def types_of(inputs: list[object]) -> tuple[TensorType, ...]:
    return tuple(each if isinstance(each, TensorType) else typed(each) for each in inputs)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.drawn
def test_a_rule_agrees_with_that_of_the_numbers(name: str) -> None:
    operator, inputs, attributes = CASES[name]
    types = types_of(inputs)
    symbolic, _ = infer_types(operator, types, attributes)
    chance = random_source(name)
    for _ in range(20):
        values = {each: chance.choice(numbers) for each, numbers in VALUES.items()}
        plain = tuple(typed(at(sizes_of(each), values), each.dtype) for each in types)
        numbers = {
            key: at(value, values) if isinstance(value, tuple) else number_at(value, values)
            for key, value in attributes.items()
        }
        expected, _ = infer_types(operator, plain, numbers)
        assert [at(sizes_of(each), values) for each in symbolic] == [e.shape for e in expected]
        assert [each.dtype for each in symbolic] == [each.dtype for each in expected]


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "reason"),
    [
        ("add", [(n, m), (one, m)], {}, "whether n == one decides the shape"),
        ("add", [(one,), (4,)], {}, "whether one == 4 decides the shape"),
        ("matmul", [(n, m), (k, 4)], {}, "whether m == k decides the shape"),
        ("conv", [(1, 3, one), (8, 3, 3)], {}, "decides the shape, and it depends on the size one"),
        ("reshape", [(n, m)], {"shape": (16, 4)}, "whether 64 == m*n decides the shape"),
        ("squeeze", [(one, m)], {}, "whether one == 1 decides the shape"),
        ("gather_nd", [(n, m), positions(3, one)], {}, "the extent one must be a number here"),
        ("split", [(n, m)], {"sizes": (4, n), "axis": 1}, "whether n + 4 == m"),
        ("slice", [(n, m)], {"starts": (k - 20,), "ends": (9,)}, "whether 0 <= k - 20 decides"),
        ("topk", [(n, m)], {"k": n}, "whether n <= m decides the shape"),
    ],
)
def test_what_a_size_decides_is_refused_by_name(
    operator: str, inputs: list[object], attributes: dict, reason: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        infer_types(operator, types_of(inputs), attributes)
    assert reason in str(caught.value)
    assert caught.value.operator == operator
    assert "sizes={" in caught.value.remedy


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "remedy"),
    [
        (
            "conv",
            [(1, 3, one), (8, 3, 3)],
            {},
            'bounds that decide it: sizes={"one": "3.."}, where the model is read',
        ),
        (
            "gather_nd",
            [(n, m), positions(3, one)],
            {},
            'a number for one: sizes={"one": 64}, where the model is read',
        ),
    ],
)
def test_a_remedy_says_what_the_operator_takes(
    operator: str, inputs: list[object], attributes: dict, remedy: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        infer_types(operator, types_of(inputs), attributes)
    assert str(caught.value.remedy).endswith(remedy)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "reason"),
    [
        ("add", [(m,), (4,)], {}, "shapes (m,) and (4,) do not broadcast"),
        ("matmul", [(n, m), (m + 1, 4)], {}, "the inner extents m and m + 1 differ"),
        ("add", [(m,), (20,)], {}, "shapes (m,) and (20,) do not broadcast"),
        (
            "batch_norm",
            [(n, m), (3,), (m,), (m,), (m,)],
            {},
            "input scale has shape (3,), not (m,)",
        ),
        ("concat", [(n, m), (n + 1, m)], {"axis": 1}, "differ outside dimension 1"),
    ],
)
def test_what_is_wrong_for_every_size_is_a_fault(
    operator: str, inputs: list[object], attributes: dict, reason: str
) -> None:
    with pytest.raises(ModelError) as caught:
        infer_types(operator, types_of(inputs), attributes)
    assert reason in caught.value.reason


def test_a_type_says_whether_it_is_open() -> None:
    assert typed((n, 3)).is_open
    assert str(typed((n, 2 * m + 1))) == "f32(n, 2*m + 1)"
    assert not typed((2, 3)).is_open
    assert typed((2, 3)).extents == (2, 3)
    with pytest.raises(UnsupportedError, match=r"f32\(n, 3\)") as caught:
        typed((n, 3)).size_bytes  # noqa: B018
    assert caught.value.remedy == "give a number for each named size"
