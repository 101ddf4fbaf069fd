"""Element-wise operators and activations against NumPy and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as nn
from tests.unit.ops.apply import apply, check, floats, ints

from tensorwright.base import DType

Function = Callable[..., Any]

UNARY: dict[str, tuple[Function, float, float]] = {
    "neg": (np.negative, -2, 2),
    "abs": (np.abs, -2, 2),
    "sign": (np.sign, -2, 2),
    "floor": (np.floor, -2, 2),
    "ceil": (np.ceil, -2, 2),
    "round": (np.rint, -4, 4),
    "trunc": (np.trunc, -2, 2),
    "sqrt": (np.sqrt, 0, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4),
    "reciprocal": (np.reciprocal, 0.1, 4),
    "exp": (np.exp, -3, 3),
    "expm1": (np.expm1, -1, 1),
    "log": (np.log, 0.1, 4),
    "log1p": (np.log1p, -0.5, 4),
    "erf": (lambda x: torch.erf(torch.from_numpy(x)), -3, 3),
    "sin": (np.sin, -4, 4),
    "cos": (np.cos, -4, 4),
    "tan": (np.tan, -1, 1),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -4, 4),
    "sinh": (np.sinh, -3, 3),
    "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3),
    "asinh": (np.arcsinh, -3, 3),
    "acosh": (np.arccosh, 1, 4),
    "atanh": (np.arctanh, -0.9, 0.9),
    "identity": (np.array, -1, 1),
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str) -> None:
    function, low, high = UNARY[name]
    x = floats(3, 5, low=low, high=high)
    check(name, function(x), x)


BINARY: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fmod": np.fmod,
    "floormod": np.mod,
    "atan2": np.arctan2,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_or_equal": np.less_equal,
    "greater": np.greater,
    "greater_or_equal": np.greater_equal,
}
SHAPES = [
    ((4,), (4,)),
    ((2, 3, 4), (3, 1)),
    ((1, 5), (2, 1)),
    ((), (2, 2)),
    ((2, 1, 3, 4), (5, 1, 4)),
]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_functions_of_two_numbers_broadcast(
    name: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    a, b = floats(*left, low=-2, high=2), floats(*right, low=0.5, high=2)
    check(name, BINARY[name](a, b), a, b)


def test_equality_of_equals() -> None:
    a, b = ints(4, 5, low=0, high=3), ints(4, 5, low=0, high=3)
    for name in ("equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"):
        check(name, BINARY[name](a, b), a, b)
    check("equal", [True, False], np.array([True, False]), np.array([True, True]))


def test_division_of_integers_truncates() -> None:
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    check("div", [3, -3, -3, 3], a, b)
    check("fmod", [1, -1, 1, -1], a, b)
    check("floormod", [1, 1, -1, -1], a, b)


def test_pow_keeps_the_type_of_the_base() -> None:
    a, b = floats(3, 4, low=0.5), floats(4)
    check("pow", np.power(np.abs(a), b), np.abs(a), b)
    check("pow", np.array([4.0, 9.0]), np.array([2.0, 3.0]), np.array([2, 2]))
    check("pow", [1, 8], np.array([1, 2]), np.array([3.0, 3.0], np.float32))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("min", lambda *x: np.minimum(np.minimum(x[0], x[1]), x[2])),
        ("max", lambda *x: np.maximum(np.maximum(x[0], x[1]), x[2])),
        ("sum", lambda *x: x[0] + x[1] + x[2]),
        ("mean", lambda *x: (x[0] + x[1] + x[2]) / 3),
    ],
)
def test_functions_of_any_number_of_inputs(name: str, function: Function) -> None:
    x = (floats(2, 3), floats(3), floats(2, 1))
    check(name, function(*x), *x)
    check(name, x[0], x[0])


def test_logic_and_bits() -> None:
    p, q = ints(4, 4, low=0, high=2).astype(bool), ints(4, low=0, high=2).astype(bool)
    check("not", ~p, p)
    check("and", p & q, p, q)
    check("or", p | q, p, q)
    check("xor", p ^ q, p, q)
    a, b = ints(3, 4, dtype=np.int32), ints(4, dtype=np.int32)
    check("bitwise_not", ~a, a)
    check("bitwise_and", a & b, a, b)
    check("bitwise_or", a | b, a, b)
    check("bitwise_xor", a ^ b, a, b)
    c, d = ints(3, 4, low=0, high=99, dtype=np.uint8), ints(4, low=0, high=7, dtype=np.uint8)
    check("shift_left", c << d, c, d)
    check("shift_right", c >> d, c, d)


def test_special_values() -> None:
    x = np.array([1.0, -np.inf, np.inf, np.nan, 0.0], np.float32)
    check("isnan", np.isnan(x), x)
    check("isinf", np.isinf(x), x)
    check("isinf", np.isposinf(x), x, detect_negative=False)
    check("isinf", np.isneginf(x), x, detect_positive=False)
    check("isinf", np.zeros(5, bool), x, detect_positive=False, detect_negative=False)


def test_where_broadcasts_all_three() -> None:
    condition, x, y = floats(2, 1) > 0, floats(3), floats(1, 1)
    check("where", np.where(condition, x, y), condition, x, y)


@pytest.mark.parametrize("target", [d for d in DType if d is not DType.BF16])
def test_cast(target: DType) -> None:
    x = floats(4, 5, low=0, high=100)
    check("cast", x.astype(target.numpy), x, to=target, tolerance=1e-3)
    n = ints(4, low=0)
    check("cast", n.astype(target.numpy), n, to=target)


def test_narrow_floats_are_taken() -> None:
    x = floats(4).astype(ml_dtypes.bfloat16)
    (result,) = apply("add", x, x)
    assert result.dtype == ml_dtypes.bfloat16
    half = floats(4).astype(np.float16)
    check("mul", half * half, half, half, tolerance=1e-3)


def test_clip_limits_numbers_and_integers() -> None:
    x, n = floats(20), ints(20)
    check("clip", np.clip(x, -0.5, 1.0), x, min=-0.5, max=1.0)
    check("clip", np.maximum(x, 0), x, min=0.0)
    check("clip", np.clip(n, -3, 4), n, min=-3, max=4.0)
    check("clip", n, n)
    check("clip", [np.nan], np.array([np.nan], np.float32), min=0.0, max=6.0)


ACTIVATIONS: list[tuple[str, dict[str, Any], Function]] = [
    ("relu", {}, nn.relu),
    ("leaky_relu", {"alpha": 0.1}, lambda x: nn.leaky_relu(x, 0.1)),
    ("leaky_relu", {}, nn.leaky_relu),
    ("elu", {"alpha": 1.5}, lambda x: nn.elu(x, 1.5)),
    ("celu", {"alpha": 1.5}, lambda x: nn.celu(x, 1.5)),
    ("selu", {}, nn.selu),
    ("thresholded_relu", {"alpha": 0.5}, lambda x: nn.threshold(x, 0.5, 0.0)),
    ("sigmoid", {}, torch.sigmoid),
    ("softplus", {}, nn.softplus),
    ("softsign", {}, nn.softsign),
    ("mish", {}, nn.mish),
    ("hard_sigmoid", {"alpha": 1 / 6}, nn.hardsigmoid),
    ("hard_swish", {}, nn.hardswish),
    ("swish", {}, nn.silu),
    ("swish", {"alpha": 0.3}, lambda x: x * torch.sigmoid(0.3 * x)),
    ("gelu", {}, nn.gelu),
    ("gelu", {"approximate": "tanh"}, lambda x: nn.gelu(x, approximate="tanh")),
    ("shrink", {"lambd": 0.7}, lambda x: nn.hardshrink(x, 0.7)),
    ("shrink", {"lambd": 0.7, "bias": 0.7}, lambda x: nn.softshrink(x, 0.7)),
]


@pytest.mark.parametrize(("name", "attributes", "function"), ACTIVATIONS)
def test_activations(name: str, attributes: dict[str, Any], function: Function) -> None:
    x = floats(3, 40, low=-6, high=6)
    check(name, function(torch.from_numpy(x)), x, **attributes)


def test_prelu_has_a_slope_per_channel() -> None:
    x, slope = floats(2, 3, 4, 5), floats(3, 1, 1)
    expected = nn.prelu(torch.from_numpy(x), torch.from_numpy(slope.reshape(3)))
    check("prelu", expected, x, slope)


def test_softplus_does_not_overflow() -> None:
    (result,) = apply("softplus", np.array([-200.0, 0.0, 200.0], np.float32))
    assert result.tolist() == [0.0, pytest.approx(math.log(2)), 200.0]
