"""Element-wise operators: arithmetic, comparison, logic, activations, casts."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Converter, Results, Table
from tensorwright.graph.onnx_import.tensors import dtype_of

SAME_NAME = (
    ("Add", "add"),
    ("Sub", "sub"),
    ("Mul", "mul"),
    ("Div", "div"),
    ("Pow", "pow"),
    ("Neg", "neg"),
    ("Abs", "abs"),
    ("Sign", "sign"),
    ("Floor", "floor"),
    ("Ceil", "ceil"),
    ("Round", "round"),
    ("Sqrt", "sqrt"),
    ("Reciprocal", "reciprocal"),
    ("Exp", "exp"),
    ("Log", "log"),
    ("Erf", "erf"),
    ("Sin", "sin"),
    ("Cos", "cos"),
    ("Tan", "tan"),
    ("Asin", "asin"),
    ("Acos", "acos"),
    ("Atan", "atan"),
    ("Sinh", "sinh"),
    ("Cosh", "cosh"),
    ("Tanh", "tanh"),
    ("Asinh", "asinh"),
    ("Acosh", "acosh"),
    ("Atanh", "atanh"),
    ("Equal", "equal"),
    ("Less", "less"),
    ("LessOrEqual", "less_or_equal"),
    ("Greater", "greater"),
    ("GreaterOrEqual", "greater_or_equal"),
    ("Not", "not"),
    ("And", "and"),
    ("Or", "or"),
    ("Xor", "xor"),
    ("BitwiseNot", "bitwise_not"),
    ("BitwiseAnd", "bitwise_and"),
    ("BitwiseOr", "bitwise_or"),
    ("BitwiseXor", "bitwise_xor"),
    ("IsNaN", "isnan"),
    ("Where", "where"),
    ("Relu", "relu"),
    ("PRelu", "prelu"),
    ("Sigmoid", "sigmoid"),
    ("Softplus", "softplus"),
    ("Softsign", "softsign"),
    ("Mish", "mish"),
    ("HardSwish", "hard_swish"),
)
VARIADIC = (("Sum", "sum"), ("Mean", "mean"), ("Max", "max"), ("Min", "min"))
WITH_FLOATS: tuple[tuple[str, str, tuple[tuple[str, float], ...]], ...] = (
    ("LeakyRelu", "leaky_relu", (("alpha", 0.01),)),
    ("Elu", "elu", (("alpha", 1.0),)),
    ("Celu", "celu", (("alpha", 1.0),)),
    ("ThresholdedRelu", "thresholded_relu", (("alpha", 1.0),)),
    ("Selu", "selu", (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875))),
    ("HardSigmoid", "hard_sigmoid", (("alpha", 0.2), ("beta", 0.5))),
    ("Swish", "swish", (("alpha", 1.0),)),
    ("Shrink", "shrink", (("bias", 0.0), ("lambd", 0.5))),
)


def _direct(operator: str) -> Converter:
    return lambda call: (call.add(operator, *call.tensors()),)


def _variadic(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        operands = call.tensors()
        if len(operands) == 1:
            return (operands[0],)
        chosen = "add" if operator == "sum" and len(operands) == 2 else operator
        return (call.add(chosen, *operands),)

    return convert


def _with_floats(operator: str, defaults: tuple[tuple[str, float], ...]) -> Converter:
    def convert(call: Call) -> Results:
        values = {name: call.real(name, default) for name, default in defaults}
        return (call.add(operator, call.tensor(0), **values),)

    return convert


def _identity(call: Call) -> Results:
    return (call.operand(0),)


def _dropout(call: Call) -> Results:
    """Inference: the data as it is, and a mask of ones."""
    if call.opset >= 12 and call.has(2) and bool(call.scalar(2, "training_mode")):
        raise call.unsupported("it is in training mode", "export the model for inference")
    if not call.wants(1):
        return (call.operand(0),)
    mask = call.as_array(1, DType.BOOL if call.opset >= 10 else call.type_at(0).dtype)
    return call.operand(0), call.add("expand", mask, shape=call.shape(0))


def _clip(call: Call) -> Results:
    x = call.tensor(0)
    if call.opset < 11:
        limits = {name: call.real(name) for name in ("min", "max") if call.given(name)}
        return (call.add("clip", x, **limits),)
    limits = {}
    for position, name in ((1, "min"), (2, "max")):
        known = call.known(position)
        if known is not None and known.size == 1:
            limits[name] = known.reshape(-1)[0].item()
    if limits:
        x = call.add("clip", x, **limits)
    for position, name, operator in ((1, "min", "max"), (2, "max", "min")):
        if call.has(position) and name not in limits:
            x = call.add(operator, x, call.tensor(position))
    return (x,)


def _cast(call: Call) -> Results:
    target = dtype_of(call.integer("to"), call.label, call.operator)
    if call.type_at(0).dtype is target:
        return (call.operand(0),)
    return (call.add("cast", call.tensor(0), to=target),)


def _bit_cast(call: Call) -> Results:
    target = dtype_of(call.integer("to"), call.label, call.operator)
    return (call.add("bitcast", call.tensor(0), to=target),)


def _cast_like(call: Call) -> Results:
    target = call.type_at(1).dtype
    if call.type_at(0).dtype is target:
        return (call.operand(0),)
    return (call.add("cast", call.tensor(0), to=target),)


def _mod(call: Call) -> Results:
    operator = "fmod" if call.flag("fmod", default=False) else "floormod"
    return (call.add(operator, call.tensor(0), call.tensor(1)),)


def _bit_shift(call: Call) -> Results:
    operator = "shift_left" if call.text("direction") == "LEFT" else "shift_right"
    return (call.add(operator, call.tensor(0), call.tensor(1)),)


def _is_inf(call: Call) -> Results:
    negative, positive = (
        call.flag("detect_negative", default=True),
        call.flag("detect_positive", default=True),
    )
    x = call.tensor(0)
    return (call.add("isinf", x, detect_negative=negative, detect_positive=positive),)


def _gelu(call: Call) -> Results:
    return (call.add("gelu", call.tensor(0), approximate=call.text("approximate", "none")),)


ELEMENTWISE: Table = (
    *((theirs, _direct(ours)) for theirs, ours in SAME_NAME),
    *((theirs, _variadic(ours)) for theirs, ours in VARIADIC),
    *((theirs, _with_floats(ours, defaults)) for theirs, ours, defaults in WITH_FLOATS),
    ("Identity", _identity),
    ("Dropout", _dropout),
    ("Clip", _clip),
    ("Cast", _cast),
    ("CastLike", _cast_like),
    ("BitCast", _bit_cast),
    ("Mod", _mod),
    ("BitShift", _bit_shift),
    ("IsInf", _is_inf),
    ("Gelu", _gelu),
)
