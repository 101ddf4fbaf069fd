"""Element-wise operators that ATen defines otherwise than tensorwright, and casts."""

from __future__ import annotations

import math
import sys

from tensorwright.base import DType
from tensorwright.expr import floor_div
from tensorwright.graph.imports.call import Call, Converter, Results, Table, Tensor
from tensorwright.graph.imports.promotion import as_float, as_type, common_type, promoted, scaled

_GREATEST_FINITE = {
    DType.F16: 65504.0,
    DType.BF16: 2.0**128 - 2.0**120,
    DType.F32: 2.0**128 - 2.0**104,
    DType.F64: sys.float_info.max,
}


def _sum(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        """self + alpha * other"""
        left, right = promoted(call, "self", "other")
        return (call.add(operator, left, scaled(call, right, "alpha")),)

    return convert


def _rsub(call: Call) -> Results:
    left, right = promoted(call, "self", "other")
    return (call.add("sub", right, scaled(call, left, "alpha")),)


def _div(call: Call) -> Results:
    rounding = call.text("rounding_mode", "")
    left, right = promoted(call, "self", "other")
    if not rounding:
        return (call.add("div", as_float(call, left), as_float(call, right)),)
    return (_rounded_quotient(call, left, right, rounding),)


def _rounded_quotient(call: Call, left: str, right: str, rounding: str) -> str:
    if call.dtype_of(left).is_float:
        if rounding == "floor":
            return _floored_quotient(call, left, right)
        return call.add(rounding, call.add("div", left, right))
    if rounding == "floor":
        left = call.add("sub", left, call.add("floormod", left, right))
    return call.add("div", left, right)


def _floored_quotient(call: Call, x: str, y: str) -> str:
    """How often y goes into x: 1 // 0.1 is 9, though the quotient rounds to 10.

    Source:  `div_floor_floating` of ATen (native/BinaryOps.h), which has it from Python.
    """
    zero, one, half = (call.full((), each, call.dtype_of(x)) for each in (0.0, 1.0, 0.5))
    rest = call.add("fmod", x, y)
    whole = call.add("div", call.add("sub", x, rest), y)
    signs = (call.add("less", each, zero) for each in (y, rest))
    is_below = call.add("and", call.add("not_equal", rest, zero), call.add("xor", *signs))
    whole = call.add("where", is_below, call.add("sub", whole, one), whole)
    floor = call.add("floor", whole)
    is_above = call.add("greater", call.add("sub", whole, floor), half)
    floor = call.add("where", is_above, call.add("add", floor, one), floor)
    return call.add("where", call.add("equal", y, zero), call.add("div", x, y), floor)


def _floor_divide(call: Call) -> Results:
    left, right = promoted(call, "self", "other")
    return (_rounded_quotient(call, left, right, "floor"),)


def _pow(call: Call) -> Results:
    base, exponent = call.get("self"), call.get("exponent")
    dtype = common_type(call, (base, exponent))
    if exponent == 2 and isinstance(base, Tensor):
        x = call.cast(base.name, dtype)
        return (call.add("mul", x, x),)
    return (call.add("pow", *(as_type(call, each, dtype) for each in (base, exponent))),)


def _square(call: Call) -> Results:
    x = call.tensor("self")
    return (call.add("mul", x, x),)


def _addcmul(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        x, left, right = promoted(call, "self", "tensor1", "tensor2")
        return (call.add("add", x, scaled(call, call.add(operator, left, right), "value")),)

    return convert


def _lerp(call: Call) -> Results:
    """From the nearer end, so that an infinite one stays what it is."""
    start, end, weight = promoted(call, "self", "end", "weight")
    half, one = (call.full((), each, call.dtype_of(start)) for each in (0.5, 1.0))
    distance = call.add("sub", end, start)
    near = call.add("add", start, call.add("mul", weight, distance))
    far = call.add("sub", end, call.add("mul", distance, call.add("sub", one, weight)))
    is_near = call.add("less", call.add("abs", weight), half)
    return (call.add("where", is_near, near, far),)


def _clamp(call: Call) -> Results:
    names = [name for name in ("min", "max") if call.has(name)]
    dtype = common_type(call, [call.get(name) for name in ("self", *names)])
    x = call.cast(call.tensor("self"), dtype)
    limits = {name: call.get(name) for name in names}
    if all(isinstance(each, int | float) for each in limits.values()):
        return (call.add("clip", x, **{name: call.real(name) for name in names}),)
    for name, operator in (("min", "max"), ("max", "min")):
        if name in limits:
            x = call.add(operator, x, as_type(call, limits[name], dtype))
    return (x,)


def _limited(low: float, high: float) -> Converter:
    def convert(call: Call) -> Results:
        given = {"min": call.real("min_val", low), "max": call.real("max_val", high)}
        return (call.add("clip", call.tensor("self"), **given),)

    return convert


def _elu(call: Call) -> Results:
    """scale * elu(x)"""
    if call.real("input_scale", 1.0) != 1:
        raise call.unsupported("its input_scale is not 1")
    bent = call.add("elu", call.tensor("self"), alpha=call.real("alpha", 1.0))
    return (scaled(call, bent, "scale"),)


def _softplus(call: Call) -> Results:
    """log(1 + exp(beta * x)) / beta"""
    x, beta = call.tensor("self"), call.real("beta", 1.0)
    if beta == 1:
        return (call.add("softplus", x),)
    factor = call.full((), beta, call.dtype_of(x))
    return (call.add("div", call.add("softplus", call.add("mul", x, factor)), factor),)


def _threshold(call: Call) -> Results:
    x, limit = call.tensor("self"), call.get("threshold")
    dtype = call.dtype_of(x)
    is_low = call.add("less_or_equal", x, as_type(call, limit, dtype))
    return (call.add("where", is_low, as_type(call, call.get("value"), dtype), x),)


def _hard_shrink(call: Call) -> Results:
    x, limit = promoted(call, "self", "lambd") if call.has("lambd") else (call.tensor("self"), "")
    limit = limit or call.full((), 0.5, call.dtype_of(x))
    is_small = call.add("less_or_equal", call.add("abs", x), limit)
    return (call.add("where", is_small, call.full((), 0, call.dtype_of(x)), x),)


def _sign(call: Call) -> Results:
    """-1, 0 or 1; 0 for NaN."""
    x = call.tensor("self")
    sign = call.add("sign", x)
    if not call.dtype_of(x).is_float:
        return (sign,)
    zero = call.full((), 0.0, call.dtype_of(x))
    return (call.add("where", call.add("isnan", x), zero, sign),)


def _log_sigmoid(call: Call) -> Results:
    negative = call.add("neg", call.tensor("self"))
    return (call.add("neg", call.add("softplus", negative)),)


def _prelu(call: Call) -> Results:
    """A slope for each channel, dimension 1."""
    x, slope = call.tensor("self"), call.tensor("weight")
    rank = call.rank(x)
    if rank > 1 and call.rank(slope) == 1:
        slope = call.add("reshape", slope, shape=(*call.sizes(slope), *(1,) * (rank - 2)))
    return (call.add("prelu", x, slope),)


def _glu(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=-1)
    half = floor_div(call.sizes(x)[axis], 2)
    left, right = call.apply("split", x, sizes=(half, half), axis=axis)
    return (call.add("mul", left, call.add("sigmoid", right)),)


def _round(call: Call) -> Results:
    x, decimals = call.tensor("self"), call.integer("decimals", 0)
    if not decimals:
        return (call.add("round", x) if call.dtype_of(x).is_float else x,)
    scale = call.full((), 10.0**decimals, call.dtype_of(x))
    return (call.add("div", call.add("round", call.add("mul", x, scale)), scale),)


def _rounded(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        x = call.tensor("self")
        return (call.add(operator, x) if call.dtype_of(x).is_float else x,)

    return convert


def _logical(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        names = ("self", "other") if operator != "not" else ("self",)
        return (call.add(operator, *(call.cast(call.tensor(name), DType.BOOL) for name in names)),)

    return convert


def _or_of_bools(operator: str, of_bools: str) -> Converter:
    def convert(call: Call) -> Results:
        """One operator, and another one if all operands are bools."""
        operands = promoted(call, *(n for n in ("self", "other") if call.has(n)))
        chosen = of_bools if call.dtype_of(operands[0]) is DType.BOOL else operator
        return (call.add(chosen, *operands),)

    return convert


def _where(call: Call) -> Results:
    condition = call.cast(call.tensor("condition"), DType.BOOL)
    if not call.has("self"):
        raise call.unsupported("only a call tells how many positions it returns")
    return (call.add("where", condition, *promoted(call, "self", "other")),)


def _masked_fill(call: Call) -> Results:
    x = call.tensor("self")
    mask = call.cast(call.tensor("mask"), DType.BOOL)
    return (call.add("where", mask, as_type(call, call.get("value"), call.dtype_of(x)), x),)


def _is_finite(call: Call) -> Results:
    x = call.tensor("self")
    bad = call.add("or", call.add("isnan", x), call.add("isinf", x))
    return (call.add("not", bad),)


def _nan_to_num(call: Call) -> Results:
    x = call.tensor("self")
    dtype = call.dtype_of(x)
    if not dtype.is_float:
        return (x,)
    greatest = _GREATEST_FINITE[dtype]
    x = call.add("where", call.add("isnan", x), call.full((), call.real("nan", 0.0), dtype), x)
    for name, infinite, finite in (
        ("posinf", math.inf, greatest),
        ("neginf", -math.inf, -greatest),
    ):
        is_it = call.add("equal", x, call.full((), infinite, dtype))
        x = call.add("where", is_it, call.full((), call.real(name, finite), dtype), x)
    return (x,)


def _same(call: Call) -> Results:
    """The operand unchanged: a graph has neither copies nor positions in memory."""
    return (call.tensor("self"),)


def _cast(call: Call) -> Results:
    return (call.cast(call.tensor("self"), call.dtype()),)


def _cast_like(call: Call) -> Results:
    return (call.cast(call.tensor("self"), call.dtype_of(call.tensor("other"))),)


def _dropout(call: Call) -> Results:
    name = "input" if call.has("input") else "self"
    is_training = call.flag("train", default=False) or call.flag("training", default=False)
    if is_training and call.real("p", 0.5) > 0:
        raise call.unsupported("it is in training mode", "call eval() on the module")
    return (call.tensor(name),)


def _copy(call: Call) -> Results:
    """copy_: the values of another tensor, in the type and shape of this one."""
    x, source = call.tensor("self"), call.tensor("src")
    shape = call.sizes(x)
    source = call.cast(source, call.dtype_of(x))
    return (source if call.sizes(source) == shape else call.add("expand", source, shape=shape),)


def _none(_: Call) -> Results:
    """No result: the operator only checks types of tensors, which the import checks itself."""
    return ()


ELEMENTWISE: Table = (
    ("add", _sum("add")),
    ("sub", _sum("sub")),
    ("subtract", _sum("sub")),
    ("rsub", _rsub),
    ("div", _div),
    ("divide", _div),
    ("true_divide", _div),
    ("floor_divide", _floor_divide),
    ("pow", _pow),
    ("square", _square),
    ("addcmul", _addcmul("mul")),
    ("addcdiv", _addcmul("div")),
    ("lerp", _lerp),
    ("clamp", _clamp),
    ("clamp_min", _clamp),
    ("clamp_max", _clamp),
    ("clip", _clamp),
    ("hardtanh", _limited(-1.0, 1.0)),
    ("relu6", _limited(0.0, 6.0)),
    ("elu", _elu),
    ("softplus", _softplus),
    ("threshold", _threshold),
    ("hardshrink", _hard_shrink),
    ("sign", _sign),
    ("log_sigmoid", _log_sigmoid),
    ("prelu", _prelu),
    ("_prelu_kernel", _prelu),
    ("glu", _glu),
    ("round", _round),
    *((name, _rounded(name)) for name in ("floor", "ceil", "trunc")),
    *((f"logical_{name}", _logical(name)) for name in ("and", "or", "xor", "not")),
    ("mul", _or_of_bools("mul", "and")),
    ("multiply", _or_of_bools("mul", "and")),
    ("bitwise_and", _or_of_bools("bitwise_and", "and")),
    ("bitwise_or", _or_of_bools("bitwise_or", "or")),
    ("bitwise_xor", _or_of_bools("bitwise_xor", "xor")),
    ("bitwise_not", _or_of_bools("bitwise_not", "not")),
    ("__and__", _or_of_bools("bitwise_and", "and")),
    ("__or__", _or_of_bools("bitwise_or", "or")),
    ("__xor__", _or_of_bools("bitwise_xor", "xor")),
    ("where", _where),
    ("masked_fill", _masked_fill),
    ("isfinite", _is_finite),
    ("nan_to_num", _nan_to_num),
    *(
        (name, _same)
        for name in (
            "clone",
            "contiguous",
            "detach",
            "alias",
            "lift_fresh_copy",
            "lift_fresh",
            "positive",
        )
    ),
    ("to", _cast),
    ("_to_copy", _cast),
    ("type_as", _cast_like),
    ("dropout", _dropout),
    ("feature_dropout", _dropout),
    ("copy", _copy),
    ("_assert_tensor_metadata", _none),
)
