"""Element-wise operators, reductions and softmax."""

from __future__ import annotations

import math

from onnx import defs

from tensorwright.base import DType
from tensorwright.graph.onnx_export.call import ONNX_DTYPES, ExportCall, ExportRule, ExportTable
from tensorwright.graph.onnx_import.converters.elementwise import SAME_NAME, VARIADIC, WITH_FLOATS
from tensorwright.graph.onnx_import.converters.reduction import REDUCTIONS

_OPSET = {"Mish": 18, "HardSwish": 14, "Swish": 24}


def _direct(operator: str) -> ExportRule:
    def rule(call: ExportCall) -> None:
        call.needs_opset(_OPSET.get(operator, 0))
        call.emit(operator)

    return rule


def _with_floats(operator: str, names: tuple[str, ...]) -> ExportRule:
    def rule(call: ExportCall) -> None:
        call.needs_opset(_OPSET.get(operator, 0))
        call.emit(operator, **{name: call.number(name) for name in names})

    return rule


def _clip(call: ExportCall) -> None:
    dtype = call.type_at(0).dtype
    inputs = [call.node.inputs[0]]
    for name, open_at in (("min", -math.inf), ("max", math.inf)):
        value = call.number(name)
        if value == open_at:
            inputs.append("")
            continue
        if dtype.is_int:
            value = min(max(value, dtype.lowest), dtype.highest)
        inputs.append(call.constant(value, dtype))
    call.emit("Clip", inputs)


def _cast(call: ExportCall) -> None:
    target = call.attribute("to")
    if isinstance(target, DType):
        call.emit("Cast", to=ONNX_DTYPES[target])


def _fmod(call: ExportCall) -> None:
    call.emit("Mod", fmod=1)


def _floormod(call: ExportCall) -> None:
    if call.type_at(0).dtype.is_float:
        call.needs_opset(defs.get_schema("Mod").since_version)  # integers only before
    call.emit("Mod")


def _trunc(call: ExportCall) -> None:
    (x,) = call.node.inputs
    call.emit("Mul", (call.step("Sign", x), call.step("Floor", call.step("Abs", x))))


def _rsqrt(call: ExportCall) -> None:
    call.emit("Reciprocal", (call.step("Sqrt", call.node.inputs[0]),))


def _expm1(call: ExportCall) -> None:
    one = call.constant(1, call.type_at(0).dtype)
    call.emit("Sub", (call.step("Exp", call.node.inputs[0]), one))


def _log1p(call: ExportCall) -> None:
    one = call.constant(1, call.type_at(0).dtype)
    call.emit("Log", (call.step("Add", call.node.inputs[0], one),))


def _not_equal(call: ExportCall) -> None:
    call.emit("Not", (call.step("Equal", *call.node.inputs),))


def _shift(direction: str) -> ExportRule:
    return lambda call: call.emit("BitShift", direction=direction)


def _isinf(call: ExportCall) -> None:
    signs = ("detect_negative", "detect_positive")
    call.emit("IsInf", **{name: call.integer(name) for name in signs})


def _gelu(call: ExportCall) -> None:
    call.needs_opset(20)
    call.emit("Gelu", approximate=str(call.attribute("approximate")))


def _reduce(operator: str) -> ExportRule:
    def rule(call: ExportCall) -> None:
        axes = call.ints("axes")
        call.needs_opset(20 if call.type_at(0).dtype is DType.BOOL else 18)
        inputs = [call.node.inputs[0]]
        if axes:
            inputs.append(call.constant(axes))
        call.emit(operator, inputs, keepdims=call.integer("keepdims"))

    return rule


def _arg(operator: str) -> ExportRule:
    names = ("axis", "keepdims", "select_last_index")
    return lambda call: call.emit(operator, **{name: call.integer(name) for name in names})


def _axis(operator: str) -> ExportRule:
    return lambda call: call.emit(operator, axis=call.integer("axis"))


ELEMENTWISE: ExportTable = (
    *((ours, _direct(theirs)) for theirs, ours in (*SAME_NAME, *VARIADIC)),
    *(
        (ours, _with_floats(theirs, tuple(name for name, _ in defaults)))
        for theirs, ours, defaults in WITH_FLOATS
    ),
    *((ours, _reduce(theirs)) for theirs, ours, _ in REDUCTIONS),
    ("reduce_any", _reduce("ReduceMax")),
    ("reduce_all", _reduce("ReduceMin")),
    ("argmax", _arg("ArgMax")),
    ("argmin", _arg("ArgMin")),
    ("softmax", _axis("Softmax")),
    ("log_softmax", _axis("LogSoftmax")),
    ("hardmax", _axis("Hardmax")),
    ("identity", _direct("Identity")),
    ("clip", _clip),
    ("cast", _cast),
    ("fmod", _fmod),
    ("floormod", _floormod),
    ("trunc", _trunc),
    ("rsqrt", _rsqrt),
    ("expm1", _expm1),
    ("log1p", _log1p),
    ("not_equal", _not_equal),
    ("shift_left", _shift("LEFT")),
    ("shift_right", _shift("RIGHT")),
    ("isinf", _isinf),
    ("gelu", _gelu),
)
