"""Rearrangements, reading and writing at positions, and what is made of indices."""

from __future__ import annotations

import numpy as np
from onnx import defs

from tensorwright.base import DType
from tensorwright.graph.onnx_export.call import (
    ONNX_DTYPES,
    ExportCall,
    ExportRule,
    ExportTable,
    OnnxValue,
)


def _numbers(operator: str, attribute: str, **fixed: OnnxValue) -> ExportRule:
    """A rule for an operator that takes one of our attributes as its second input."""

    def rule(call: ExportCall) -> None:
        values = call.ints(attribute)
        second = (
            [call.constant(np.asarray(values, np.int64))] if values or attribute == "shape" else []
        )
        call.emit(operator, [*call.node.inputs, *second], **fixed)

    return rule


def _transpose(call: ExportCall) -> None:
    perm = call.ints("perm") or tuple(reversed(range(call.rank(0))))
    call.emit("Transpose", perm=perm)


def _split(call: ExportCall) -> None:
    sizes = call.constant(call.ints("sizes"))
    call.emit("Split", [*call.node.inputs, sizes], axis=call.integer("axis"))


def _slice(call: ExportCall) -> None:
    starts, ends = call.ints("starts"), call.ints("ends")
    axes = call.ints("axes") or tuple(range(len(starts)))
    steps = call.ints("steps") or (1,) * len(starts)
    operands = [call.constant(each) for each in (starts, ends, axes, steps)]
    call.emit("Slice", [*call.node.inputs, *operands])


def _pad(call: ExportCall) -> None:
    mode = str(call.attribute("mode"))
    if mode == "wrap":
        call.needs_opset(19)
    inputs = [*call.node.inputs, call.constant(call.ints("pads"))]
    if mode == "constant":
        inputs.append(call.constant(call.number("value"), call.type_at(0).dtype))
    call.emit("Pad", inputs, mode=mode)


def _resize(call: ExportCall) -> None:
    call.needs_opset(19)
    given, sizes = call.attribute("scales"), call.ints("sizes")
    scales = tuple(s for s in given if isinstance(s, float)) if isinstance(given, tuple) else ()
    inputs = [*call.node.inputs, ""]
    if scales:
        pairs = zip(call.type_at(0).extents, scales, sizes, strict=True)
        if any(int(n * s + 1e-5) != size for n, s, size in pairs):
            raise call.unsupported(f"ONNX does not get sizes {sizes} from scales {scales}")
        inputs.append(call.constant(scales, DType.F32))
    else:
        inputs += ["", call.constant(sizes)]
    call.emit(
        "Resize",
        inputs,
        mode=str(call.attribute("mode")),
        coordinate_transformation_mode=str(call.attribute("coordinates")),
        nearest_mode=str(call.attribute("nearest_mode")),
        cubic_coeff_a=call.number("cubic_a"),
        exclude_outside=call.integer("exclude_outside"),
    )


def _one_hot(call: ExportCall) -> None:
    indices, values = call.node.inputs
    depth = call.constant(call.integer("depth"))
    call.emit("OneHot", (indices, depth, values), axis=call.integer("axis"))


def _topk(call: ExportCall) -> None:
    more = {name: call.integer(name) for name in ("axis", "largest", "sorted")}
    k = call.constant([call.integer("k")])
    call.emit("TopK", [*call.node.inputs, k], **more)


def _reverse_sequence(call: ExportCall) -> None:
    x, lengths = call.node.inputs
    if call.type_at(1).dtype is not DType.I64:
        lengths = call.step("Cast", lengths, to=ONNX_DTYPES[DType.I64])
    more = {name: call.integer(name) for name in ("batch_axis", "time_axis")}
    call.emit("ReverseSequence", (x, lengths), **more)


def _bitcast(call: ExportCall) -> None:
    call.needs_opset(defs.get_schema("BitCast").since_version)
    call.emit("BitCast", to=ONNX_DTYPES[_output_dtype(call)])


def _output_dtype(call: ExportCall) -> DType:
    return call.types[call.node.outputs[0]].dtype


def _full(call: ExportCall) -> None:
    dtype = _output_dtype(call)
    value = call.constant(call.number("value"), dtype)
    call.emit("Expand", (value, call.constant(np.asarray(call.ints("shape"), np.int64))))


def _range(call: ExportCall) -> None:
    """The numbers themselves: they are known."""
    start, step = call.number("start"), call.number("step")
    values = start + np.arange(call.integer("size")) * step
    call.emit("Identity", (call.constant(values, _output_dtype(call)),))


def _eye_like(call: ExportCall) -> None:
    rows, columns = call.type_at(0).extents
    values = np.eye(rows, columns, call.integer("k"))
    call.emit("Identity", (call.constant(values, _output_dtype(call)),))


def _quantize(call: ExportCall) -> None:
    inputs = list(call.node.inputs)
    if len(inputs) == 2:
        shape = call.type_at(1).extents
        inputs.append(call.constant(np.zeros(shape), _output_dtype(call)))
    call.emit("QuantizeLinear", inputs, axis=call.integer("axis"))


MOVEMENT: ExportTable = (
    ("reshape", _numbers("Reshape", "shape", allowzero=1)),
    ("expand", _numbers("Expand", "shape")),
    ("squeeze", _numbers("Squeeze", "axes")),
    ("unsqueeze", _numbers("Unsqueeze", "axes")),
    ("tile", _numbers("Tile", "repeats")),
    ("transpose", _transpose),
    ("split", _split),
    ("slice", _slice),
    ("pad", _pad),
    ("resize", _resize),
    ("one_hot", _one_hot),
    ("topk", _topk),
    ("reverse_sequence", _reverse_sequence),
    ("bitcast", _bitcast),
    ("full", _full),
    ("range", _range),
    ("eye_like", _eye_like),
    ("quantize_linear", _quantize),
)
