"""Operators that ONNX has alike, element-wise operators and reductions."""

from __future__ import annotations

import math

from onnx import defs

from tensorwright.base import DType
from tensorwright.graph.onnx_export.call import ONNX_DTYPES, ExportCall, ExportRule, ExportTable
from tensorwright.graph.onnx_import.converters.elementwise import VARIADIC
from tensorwright.graph.onnx_import.converters.reduction import REDUCTIONS
from tensorwright.graph.onnx_import.counterparts import (
    AT_POSITIONS,
    COUNTERPARTS,
    TRAILING_NORMS,
    WITH_NUMBER,
    WRITTEN_ALIKE,
    Counterpart,
)

_ALIKE = (
    *COUNTERPARTS,
    *AT_POSITIONS,
    *TRAILING_NORMS,
    *WITH_NUMBER,
    *WRITTEN_ALIKE,
    *(Counterpart(theirs, ours) for theirs, ours in VARIADIC),
)


def _alike(counterpart: Counterpart) -> ExportRule:
    def rule(call: ExportCall) -> None:
        call.needs_opset(counterpart.opset)
        name, _ = counterpart.number
        second = [call.size(name)] if name else []
        inputs = [*call.node.inputs, *second]
        call.emit(counterpart.theirs, inputs, **call.attributes_of(counterpart))

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


def _reduce(operator: str) -> ExportRule:
    def rule(call: ExportCall) -> None:
        axes = call.ints("axes")
        call.needs_opset(20 if call.type_at(0).dtype is DType.BOOL else 18)
        inputs = [call.node.inputs[0]]
        if axes:
            inputs.append(call.constant(axes))
        call.emit(operator, inputs, keepdims=call.integer("keepdims"))

    return rule


ELEMENTWISE: ExportTable = (
    *((each.ours, _alike(each)) for each in _ALIKE),
    *((ours, _reduce(theirs)) for theirs, ours, _ in REDUCTIONS),
    ("reduce_any", _reduce("ReduceMax")),
    ("reduce_all", _reduce("ReduceMin")),
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
)
