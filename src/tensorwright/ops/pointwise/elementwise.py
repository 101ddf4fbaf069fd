"""Arithmetic, comparison, logic and bits, element by element; inputs broadcast NumPy style."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import operator
from tensorwright.ops.named_sizes import sizes_of
from tensorwright.ops.shapes import broadcast_shapes, pointwise

Rule = Callable[..., expr.Value]


def elementwise(
    name: str,
    doc: str,
    rule: Rule,
    accepts: frozenset[DType],
    *,
    inputs: tuple[str, ...] = ("x",),
    attributes: tuple[operator.Attribute, ...] = (),
    movement: operator.Movement = operator.Movement.NONE,
    is_identity: operator.IdentityRule = operator.never_identity,
) -> operator.Operator:
    """An operator whose rule gets (attributes, element of each input) and gives the output element.

    All inputs have one element type, among `accepts`; that of the output is the rule's, which is
    tried on constants to find it and to check the attributes.  Narrow floats are computed as f32.
    """

    def widened(given: Attributes, *values: expr.Value) -> expr.Value:
        narrow = values[0].dtype
        if narrow not in operator.NARROW:
            return rule(given, *values)
        result = rule(given, *(expr.cast(value, DType.F32) for value in values))
        return expr.cast(result, narrow) if result.dtype is DType.F32 else result

    def infer(types: operator.Types, given: Attributes) -> operator.Types:
        names = inputs if len(inputs) == len(types) else tuple(map(str, range(len(types))))
        for label, each in zip(names, types, strict=True):
            operator.require_dtype(label, each, accepts)
        operator.require_same_dtype(names, types)
        shape = broadcast_shapes(*map(sizes_of, types))
        example = widened(given, *(expr.constant(0, each.dtype) for each in types))
        return (TensorType(example.dtype, shape),)

    def meaning(tensors: operator.Tensors, given: Attributes) -> operator.Computes:
        shape = broadcast_shapes(*(tensor.shape for tensor in tensors))
        return (pointwise(name, tensors, shape, lambda *values: widened(given, *values)),)

    return operator.tensor_operator(
        name,
        doc,
        inputs,
        attributes,
        infer,
        meaning,
        operator.Pattern.ELEMENTWISE,
        operator.LayoutPreference.ANY,
        movement=movement,
        is_identity=is_identity,
    )


def _function(
    name: str, fn: expr.Fn, doc: str, accepts: frozenset[DType] = operator.FLOATS
) -> operator.Operator:
    return elementwise(name, doc, lambda _, x: expr.apply(fn, x), accepts)


def _pair(
    name: str, fn: expr.Fn, doc: str, accepts: frozenset[DType], *, swap: bool = False
) -> operator.Operator:
    def rule(_: Attributes, a: expr.Value, b: expr.Value) -> expr.Value:
        return expr.apply(fn, b, a) if swap else expr.apply(fn, a, b)

    return elementwise(name, doc, rule, accepts, inputs=("a", "b"))


def _fold(name: str, fn: expr.Fn, doc: str) -> operator.Operator:
    def rule(_: Attributes, *values: expr.Value) -> expr.Value:
        return reduce(lambda a, b: expr.apply(fn, a, b), values)

    return elementwise(
        name,
        doc,
        rule,
        operator.NUMBERS,
        inputs=("*tensors",),
        is_identity=operator.identity_of_type,
    )


def _mean(_: Attributes, *values: expr.Value) -> expr.Value:
    total = reduce(lambda a, b: a + b, values)
    return total if len(values) == 1 else total / len(values)


def _isinf(attributes: Attributes, x: expr.Value) -> expr.Value:
    is_infinite = expr.apply(expr.Fn.ISINF, x)
    negative = operator.bool_of(attributes, "detect_negative")
    positive = operator.bool_of(attributes, "detect_positive")
    if negative and positive:
        return is_infinite
    if not negative and not positive:
        return expr.constant(0, DType.BOOL)
    side = expr.apply(expr.Fn.LT, x, 0.0) if negative else expr.apply(expr.Fn.LT, 0.0, x)
    return expr.apply(expr.Fn.AND, is_infinite, side)


def _clip(attributes: Attributes, x: expr.Value) -> expr.Value:
    low, high = operator.float_of(attributes, "min"), operator.float_of(attributes, "max")
    if math.isnan(low) or math.isnan(high):
        raise operator.fault("attributes min and max must be numbers, not NaN")
    number = float if x.dtype.is_float else int
    if low > x.dtype.lowest:
        x = expr.apply(expr.Fn.MAX, x, expr.constant(number(low), x.dtype))
    if high < x.dtype.highest:
        x = expr.apply(expr.Fn.MIN, x, expr.constant(number(high), x.dtype))
    return x


def _has_no_bounds(_: TensorType, attributes: Attributes) -> bool:
    bounds = operator.float_of(attributes, "min"), operator.float_of(attributes, "max")
    return bounds == (-math.inf, math.inf)


def _infer_where(types: operator.Types, _: Attributes) -> operator.Types:
    operator.require_dtype("condition", types[0], operator.BOOLS)
    operator.require_same_dtype(("x", "y"), types[1:])
    return (TensorType(types[1].dtype, broadcast_shapes(*map(sizes_of, types))),)


def _where(tensors: operator.Tensors, _: Attributes) -> operator.Computes:
    shape = broadcast_shapes(*(tensor.shape for tensor in tensors))
    return (pointwise("where", tensors, shape, expr.select),)


def _infer_pow(types: operator.Types, _: Attributes) -> operator.Types:
    operator.require_dtype("a", types[0], operator.NUMBERS)
    operator.require_dtype("b", types[1], operator.NUMBERS)
    return (TensorType(types[0].dtype, broadcast_shapes(*map(sizes_of, types))),)


def _pow(tensors: operator.Tensors, _: Attributes) -> operator.Computes:
    base, exponent = tensors
    wide = base.dtype
    if exponent.dtype.is_float and not wide.is_float:
        wide = exponent.dtype

    def rule(a: expr.Value, b: expr.Value) -> expr.Value:
        return expr.cast(
            expr.apply(expr.Fn.POW, expr.cast(a, wide), expr.cast(b, wide)), base.dtype
        )

    shape = broadcast_shapes(base.shape, exponent.shape)
    return (pointwise("pow", tensors, shape, rule),)


def _infer_cast(types: operator.Types, attributes: Attributes) -> operator.Types:
    return (TensorType(operator.dtype_of(attributes, "to"), types[0].shape),)


def _cast(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    target = operator.dtype_of(attributes, "to")
    return (pointwise("cast", tensors, tensors[0].shape, lambda x: expr.cast(x, target)),)


ELEMENTWISE_OPERATORS = (
    _pair("add", expr.Fn.ADD, "a + b", operator.NUMBERS),
    _pair("sub", expr.Fn.SUB, "a - b", operator.NUMBERS),
    _pair("mul", expr.Fn.MUL, "a * b", operator.NUMBERS),
    _pair("div", expr.Fn.DIV, "a / b; integers are truncated towards zero", operator.NUMBERS),
    operator.tensor_operator(
        "pow",
        "a to the power of b, in the type of a",
        ("a", "b"),
        (),
        _infer_pow,
        _pow,
        operator.Pattern.ELEMENTWISE,
        operator.LayoutPreference.ANY,
    ),
    _pair("fmod", expr.Fn.MOD, "remainder of a / b with the sign of a", operator.NUMBERS),
    _pair("floormod", expr.Fn.FLOORMOD, "remainder of a / b with the sign of b", operator.NUMBERS),
    _pair("atan2", expr.Fn.ATAN2, "angle of the point (b, a)", operator.FLOATS),
    _fold("min", expr.Fn.MIN, "least of the inputs; NaN if one is NaN"),
    _fold("max", expr.Fn.MAX, "greatest of the inputs; NaN if one is NaN"),
    _fold("sum", expr.Fn.ADD, "sum of the inputs"),
    elementwise(
        "mean",
        "arithmetic mean of the inputs",
        _mean,
        operator.FLOATS,
        inputs=("*tensors",),
        is_identity=operator.identity_of_type,
    ),
    _function("neg", expr.Fn.NEG, "-x", operator.SIGNED),
    _function("abs", expr.Fn.ABS, "|x|", operator.NUMBERS),
    _function("sign", expr.Fn.SIGN, "-1, 0 or 1", operator.NUMBERS),
    _function("floor", expr.Fn.FLOOR, "greatest whole number <= x"),
    _function("ceil", expr.Fn.CEIL, "least whole number >= x"),
    _function("round", expr.Fn.ROUND, "nearest whole number, ties to even"),
    _function("trunc", expr.Fn.TRUNC, "x without its fraction"),
    _function("sqrt", expr.Fn.SQRT, "square root"),
    _function("rsqrt", expr.Fn.RSQRT, "1 / sqrt(x)"),
    elementwise("reciprocal", "1 / x", lambda _, x: 1.0 / x, operator.FLOATS),
    _function("exp", expr.Fn.EXP, "e to the power of x"),
    _function("expm1", expr.Fn.EXPM1, "exp(x) - 1, exact near 0"),
    _function("log", expr.Fn.LOG, "natural logarithm"),
    _function("log1p", expr.Fn.LOG1P, "log(1 + x), exact near 0"),
    _function("erf", expr.Fn.ERF, "error function"),
    _function("sin", expr.Fn.SIN, "sine of radians"),
    _function("cos", expr.Fn.COS, "cosine of radians"),
    _function("tan", expr.Fn.TAN, "tangent of radians"),
    _function("asin", expr.Fn.ASIN, "inverse sine"),
    _function("acos", expr.Fn.ACOS, "inverse cosine"),
    _function("atan", expr.Fn.ATAN, "inverse tangent"),
    _function("sinh", expr.Fn.SINH, "hyperbolic sine"),
    _function("cosh", expr.Fn.COSH, "hyperbolic cosine"),
    _function("tanh", expr.Fn.TANH, "hyperbolic tangent"),
    _function("asinh", expr.Fn.ASINH, "inverse hyperbolic sine"),
    _function("acosh", expr.Fn.ACOSH, "inverse hyperbolic cosine"),
    _function("atanh", expr.Fn.ATANH, "inverse hyperbolic tangent"),
    _pair("equal", expr.Fn.EQ, "a == b", operator.ANY_DTYPE),
    _pair("not_equal", expr.Fn.NE, "a != b", operator.ANY_DTYPE),
    _pair("less", expr.Fn.LT, "a < b", operator.NUMBERS),
    _pair("less_or_equal", expr.Fn.LE, "a <= b", operator.NUMBERS),
    _pair("greater", expr.Fn.LT, "a > b", operator.NUMBERS, swap=True),
    _pair("greater_or_equal", expr.Fn.LE, "a >= b", operator.NUMBERS, swap=True),
    _function("not", expr.Fn.NOT, "logical negation", operator.BOOLS),
    _pair("and", expr.Fn.AND, "logical and", operator.BOOLS),
    _pair("or", expr.Fn.OR, "logical or", operator.BOOLS),
    _pair("xor", expr.Fn.XOR, "logical exclusive or", operator.BOOLS),
    _function("bitwise_not", expr.Fn.BITNOT, "every bit inverted", operator.INTS),
    _pair("bitwise_and", expr.Fn.BITAND, "bits set in both", operator.INTS),
    _pair("bitwise_or", expr.Fn.BITOR, "bits set in one or both", operator.INTS),
    _pair("bitwise_xor", expr.Fn.BITXOR, "bits set in exactly one", operator.INTS),
    _pair("shift_left", expr.Fn.SHL, "a * 2**b", operator.INTS),
    _pair("shift_right", expr.Fn.SHR, "a / 2**b, rounded down", operator.INTS),
    elementwise(
        "isnan", "whether x is NaN", lambda _, x: expr.apply(expr.Fn.ISNAN, x), operator.FLOATS
    ),
    elementwise(
        "isinf",
        "whether x is infinite, of the signs that are asked for",
        _isinf,
        operator.FLOATS,
        attributes=(
            operator.Attribute("detect_negative", default=True, doc="minus infinity counts"),
            operator.Attribute("detect_positive", default=True, doc="plus infinity counts"),
        ),
    ),
    operator.tensor_operator(
        "where",
        "x where the condition holds, else y",
        ("condition", "x", "y"),
        (),
        _infer_where,
        _where,
        operator.Pattern.ELEMENTWISE,
        operator.LayoutPreference.ANY,
    ),
    elementwise(
        "identity",
        "x",
        lambda _, x: x,
        operator.ANY_DTYPE,
        movement=operator.Movement.COPY,
        is_identity=operator.identity_of_type,
    ),
    operator.tensor_operator(
        "cast",
        "x converted: float to int drops the fraction, anything to bool is x != 0",
        ("x",),
        (operator.Attribute("to", None, "the element type of the output"),),
        _infer_cast,
        _cast,
        operator.Pattern.ELEMENTWISE,
        operator.LayoutPreference.ANY,
        is_identity=operator.identity_of_type,
    ),
    elementwise(
        "clip",
        "min(max(x, attribute min), attribute max)",
        _clip,
        operator.NUMBERS,
        attributes=(
            operator.Attribute("min", -math.inf, "the least value of the output"),
            operator.Attribute("max", math.inf, "the greatest value of the output; wins over min"),
        ),
        is_identity=_has_no_bounds,
    ),
)
