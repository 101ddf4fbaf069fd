"""Activation functions of neural networks: element-wise, on floats."""

from __future__ import annotations

import math

from tensorwright import expr
from tensorwright.base import Attributes, DType
from tensorwright.ops.operator import FLOATS, NUMBERS, Attribute, Operator, float_of, text_of
from tensorwright.ops.pointwise.elementwise import elementwise

_SELU_ALPHA = 1.67326319217681884765625
_SELU_GAMMA = 1.05070102214813232421875


def _relu(_: Attributes, x: expr.Value) -> expr.Value:
    return expr.apply(expr.Fn.MAX, x, 0)


def _leaky_relu(attributes: Attributes, x: expr.Value) -> expr.Value:
    return expr.select(x < 0.0, x * float_of(attributes, "alpha"), x)


def _prelu(_: Attributes, x: expr.Value, slope: expr.Value) -> expr.Value:
    return expr.select(x < 0, slope * x, x)


def _elu(attributes: Attributes, x: expr.Value) -> expr.Value:
    return expr.select(
        x < 0.0, (expr.apply(expr.Fn.EXP, x) - 1.0) * float_of(attributes, "alpha"), x
    )


def _celu(attributes: Attributes, x: expr.Value) -> expr.Value:
    alpha = float_of(attributes, "alpha")
    negative = (expr.apply(expr.Fn.EXP, x / alpha) - 1.0) * alpha
    return expr.apply(expr.Fn.MAX, x, 0.0) + expr.apply(expr.Fn.MIN, negative, 0.0)


def _selu(attributes: Attributes, x: expr.Value) -> expr.Value:
    alpha, gamma = float_of(attributes, "alpha"), float_of(attributes, "gamma")
    negative = (expr.apply(expr.Fn.EXP, x) - 1.0) * alpha
    return expr.select(x <= 0.0, negative, x) * gamma


def _thresholded_relu(attributes: Attributes, x: expr.Value) -> expr.Value:
    return expr.select(x > float_of(attributes, "alpha"), x, 0.0)


_MISH_ONE = 20.0  # tanh(softplus(x)) is 1 from there on, also in f64


def _mish(x: expr.Value) -> expr.Value:
    """x * tanh(log(1 + e)) for e = exp(x), which is x * n / (n + 2) for n = e * (e + 2)."""
    power = expr.apply(expr.Fn.EXP, expr.apply(expr.Fn.MIN, x, _MISH_ONE))
    n = power * (power + 2.0)
    return x * (n / (n + 2.0))


def softplus(x: expr.Value) -> expr.Value:
    """log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|))."""
    return expr.apply(expr.Fn.MAX, x, 0.0) + expr.apply(
        expr.Fn.LOG1P, expr.apply(expr.Fn.EXP, -expr.apply(expr.Fn.ABS, x))
    )


def _hard_sigmoid(attributes: Attributes, x: expr.Value) -> expr.Value:
    line = x * float_of(attributes, "alpha") + float_of(attributes, "beta")
    return expr.apply(expr.Fn.MAX, expr.apply(expr.Fn.MIN, line, 1.0), 0.0)


def _hard_swish(_: Attributes, x: expr.Value) -> expr.Value:
    return x * expr.apply(expr.Fn.MAX, expr.apply(expr.Fn.MIN, x * (1 / 6) + 0.5, 1.0), 0.0)


def _swish(attributes: Attributes, x: expr.Value) -> expr.Value:
    alpha = float_of(attributes, "alpha")
    return x * expr.apply(expr.Fn.SIGMOID, x if alpha == 1 else x * alpha)


def _gelu(attributes: Attributes, x: expr.Value) -> expr.Value:
    if text_of(attributes, "approximate", ("none", "tanh")) == "none":
        return x * 0.5 * (expr.apply(expr.Fn.ERF, x * math.sqrt(0.5)) + 1.0)
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (expr.apply(expr.Fn.TANH, inner) + 1.0)


def _shrink(attributes: Attributes, x: expr.Value) -> expr.Value:
    lambd, bias = float_of(attributes, "lambd"), float_of(attributes, "bias")
    value = x if x.dtype.is_float else expr.cast(x, DType.F64)
    above = expr.select(value > lambd, _moved(x, -bias), expr.constant(0, x.dtype))
    return expr.select(value < -lambd, _moved(x, bias), above)


def _moved(x: expr.Value, number: float) -> expr.Value:
    """x + number; the sum of an integer and a fraction loses its fraction."""
    if x.dtype.is_float:
        return x + number
    if number == int(number) and x.dtype.lowest <= number <= x.dtype.highest:
        return x + int(number)
    return expr.cast(expr.cast(x, DType.F64) + number, x.dtype)


ACTIVATION_OPERATORS: tuple[Operator, ...] = (
    elementwise("relu", "max(x, 0)", _relu, NUMBERS),
    elementwise(
        "leaky_relu",
        "x, but alpha * x below 0",
        _leaky_relu,
        FLOATS,
        attributes=(Attribute("alpha", 0.01, "slope below 0"),),
    ),
    elementwise("prelu", "x, but slope * x below 0", _prelu, NUMBERS, inputs=("x", "slope")),
    elementwise(
        "elu",
        "x, but alpha * (exp(x) - 1) below 0",
        _elu,
        FLOATS,
        attributes=(Attribute("alpha", 1.0, "minus the limit at minus infinity"),),
    ),
    elementwise(
        "celu",
        "max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)",
        _celu,
        FLOATS,
        attributes=(Attribute("alpha", 1.0, "minus the limit at minus infinity"),),
    ),
    elementwise(
        "selu",
        "gamma * x, but gamma * alpha * (exp(x) - 1) below 0",
        _selu,
        FLOATS,
        attributes=(
            Attribute("alpha", _SELU_ALPHA, "minus the limit at minus infinity, over gamma"),
            Attribute("gamma", _SELU_GAMMA, "slope above 0"),
        ),
    ),
    elementwise(
        "thresholded_relu",
        "x above alpha, else 0",
        _thresholded_relu,
        FLOATS,
        attributes=(Attribute("alpha", 1.0, "the threshold"),),
    ),
    elementwise(
        "sigmoid", "1 / (1 + exp(-x))", lambda _, x: expr.apply(expr.Fn.SIGMOID, x), FLOATS
    ),
    elementwise("softplus", "log(1 + exp(x))", lambda _, x: softplus(x), FLOATS),
    elementwise(
        "softsign", "x / (1 + |x|)", lambda _, x: x / (expr.apply(expr.Fn.ABS, x) + 1.0), FLOATS
    ),
    elementwise("mish", "x * tanh(softplus(x))", lambda _, x: _mish(x), FLOATS),
    elementwise(
        "hard_sigmoid",
        "max(0, min(1, alpha * x + beta))",
        _hard_sigmoid,
        FLOATS,
        attributes=(
            Attribute("alpha", 0.2, "the slope"),
            Attribute("beta", 0.5, "the value at 0"),
        ),
    ),
    elementwise("hard_swish", "x * max(0, min(1, x / 6 + 0.5))", _hard_swish, FLOATS),
    elementwise(
        "swish",
        "x * sigmoid(alpha * x)",
        _swish,
        FLOATS,
        attributes=(Attribute("alpha", 1.0, "the slope inside the sigmoid"),),
    ),
    elementwise(
        "gelu",
        "x times the normal distribution function of x, or its tanh approximation",
        _gelu,
        FLOATS,
        attributes=(Attribute("approximate", "none", 'exact ("none") or "tanh"'),),
    ),
    elementwise(
        "shrink",
        "x + bias below -lambd, x - bias above lambd, else 0",
        _shrink,
        NUMBERS,
        attributes=(
            Attribute("bias", 0.0, "is moved towards 0"),
            Attribute("lambd", 0.5, "the threshold"),
        ),
    ),
)
