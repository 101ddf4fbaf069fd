"""Operators that ONNX has alike, element-wise operators and reductions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
from onnx import defs

from tensorwright.base import DType, OpenSize
from tensorwright.expr import Index, floor_div
from tensorwright.graph.imports import counterparts
from tensorwright.graph.imports.converters.normalization import REDUCTIONS
from tensorwright.graph.onnx_export.call import (
    ONNX_DTYPES,
    ExportCall,
    ExportRule,
    ExportTable,
    OnnxValue,
)
from tensorwright.ops import as_size, sizes_of


def _alike(counterpart: counterparts.Counterpart, call: ExportCall) -> None:
    call.needs_opset(counterpart.opset)
    second = [call.size(counterpart.number)] if counterpart.number else []
    call.alike(counterpart.theirs, *call.node.inputs, *second)


def _clip(call: ExportCall) -> None:
    dtype = call.type_at(0).dtype
    inputs = [call.node.inputs[0]]
    for name, open_at in (("min", -math.inf), ("max", math.inf)):
        value = call.node.number(name)
        if value == open_at:
            inputs.append("")
            continue
        if dtype.is_int:
            value = min(max(value, dtype.lowest), dtype.highest)
        inputs.append(call.constant(value, dtype))
    call.emit("Clip", inputs)


def _cast(call: ExportCall) -> None:
    target = call.node.attribute_map["to"]
    if isinstance(target, DType):
        call.emit("Cast", to=ONNX_DTYPES[target])


def _floormod(call: ExportCall) -> None:
    if call.type_at(0).dtype.is_float:
        call.needs_opset(defs.get_schema("Mod").since_version)  # integers only before
    call.emit("Mod")


def _trunc(call: ExportCall) -> None:
    (x,) = call.node.inputs
    call.emit("Mul", (call.step("Sign", x), call.step("Floor", call.step("Abs", x))))


def _expm1(call: ExportCall) -> None:
    one = call.constant(1, call.type_at(0).dtype)
    call.emit("Sub", (call.step("Exp", call.node.inputs[0]), one))


def _log1p(call: ExportCall) -> None:
    one = call.constant(1, call.type_at(0).dtype)
    call.emit("Log", (call.step("Add", call.node.inputs[0], one),))


def _of(outer: str, inner: str) -> ExportRule:
    """One operator on the result of another."""
    return lambda call: call.emit(outer, (call.step(inner, *call.node.inputs),))


def _shift(direction: str) -> ExportRule:
    return lambda call: call.emit("BitShift", direction=direction)


def _reduce(operator: str, call: ExportCall) -> None:
    axes = call.node.ints("axes")
    call.needs_opset(20 if call.type_at(0).dtype is DType.BOOL else 18)
    call.alike(operator, *call.node.inputs, *([call.constant(axes)] if axes else []))


ELEMENTWISE: ExportTable = (
    *((each.ours, partial(_alike, each)) for each in counterparts.WRITTEN_ALIKE),
    *((ours, partial(_reduce, theirs)) for theirs, ours, _ in REDUCTIONS),
    ("reduce_any", partial(_reduce, "ReduceMax")),
    ("reduce_all", partial(_reduce, "ReduceMin")),
    ("clip", _clip),
    ("cast", _cast),
    ("fmod", lambda call: call.emit("Mod", fmod=1)),
    ("floormod", _floormod),
    ("trunc", _trunc),
    ("rsqrt", _of("Reciprocal", "Sqrt")),
    ("expm1", _expm1),
    ("log1p", _log1p),
    ("not_equal", _of("Not", "Equal")),
    ("shift_left", _shift("LEFT")),
    ("shift_right", _shift("RIGHT")),
)


_FINEST = 1 << 12  # the largest denominator that a scale stands for, as in the operator


def _numbers(operator: str, attribute: str, **fixed: OnnxValue) -> ExportRule:
    """A rule for an operator that takes one of our attributes as its second input."""

    def rule(call: ExportCall) -> None:
        is_given = call.node.sizes(attribute) or attribute == "shape"
        second = [call.sizes(attribute)] if is_given else []
        call.alike(operator, *call.node.inputs, *second, **fixed)

    return rule


def _transpose(call: ExportCall) -> None:
    perm = call.node.ints("perm") or tuple(reversed(range(len(call.type_at(0).shape))))
    call.emit("Transpose", perm=perm)


def _slice(call: ExportCall) -> None:
    count = len(call.node.sizes("starts"))
    axes = call.node.ints("axes") or tuple(range(count))
    steps = call.node.ints("steps") or (1,) * count
    operands = [call.sizes("starts"), call.sizes("ends"), call.constant(axes), call.constant(steps)]
    call.emit("Slice", [*call.node.inputs, *operands])


def _pad(call: ExportCall) -> None:
    mode = str(call.node.attribute_map["mode"])
    if mode == "wrap":
        call.needs_opset(19)
    inputs = [*call.node.inputs, call.sizes("pads")]
    if mode == "constant":
        inputs.append(call.constant(call.node.number("value"), call.type_at(0).dtype))
    call.alike("Pad", *inputs)


def _resize(call: ExportCall) -> None:
    call.needs_opset(19)
    given, sizes = call.node.attribute_map["scales"], call.node.sizes("sizes")
    scales = tuple(s for s in given if isinstance(s, float)) if isinstance(given, tuple) else ()
    inputs = [*call.node.inputs, ""]
    if scales:
        pairs = zip(sizes_of(call.type_at(0)), scales, sizes, strict=True)
        if not all(_is_scaled(*each) for each in pairs):
            shape = ", ".join(map(str, sizes))
            raise call.unsupported(f"ONNX does not get sizes ({shape}) from scales {scales}")
        inputs.append(call.constant(scales, DType.F32))
    else:
        inputs += ["", call.sizes("sizes")]
    call.alike("Resize", *inputs)


def _is_scaled(extent: Index, scale: float, size: Index) -> bool:
    """Whether ONNX gets a size from an extent and a scale."""
    if isinstance(extent, int):
        return int(extent * scale + 1e-5) == size
    exact = Fraction(scale).limit_denominator(_FINEST)
    return size == floor_div(extent * exact.numerator, exact.denominator)


def _one_hot(call: ExportCall) -> None:
    indices, values = call.node.inputs
    call.alike("OneHot", indices, call.size("depth"), values)


def _topk(call: ExportCall) -> None:
    k = as_size(call.node.attribute_map["k"])
    count = call.constant([k]) if isinstance(k, int) else call.writing.sizes.vector((k,))
    call.alike("TopK", *call.node.inputs, count)


def _tree_leaves(call: ExportCall) -> None:
    """A step down all trees is four gathers and a comparison."""
    x, features, limits, children, roots = call.node.inputs
    shape = sizes_of(call.type_at(0))[0], *sizes_of(call.type_at(4))
    fixed = [each for each in shape if isinstance(each, int)]
    target = call.constant(fixed) if len(fixed) == 2 else call.writing.sizes.vector(shape)
    nodes = call.step("Expand", roots, target)
    for _ in range(call.node.integer("depth")):
        columns = call.step("Gather", features, nodes)
        read = call.step("GatherElements", x, columns, axis=1)
        is_greater = call.step("Greater", read, call.step("Gather", limits, nodes))
        more = call.step("Cast", is_greater, to=ONNX_DTYPES[DType.I32])
        nodes = call.step("Add", call.step("Gather", children, nodes), more)
    call.emit("Identity", (nodes,))


def _reverse_sequence(call: ExportCall) -> None:
    x, lengths = call.node.inputs
    if call.type_at(1).dtype is not DType.I64:
        lengths = call.step("Cast", lengths, to=ONNX_DTYPES[DType.I64])
    call.alike("ReverseSequence", x, lengths)


def _bitcast(call: ExportCall) -> None:
    call.needs_opset(defs.get_schema("BitCast").since_version)
    call.emit("BitCast", to=ONNX_DTYPES[_output_dtype(call)])


def _output_dtype(call: ExportCall) -> DType:
    return call.types[call.node.outputs[0]].dtype


def _full(call: ExportCall) -> None:
    given = call.node.attribute_map["value"]
    if isinstance(given, OpenSize):
        value = call.step("Cast", call.scalar(as_size(given)), to=_onnx(call))
    else:
        value = call.constant(call.node.number("value"), _output_dtype(call))
    call.emit("Expand", (value, call.sizes("shape")))


def _range(call: ExportCall) -> None:
    """The numbers themselves, where they are known."""
    given = call.node.attribute_map
    if not isinstance(given["size"], int) or isinstance(given["start"], OpenSize):
        _open_range(call)
        return
    start, step = call.node.number("start"), call.node.number("step")
    values = start + np.arange(call.node.integer("size")) * step
    call.emit("Identity", (call.constant(values, _output_dtype(call)),))


def _open_range(call: ExportCall) -> None:
    """From start to before start + size * step, all of them integers."""
    given, step = call.node.attribute_map["start"], call.node.number("step")
    start = int(given) if isinstance(given, float) and given.is_integer() else given
    if isinstance(start, float) or not step.is_integer():
        raise call.unsupported(f"steps of {step} from {start} to a size are rounded")
    first = as_size(start)
    ends = (first, first + as_size(call.node.attribute_map["size"]) * int(step))
    made = call.step("Range", *map(call.scalar, (*ends, int(step))))
    call.emit("Cast", (made,), to=_onnx(call))


def _onnx(call: ExportCall) -> int:
    return ONNX_DTYPES[_output_dtype(call)]


def _eye_like(call: ExportCall) -> None:
    rows, columns = call.type_at(0).extents
    values = np.eye(rows, columns, call.node.integer("k"))
    call.emit("Identity", (call.constant(values, _output_dtype(call)),))


def _quantize(call: ExportCall) -> None:
    inputs = list(call.node.inputs)
    if len(inputs) == 2:
        shape = call.type_at(1).extents
        inputs.append(call.constant(np.zeros(shape), _output_dtype(call)))
    call.alike("QuantizeLinear", *inputs)


def _dequantize_blocks(call: ExportCall) -> None:
    """Codes by shifts of whole words, in a dimension of their own."""
    bits = call.node.integer("bits")
    parts, half = 32 // bits, 1 << (bits - 1)
    blocks, columns = call.type_at(1).extents
    shifts = call.constant(np.arange(0, 32, bits).reshape(1, parts, 1), DType.U32)
    words = call.step("Cast", call.node.inputs[0], to=ONNX_DTYPES[DType.U32])
    rows = call.step("Unsqueeze", words, call.constant([1]))
    fields = call.step("BitShift", rows, shifts, direction="RIGHT")
    fields = call.step("BitwiseAnd", fields, call.constant(2 * half - 1, DType.U32))
    fields = call.step("BitwiseXor", fields, call.constant(half, DType.U32))
    numbers = call.step("Cast", fields, to=ONNX_DTYPES[DType.F32])
    numbers = call.step("Sub", numbers, call.constant(half, DType.F32))
    numbers = call.step("Reshape", numbers, call.constant([blocks, -1, columns]))
    scale, *zeros = call.node.inputs[1:]
    for zero in zeros:
        number = call.step("Cast", zero, to=ONNX_DTYPES[DType.F32])
        numbers = call.step("Sub", numbers, call.step("Unsqueeze", number, call.constant([1])))
    scaled = call.step("Mul", numbers, call.step("Unsqueeze", scale, call.constant([1])))
    call.emit("Reshape", (scaled, call.constant([-1, columns])))


MOVEMENT: ExportTable = (
    ("reshape", _numbers("Reshape", "shape", allowzero=1)),
    ("expand", _numbers("Expand", "shape")),
    ("squeeze", _numbers("Squeeze", "axes")),
    ("unsqueeze", _numbers("Unsqueeze", "axes")),
    ("tile", _numbers("Tile", "repeats")),
    ("transpose", _transpose),
    ("split", _numbers("Split", "sizes")),
    ("slice", _slice),
    ("pad", _pad),
    ("resize", _resize),
    ("one_hot", _one_hot),
    ("topk", _topk),
    ("tree_leaves", _tree_leaves),
    ("reverse_sequence", _reverse_sequence),
    ("bitcast", _bitcast),
    ("full", _full),
    ("range", _range),
    ("eye_like", _eye_like),
    ("quantize_linear", _quantize),
    ("dequantize_blocks", _dequantize_blocks),
)


def _conv(operator: str) -> ExportRule:
    return lambda call: call.alike(operator, group=call.node.integer("groups"))


def _pool(counterpart: counterparts.Counterpart, call: ExportCall) -> None:
    has_steps = any(d != 1 for d in call.node.ints("dilations"))
    call.needs_opset(19 if has_steps else 0)
    is_old = counterpart.theirs == "AveragePool" and not has_steps
    call.alike(counterpart.theirs, **({"dilations": ()} if is_old else {}))


def _attention(call: ExportCall) -> None:
    call.needs_opset(23)
    if call.node.attribute_map["nan_weights"] == "zero":
        raise call.unsupported("it makes weights that are NaN 0")
    inputs, is_causal = call.node.inputs, call.node.integer("causal")
    if is_causal and call.node.integer("continues"):
        inputs, is_causal = (*inputs[:3], _seen_before(call)), 0
    attributes: dict[str, OnnxValue] = {"is_causal": is_causal}
    for name in ("scale", "softcap"):
        if call.node.number(name):
            attributes[name] = call.node.number(name)
    call.emit("Attention", inputs, **attributes)


def _seen_before(call: ExportCall) -> str:
    """The mask of rows that are the last of the positions: ONNX counts rows from the first one."""
    rows, keys = (sizes_of(call.type_at(at))[2] for at in (0, 1))
    one = call.constant((1,))
    extents = (call.step("Reshape", call.scalar(n), one) for n in (rows, keys))
    shape = call.step("Concat", *extents, axis=0)
    everything = call.step("Expand", call.constant(1, DType.BOOL), shape)
    seen = call.step("Trilu", everything, call.scalar(keys - rows), upper=0)
    if len(call.node.inputs) == 3:
        return seen
    mask, dtype = call.node.inputs[3], call.type_at(3).dtype
    if dtype is DType.BOOL:
        return call.step("And", seen, mask)
    return call.step("Where", seen, mask, call.constant(-math.inf, dtype))


WINDOWS: ExportTable = (
    ("conv", _conv("Conv")),
    ("conv_integer", _conv("ConvInteger")),
    ("conv_transpose", _conv("ConvTranspose")),
    *((each.ours, partial(_pool, each)) for each in (counterparts.MAX_POOL, *counterparts.POOLS)),
    ("attention", _attention),
)
