"""Arithmetic, comparison, logic and bits, element by element; inputs broadcast NumPy style.

| operators | inputs | attributes |
|---|---|---|
| add sub mul div pow fmod floormod atan2 | a, b | |
| min max sum mean | one or more | |
| neg abs sign floor ceil round trunc sqrt rsqrt reciprocal exp expm1 log log1p erf | x | |
| sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh | x | |
| equal not_equal less less_or_equal greater greater_or_equal | a, b (any number type) -> bool | |
| not and or xor | bool | |
| bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right | integers | |
| isnan | x | |
| isinf | x | detect_negative=True, detect_positive=True |
| where | condition, x, y | |
| identity | x | |
| cast | x | to: DType |
| clip | x | min=-inf, max=inf |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from tensorwright.base import Attributes, DType, TensorType
from tensorwright.expr import Compute, Fn, Tensor, Value, apply, cast, constant, select
from tensorwright.ops.access import pointwise
from tensorwright.ops.attributes import (
    ANY_DTYPE,
    BOOLS,
    FLOATS,
    INTS,
    NARROW,
    NUMBERS,
    SIGNED,
    bool_of,
    dtype_of,
    fault,
    float_of,
    require_dtype,
    require_same_dtype,
)
from tensorwright.ops.named_sizes import sizes_of
from tensorwright.ops.operator import (
    Attribute,
    IdentityRule,
    LayoutPreference,
    Movement,
    Operator,
    Pattern,
    identity_of_type,
    never_identity,
    tensor_operator,
)
from tensorwright.ops.shapes import broadcast_shapes

Rule = Callable[..., Value]


def elementwise(
    name: str,
    doc: str,
    rule: Rule,
    accepts: frozenset[DType],
    *,
    inputs: tuple[str, ...] = ("x",),
    attributes: tuple[Attribute, ...] = (),
    movement: Movement = Movement.NONE,
    is_identity: IdentityRule = never_identity,
) -> Operator:
    """An operator whose rule gets (attributes, element of each input) and gives the output element.

    All inputs have one element type, among `accepts`; that of the output is the rule's, which is
    tried on constants to find it and to check the attributes.  Narrow floats are computed as f32.
    """

    def widened(given: Attributes, *values: Value) -> Value:
        narrow = values[0].dtype
        if narrow not in NARROW:
            return rule(given, *values)
        result = rule(given, *(cast(value, DType.F32) for value in values))
        return cast(result, narrow) if result.dtype is DType.F32 else result

    def infer(types: tuple[TensorType, ...], given: Attributes) -> tuple[TensorType, ...]:
        names = inputs if len(inputs) == len(types) else tuple(map(str, range(len(types))))
        for label, each in zip(names, types, strict=True):
            require_dtype(label, each, accepts)
        require_same_dtype(names, types)
        shape = broadcast_shapes(*map(sizes_of, types))
        example = widened(given, *(constant(0, each.dtype) for each in types))
        return (TensorType(example.dtype, shape),)

    def meaning(tensors: tuple[Tensor, ...], given: Attributes) -> tuple[Compute, ...]:
        shape = broadcast_shapes(*(tensor.shape for tensor in tensors))
        return (pointwise(name, tensors, shape, lambda *values: widened(given, *values)),)

    return tensor_operator(
        name,
        doc,
        inputs,
        attributes,
        infer,
        meaning,
        Pattern.ELEMENTWISE,
        LayoutPreference.ANY,
        movement=movement,
        is_identity=is_identity,
    )


def _function(name: str, fn: Fn, doc: str, accepts: frozenset[DType] = FLOATS) -> Operator:
    return elementwise(name, doc, lambda _, x: apply(fn, x), accepts)


def _pair(
    name: str, fn: Fn, doc: str, accepts: frozenset[DType], *, swap: bool = False
) -> Operator:
    def rule(_: Attributes, a: Value, b: Value) -> Value:
        return apply(fn, b, a) if swap else apply(fn, a, b)

    return elementwise(name, doc, rule, accepts, inputs=("a", "b"))


def _fold(name: str, fn: Fn, doc: str) -> Operator:
    def rule(_: Attributes, *values: Value) -> Value:
        return reduce(lambda a, b: apply(fn, a, b), values)

    return elementwise(name, doc, rule, NUMBERS, inputs=("*tensors",), is_identity=identity_of_type)


def _mean(_: Attributes, *values: Value) -> Value:
    total = reduce(lambda a, b: a + b, values)
    return total if len(values) == 1 else total / len(values)


def _isinf(attributes: Attributes, x: Value) -> Value:
    is_infinite = apply(Fn.ISINF, x)
    negative = bool_of(attributes, "detect_negative")
    positive = bool_of(attributes, "detect_positive")
    if negative and positive:
        return is_infinite
    if not negative and not positive:
        return constant(0, DType.BOOL)
    side = apply(Fn.LT, x, 0.0) if negative else apply(Fn.LT, 0.0, x)
    return apply(Fn.AND, is_infinite, side)


def _clip(attributes: Attributes, x: Value) -> Value:
    low, high = float_of(attributes, "min"), float_of(attributes, "max")
    if math.isnan(low) or math.isnan(high):
        raise fault("attributes min and max must be numbers, not NaN")
    number = float if x.dtype.is_float else int
    if low > x.dtype.lowest:
        x = apply(Fn.MAX, x, constant(number(low), x.dtype))
    if high < x.dtype.highest:
        x = apply(Fn.MIN, x, constant(number(high), x.dtype))
    return x


def _has_no_bounds(_: TensorType, attributes: Attributes) -> bool:
    bounds = float_of(attributes, "min"), float_of(attributes, "max")
    return bounds == (-math.inf, math.inf)


def _infer_where(types: tuple[TensorType, ...], _: Attributes) -> tuple[TensorType, ...]:
    require_dtype("condition", types[0], BOOLS)
    require_same_dtype(("x", "y"), types[1:])
    return (TensorType(types[1].dtype, broadcast_shapes(*map(sizes_of, types))),)


def _where(tensors: tuple[Tensor, ...], _: Attributes) -> tuple[Compute, ...]:
    shape = broadcast_shapes(*(tensor.shape for tensor in tensors))
    return (pointwise("where", tensors, shape, select),)


def _infer_pow(types: tuple[TensorType, ...], _: Attributes) -> tuple[TensorType, ...]:
    require_dtype("a", types[0], NUMBERS)
    require_dtype("b", types[1], NUMBERS)
    return (TensorType(types[0].dtype, broadcast_shapes(*map(sizes_of, types))),)


def _pow(tensors: tuple[Tensor, ...], _: Attributes) -> tuple[Compute, ...]:
    base, exponent = tensors
    wide = base.dtype
    if exponent.dtype.is_float and not wide.is_float:
        wide = exponent.dtype

    def rule(a: Value, b: Value) -> Value:
        return cast(apply(Fn.POW, cast(a, wide), cast(b, wide)), base.dtype)

    shape = broadcast_shapes(base.shape, exponent.shape)
    return (pointwise("pow", tensors, shape, rule),)


def _infer_cast(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(dtype_of(attributes, "to"), types[0].shape),)


def _cast(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    target = dtype_of(attributes, "to")
    return (pointwise("cast", tensors, tensors[0].shape, lambda x: cast(x, target)),)


ELEMENTWISE_OPERATORS = (
    _pair("add", Fn.ADD, "a + b", NUMBERS),
    _pair("sub", Fn.SUB, "a - b", NUMBERS),
    _pair("mul", Fn.MUL, "a * b", NUMBERS),
    _pair("div", Fn.DIV, "a / b; integers are truncated towards zero", NUMBERS),
    tensor_operator(
        "pow",
        "a to the power of b, in the type of a",
        ("a", "b"),
        (),
        _infer_pow,
        _pow,
        Pattern.ELEMENTWISE,
        LayoutPreference.ANY,
    ),
    _pair("fmod", Fn.MOD, "remainder of a / b with the sign of a", NUMBERS),
    _pair("floormod", Fn.FLOORMOD, "remainder of a / b with the sign of b", NUMBERS),
    _pair("atan2", Fn.ATAN2, "angle of the point (b, a)", FLOATS),
    _fold("min", Fn.MIN, "least of the inputs; NaN if one is NaN"),
    _fold("max", Fn.MAX, "greatest of the inputs; NaN if one is NaN"),
    _fold("sum", Fn.ADD, "sum of the inputs"),
    elementwise(
        "mean",
        "arithmetic mean of the inputs",
        _mean,
        FLOATS,
        inputs=("*tensors",),
        is_identity=identity_of_type,
    ),
    _function("neg", Fn.NEG, "-x", SIGNED),
    _function("abs", Fn.ABS, "|x|", NUMBERS),
    _function("sign", Fn.SIGN, "-1, 0 or 1", NUMBERS),
    _function("floor", Fn.FLOOR, "greatest whole number <= x"),
    _function("ceil", Fn.CEIL, "least whole number >= x"),
    _function("round", Fn.ROUND, "nearest whole number, ties to even"),
    _function("trunc", Fn.TRUNC, "x without its fraction"),
    _function("sqrt", Fn.SQRT, "square root"),
    _function("rsqrt", Fn.RSQRT, "1 / sqrt(x)"),
    elementwise("reciprocal", "1 / x", lambda _, x: 1.0 / x, FLOATS),
    _function("exp", Fn.EXP, "e to the power of x"),
    _function("expm1", Fn.EXPM1, "exp(x) - 1, exact near 0"),
    _function("log", Fn.LOG, "natural logarithm"),
    _function("log1p", Fn.LOG1P, "log(1 + x), exact near 0"),
    _function("erf", Fn.ERF, "error function"),
    _function("sin", Fn.SIN, "sine of radians"),
    _function("cos", Fn.COS, "cosine of radians"),
    _function("tan", Fn.TAN, "tangent of radians"),
    _function("asin", Fn.ASIN, "inverse sine"),
    _function("acos", Fn.ACOS, "inverse cosine"),
    _function("atan", Fn.ATAN, "inverse tangent"),
    _function("sinh", Fn.SINH, "hyperbolic sine"),
    _function("cosh", Fn.COSH, "hyperbolic cosine"),
    _function("tanh", Fn.TANH, "hyperbolic tangent"),
    _function("asinh", Fn.ASINH, "inverse hyperbolic sine"),
    _function("acosh", Fn.ACOSH, "inverse hyperbolic cosine"),
    _function("atanh", Fn.ATANH, "inverse hyperbolic tangent"),
    _pair("equal", Fn.EQ, "a == b", ANY_DTYPE),
    _pair("not_equal", Fn.NE, "a != b", ANY_DTYPE),
    _pair("less", Fn.LT, "a < b", NUMBERS),
    _pair("less_or_equal", Fn.LE, "a <= b", NUMBERS),
    _pair("greater", Fn.LT, "a > b", NUMBERS, swap=True),
    _pair("greater_or_equal", Fn.LE, "a >= b", NUMBERS, swap=True),
    _function("not", Fn.NOT, "logical negation", BOOLS),
    _pair("and", Fn.AND, "logical and", BOOLS),
    _pair("or", Fn.OR, "logical or", BOOLS),
    _pair("xor", Fn.XOR, "logical exclusive or", BOOLS),
    _function("bitwise_not", Fn.BITNOT, "every bit inverted", INTS),
    _pair("bitwise_and", Fn.BITAND, "bits set in both", INTS),
    _pair("bitwise_or", Fn.BITOR, "bits set in one or both", INTS),
    _pair("bitwise_xor", Fn.BITXOR, "bits set in exactly one", INTS),
    _pair("shift_left", Fn.SHL, "a * 2**b", INTS),
    _pair("shift_right", Fn.SHR, "a / 2**b, rounded down", INTS),
    elementwise("isnan", "whether x is NaN", lambda _, x: apply(Fn.ISNAN, x), FLOATS),
    elementwise(
        "isinf",
        "whether x is infinite, of the signs that are asked for",
        _isinf,
        FLOATS,
        attributes=(
            Attribute("detect_negative", default=True, doc="minus infinity counts"),
            Attribute("detect_positive", default=True, doc="plus infinity counts"),
        ),
    ),
    tensor_operator(
        "where",
        "x where the condition holds, else y",
        ("condition", "x", "y"),
        (),
        _infer_where,
        _where,
        Pattern.ELEMENTWISE,
        LayoutPreference.ANY,
    ),
    elementwise(
        "identity",
        "x",
        lambda _, x: x,
        ANY_DTYPE,
        movement=Movement.COPY,
        is_identity=identity_of_type,
    ),
    tensor_operator(
        "cast",
        "x converted: float to int drops the fraction, anything to bool is x != 0",
        ("x",),
        (Attribute("to", None, "the element type of the output"),),
        _infer_cast,
        _cast,
        Pattern.ELEMENTWISE,
        LayoutPreference.ANY,
        is_identity=identity_of_type,
    ),
    elementwise(
        "clip",
        "min(max(x, attribute min), attribute max)",
        _clip,
        NUMBERS,
        attributes=(
            Attribute("min", -math.inf, "the least value of the output"),
            Attribute("max", math.inf, "the greatest value of the output; wins over min"),
        ),
        is_identity=_has_no_bounds,
    ),
)
