"""Element-wise operators that ONNX says otherwise than we, and what is left out of inference."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Converter, Results, Table
from tensorwright.graph.onnx_import.tensors import dtype_of

VARIADIC = (("Sum", "sum"), ("Mean", "mean"), ("Max", "max"), ("Min", "min"))


def _variadic(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        operands = call.tensors()
        if len(operands) == 1:
            return (operands[0],)
        chosen = "add" if operator == "sum" and len(operands) == 2 else operator
        return (call.add(chosen, *operands),)

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
    return call.operand(0), call.add("expand", mask, shape=call.sizes(0))


def _clip(call: Call) -> Results:
    x = call.tensor(0)
    if call.opset < 11:
        limits = {name: call.real(name) for name in ("min", "max") if call.given(name)}
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


ELEMENTWISE: Table = (
    *((theirs, _variadic(ours)) for theirs, ours in VARIADIC),
    ("Identity", _identity),
    ("Dropout", _dropout),
    ("Clip", _clip),
    ("Cast", _cast),
    ("CastLike", _cast_like),
    ("BitCast", _bit_cast),
    ("Mod", _mod),
    ("BitShift", _bit_shift),
)
