"""Element-wise operators that others define otherwise than we, and casts."""

from __future__ import annotations

import math
import sys
from functools import partial

from tensorwright.base import DType
from tensorwright.expr import floor_div
from tensorwright.graph.imports.call import Call, Results, Table, Tensor
from tensorwright.graph.imports.counterparts import VARIADIC
from tensorwright.graph.imports.formula import (
    as_float,
    as_type,
    by_formula,
    common_type,
    formula,
    promoted,
    scaled,
)
from tensorwright.graph.imports.tensors import dtype_of


def _variadic(operator: str, call: Call) -> Results:
    operands = call.tensors()
    if len(operands) == 1:
        return (operands[0],)
    chosen = "add" if operator == "sum" and len(operands) == 2 else operator
    return (call.add(chosen, *operands),)


def _dropout(call: Call) -> Results:
    """Inference: the data as it is, and a mask of ones."""
    if call.opset >= 12 and call.has(2) and bool(call.scalar(2, "training_mode")):
        raise call.unsupported("it is in training mode", "export the model for inference")
    if not call.wants(1):
        return (call.operand(0),)
    mask = call.as_array(1, DType.BOOL if call.opset >= 10 else call.dtype_of(0))
    return call.operand(0), call.add("expand", mask, shape=call.sizes(0))


def _clip(call: Call) -> Results:
    x = call.tensor(0)
    if call.opset < 11:
        limits = {name: call.real(name) for name in ("min", "max") if call.has(name)}
        return (call.add("clip", x, **limits),)
    limits = {}
    for position, name in ((1, "min"), (2, "max")):
        limit = call.static_value(position)
        if limit is not None and limit.size == 1:
            limits[name] = limit.reshape(-1)[0].item()
    if limits:
        x = call.add("clip", x, **limits)
    for position, name, operator in ((1, "min", "max"), (2, "max", "min")):
        if call.has(position) and name not in limits:
            x = call.add(operator, x, call.tensor(position))
    return (x,)


def _cast(call: Call) -> Results:
    target = call.dtype_of(1) if call.operator == "CastLike" else _target(call)
    same = call.dtype_of(0) is target
    return (call.operand(0) if same else call.add("cast", call.tensor(0), to=target),)


def _target(call: Call) -> DType:
    return dtype_of(call.integer("to"), call.label, call.operator)


def _mod(call: Call) -> Results:
    operator = "fmod" if call.flag("fmod") else "floormod"
    return (call.add(operator, call.tensor(0), call.tensor(1)),)


def _bit_shift(call: Call) -> Results:
    operator = "shift_left" if call.text("direction") == "LEFT" else "shift_right"
    return (call.add(operator, call.tensor(0), call.tensor(1)),)


ELEMENTWISE: Table = (
    *((each.theirs, partial(_variadic, each.ours)) for each in VARIADIC),
    ("Identity", lambda call: (call.operand(0),)),
    ("Dropout", _dropout),
    ("Clip", _clip),
    ("Cast CastLike", _cast),
    ("BitCast", lambda call: (call.add("bitcast", call.tensor(0), to=_target(call)),)),
    ("Mod", _mod),
    ("BitShift", _bit_shift),
)


# -- ATen


_FORMULAS = (
    ("add", "self+other alpha=1", "self + other * alpha"),
    ("sub subtract", "self+other alpha=1", "self - other * alpha"),
    ("rsub", "self+other alpha=1", "other - self * alpha"),
    ("square", "self", "self * self"),
    ("addcmul", "self+tensor1+tensor2 value=1", "self + tensor1 * tensor2 * value"),
    ("addcdiv", "self+tensor1+tensor2 value=1", "self + tensor1 / tensor2 * value"),
    (  # from the nearer end, so that an infinite one stays what it is
        "lerp",
        "self+end+weight",
        """
        distance = end - self
        near = self + weight * distance
        far = end - distance * (1.0 - weight)
        where(abs(weight) < 0.5, near, far)
        """,
    ),
    ("softplus", "self beta=1", "softplus(self * beta) / beta"),
    ("threshold", "self threshold=0 value=0", "where(self <= threshold, value, self)"),
    ("hardshrink", "self lambd=0.5", "where(abs(self) <= lambd, 0, self)"),
    ("log_sigmoid", "self", "-softplus(-self)"),
    ("isfinite", "self", "~(isnan(self) | isinf(self))"),
    ("hardtanh", "self min_val=-1.0 max_val=1.0", "clip(self, min=min_val, max=max_val)"),
    ("relu6", "self", "clip(self, min=0.0, max=6.0)"),
    ("logical_and", "self other", "bools(self) & bools(other)"),
    ("logical_or", "self other", "bools(self) | bools(other)"),
    ("logical_xor", "self other", "bools(self) ^ bools(other)"),
    ("logical_not", "self", "~bools(self)"),
    ("masked_fill", "self mask value=0", "where(bools(mask), like(value, self), self)"),
    ("type_as", "self other", "like(self, other)"),
    ("view_as reshape_as", "self other", "reshape(self, shape=sizes(other))"),
    ("expand_as", "self other", "expand(self, shape=sizes(other))"),
    ("outer", "self vec2", "unsqueeze(self, axes=(1,)) * vec2"),
    ("embedding", "weight indices", "gather(weight, positions(indices), axis=0)"),
    ("index_select", "self index", "gather(self, positions(index), axis=axis(self))"),
)
"""Operators of ATen, their arguments and what they compute."""


_GREATEST_FINITE = {
    DType.F16: 65504.0,
    DType.BF16: 2.0**128 - 2.0**120,
    DType.F32: 2.0**128 - 2.0**104,
    DType.F64: sys.float_info.max,
}


def _div(call: Call) -> Results:
    rounding = call.text("rounding_mode", "floor" if call.operator.startswith("floor") else "")
    left, right = promoted(call, "self", "other")
    if not rounding:
        return (call.add("div", as_float(call, left), as_float(call, right)),)
    return (_rounded_quotient(call, left, right, rounding),)


def _rounded_quotient(call: Call, left: str, right: str, rounding: str) -> str:
    if call.dtype_of(left).is_float:
        if rounding == "floor":
            return formula(call, _FLOORED, x=left, y=right)
        return call.add(rounding, call.add("div", left, right))
    if rounding == "floor":
        left = call.add("sub", left, call.add("floormod", left, right))
    return call.add("div", left, right)


_FLOORED = """
    rest = fmod(x, y)
    whole = (x - rest) / y
    whole = where((rest != 0.0) & ((y < 0.0) ^ (rest < 0.0)), whole - 1.0, whole)
    floored = floor(whole)
    floored = where(whole - floored > 0.5, floored + 1.0, floored)
    where(y == 0.0, x / y, floored)
    """
"""How often y goes into x: 1 // 0.1 is 9, though the quotient rounds to 10.

Source:  `div_floor_floating` of ATen (native/BinaryOps.h), which has it from Python.
"""


def _pow(call: Call) -> Results:
    base, exponent = call.get("self"), call.get("exponent")
    dtype = common_type(call, (base, exponent))
    if exponent == 2 and isinstance(base, Tensor):
        x = call.cast(base.name, dtype)
        return (call.add("mul", x, x),)
    return (call.add("pow", *(as_type(call, each, dtype) for each in (base, exponent))),)


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


def _elu(call: Call) -> Results:
    """scale * elu(x)"""
    if call.real("input_scale", 1.0) != 1:
        raise call.unsupported("its input_scale is not 1")
    bent = call.add("elu", call.tensor("self"), alpha=call.real("alpha", 1.0))
    return (scaled(call, bent, "scale"),)


def _sign(call: Call) -> Results:
    """-1, 0 or 1; 0 for NaN."""
    x = call.tensor("self")
    text = "where(isnan(x), 0.0, sign(x))" if call.dtype_of(x).is_float else "sign(x)"
    return (formula(call, text, x=x),)


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
    return (formula(call, "round(x * scale) / scale", x=x, scale=10.0**decimals),)


def _rounded(operator: str, call: Call) -> Results:
    x = call.tensor("self")
    return (call.add(operator, x) if call.dtype_of(x).is_float else x,)


def _or_of_bools(operator: str, of_bools: str, call: Call) -> Results:
    """One operator, and another one if all operands are bools."""
    operands = promoted(call, *(n for n in ("self", "other") if call.has(n)))
    chosen = of_bools if call.dtype_of(operands[0]) is DType.BOOL else operator
    return (call.add(chosen, *operands),)


def _aten_where(call: Call) -> Results:
    condition = call.cast(call.tensor("condition"), DType.BOOL)
    if not call.has("self"):
        raise call.unsupported("only a call tells how many positions it returns")
    return (call.add("where", condition, *promoted(call, "self", "other")),)


def _nan_to_num(call: Call) -> Results:
    x = call.tensor("self")
    if not call.dtype_of(x).is_float:
        return (x,)
    greatest = _GREATEST_FINITE[call.dtype_of(x)]
    given = {"nan": 0.0, "posinf": greatest, "neginf": -greatest}
    finite = {name: call.real(name, default) for name, default in given.items()}
    text = """
        x = where(isnan(x), nan, x)
        x = where(x == above, posinf, x)
        where(x == below, neginf, x)
        """
    return (formula(call, text, x=x, above=math.inf, below=-math.inf, **finite),)


def _same(call: Call) -> Results:
    """The operand unchanged: a graph has neither copies nor positions in memory."""
    return (call.tensor("self"),)


def _aten_dropout(call: Call) -> Results:
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


ATEN_ELEMENTWISE: Table = (
    *((names, by_formula(arguments, text)) for names, arguments, text in _FORMULAS),
    ("div divide true_divide floor_divide", _div),
    ("pow", _pow),
    ("clamp clamp_min clamp_max clip", _clamp),
    ("elu", _elu),
    ("sign", _sign),
    ("prelu _prelu_kernel", _prelu),
    ("glu", _glu),
    ("round", _round),
    *((name, partial(_rounded, name)) for name in ("floor", "ceil", "trunc")),
    ("mul multiply", partial(_or_of_bools, "mul", "and")),
    ("bitwise_and __and__", partial(_or_of_bools, "bitwise_and", "and")),
    ("bitwise_or __or__", partial(_or_of_bools, "bitwise_or", "or")),
    ("bitwise_xor __xor__", partial(_or_of_bools, "bitwise_xor", "xor")),
    ("bitwise_not", partial(_or_of_bools, "bitwise_not", "not")),
    ("where", _aten_where),
    ("nan_to_num", _nan_to_num),
    ("clone contiguous detach alias lift_fresh_copy lift_fresh positive", _same),
    ("to _to_copy", lambda call: (call.cast(call.tensor("self"), call.dtype()),)),
    ("dropout feature_dropout", _aten_dropout),
    ("copy", _copy),
    ("_assert_tensor_metadata", _none),
)
