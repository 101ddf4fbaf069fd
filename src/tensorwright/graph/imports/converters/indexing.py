"""Reading and writing at positions that are tensors.

Operators whose value follows from static shapes, and sequences, whose number of tensors import
knows: a node of them is left in the graph only where a value is large, so that who reads it
computes it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from onnx import SparseTensorProto, TensorProto

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.graph.builder import LARGE_BYTES
from tensorwright.graph.imports.call import Call, Operand, Results, Single, Table, TensorList
from tensorwright.graph.imports.converters.movement import computed_range
from tensorwright.graph.imports.converters.windows import per_dimension
from tensorwright.graph.imports.counterparts import AT_POSITIONS, SCATTER, Counterpart
from tensorwright.graph.imports.folding import is_computed, size_at, sizes_from
from tensorwright.graph.imports.size_terms import SizeArray, known_array, term_of
from tensorwright.graph.imports.tensors import dense, dtype_of, to_array
from tensorwright.ops import Array, axis_in, number_of


def _positions(call: Call, position: int) -> Operand:
    """Indices as i32 or i64."""
    if call.dtype_of(position) in (DType.I32, DType.I64):
        return call.operand(position)
    return call.add("cast", call.tensor(position), to=DType.I64)


def _at_positions(counterpart: Counterpart, call: Call) -> Results:
    operands = (call.tensor(0), _positions(call, 1), *call.operands[2:])
    return counterpart.convert(replace(call, operands=operands))


def _one_hot(call: Call) -> Results:
    depth = size_at(call, 1, "depth")
    indices: Operand = _positions(call, 0)
    axis = call.integer("axis", -1)
    return (call.add("one_hot", indices, call.tensor(2), depth=depth, axis=axis),)


def _top_k(call: Call) -> Results:
    axis = call.integer("axis", -1)
    extent = call.sizes(0)[axis_in(axis, call.rank(0))]
    k = call.integer("k") if call.opset < 10 else size_at(call, 1, "k", extent)
    if isinstance(k, expr.IndexExpr):
        k = expr.simplify(expr.minimum(k, extent), {})
    return call.apply(
        "topk",
        call.tensor(0),
        k=k,
        axis=axis,
        largest=call.flag("largest", default=True),
        sorted=call.flag("sorted", default=True),
    )


def _write_to_cache(call: Call) -> Results:
    """TensorScatter: rows of a cache are replaced from a position of each example on."""
    cache, update = call.tensor(0), call.tensor(1)
    shape, written = call.extents(0), call.extents(1)
    axis = call.integer("axis", -2)
    if not -len(shape) <= axis < len(shape) or axis % len(shape) == 0:
        raise call.unsupported(f"its axis {axis} is none of the cache {shape} but the first")
    axis %= len(shape)
    extent = written[axis]
    places: Operand = np.arange(extent)[None, :]
    if call.has(2):
        starts = call.add("unsqueeze", _positions(call, 2), axes=(1,))
        starts = call.add("cast", starts, to=DType.I64)
        places = call.add("add", starts, places)
    if call.text("mode", "linear") == "circular":
        places = call.add("floormod", places, np.array(shape[axis]))
    rows = call.type_of(places).shape[0]
    target = (rows, *(extent if at == axis else 1 for at in range(1, len(shape))))
    places = call.add("expand", call.add("reshape", places, shape=target), shape=written)
    return (call.add("scatter_elements", cache, places, update, axis=axis, reduction="none"),)


def _columns_to_image(call: Call) -> Results:
    """Col2Im: each column is a block, which is added to the image where it was taken from."""
    shape, image = call.extents(0), call.ints(1, "image_shape")
    block = call.ints(2, "block_shape")
    rank = len(block)
    strides, dilations = (per_dimension(call, each, rank, 1) for each in ("strides", "dilations"))
    pads = call.integers("pads", (0,) * 2 * rank)
    sizes = [n + pads[at] + pads[rank + at] for at, n in enumerate(image)]
    counts = [
        (size - (k - 1) * dilation - 1) // stride + 1
        for size, k, dilation, stride in zip(sizes, block, dilations, strides, strict=True)
    ]
    taps, blocks = math.prod(block), math.prod(counts)
    if len(image) != rank or len(shape) != 3 or shape[1] % taps or shape[2] != blocks:
        raise call.unsupported(f"columns {shape} do not fit blocks {block} of an image {image}")
    planes = shape[0] * shape[1] // taps
    call.check_elements(taps * blocks)
    places = np.zeros((1,), np.int64)
    for tap_or_block in (block, counts):
        for at, extent in enumerate(tap_or_block):
            step = dilations[at] if tap_or_block is block else strides[at]
            along = np.arange(extent) * step * math.prod(sizes[at + 1 :])
            places = (places[:, None] + along).reshape(-1)
    rows = call.add("reshape", call.tensor(0), shape=(planes, taps * blocks))
    rows = call.add("transpose", rows, perm=(1, 0))
    empty, dtype = (math.prod(sizes), planes), call.dtype_of(0)
    zeros = call.add("full", shape=empty, value=0.0, dtype=dtype)
    added = call.add("scatter_nd", zeros, places[:, None], rows, reduction="add")
    added = call.add("transpose", added, perm=(1, 0))
    whole = call.add("reshape", added, shape=(shape[0], shape[1] // taps, *sizes))
    ends = tuple(pads[at] + n for at, n in enumerate(image))
    axes = tuple(range(2, 2 + rank))
    return (call.add("slice", whole, starts=pads[:rank], ends=ends, axes=axes, steps=(1,) * rank),)


INDEXING: Table = (
    *((each.theirs, partial(_at_positions, each)) for each in AT_POSITIONS),
    ("Scatter", partial(_at_positions, SCATTER)),
    ("TopK", _top_k),
    ("OneHot", _one_hot),
    ("TensorScatter", _write_to_cache),
    ("Col2Im", _columns_to_image),
)


_MOST_ELEMENTS = 1 << 31


def _constant(call: Call) -> Results:
    value = call.attributes.get("value")
    if isinstance(value, TensorProto):
        return (to_array(value, call.folder, call.label),)
    sparse = call.attributes.get("sparse_value")
    if isinstance(sparse, SparseTensorProto):
        return (dense(sparse, call.folder, call.label),)
    if call.has("value_int"):
        return (np.asarray(call.integer("value_int"), np.int64),)
    if call.has("value_float"):
        return (np.asarray(call.real("value_float"), np.float32),)
    if call.has("value_ints"):
        return (np.asarray(call.integers("value_ints"), np.int64),)
    if call.has("value_floats"):
        return (np.asarray(call.reals("value_floats"), np.float32),)
    raise call.unsupported("its value is text or missing")


def _constant_of_shape(call: Call) -> Results:
    value = call.attributes.get("value")
    fill: Array = np.zeros(1, np.float32)
    if isinstance(value, TensorProto):
        fill = to_array(value, call.folder, call.label)
    number = fill.reshape(-1)[0]
    if isinstance(call.operand(0), SizeArray) or is_computed(call, 0):
        dtype = DType.from_numpy(fill.dtype)
        sizes = sizes_from(call, 0, "shape")
        return (call.add("full", shape=sizes, value=number.item(), dtype=dtype),)
    shape = call.ints(0, "shape")
    if any(extent < 0 for extent in shape):
        raise call.unsupported(f"its shape {shape} has a negative extent")
    if math.prod(shape) > _MOST_ELEMENTS:
        raise call.unsupported(f"its shape {shape} has more than {_MOST_ELEMENTS} elements")
    if math.prod(shape) * fill.itemsize > LARGE_BYTES:
        dtype = DType.from_numpy(fill.dtype)
        return (call.add("full", shape=shape, value=number.item(), dtype=dtype),)
    return (np.full(shape, number, fill.dtype),)


def _shape(call: Call) -> Results:
    shape = call.sizes(0)
    start = call.integer("start", 0)
    end = call.integer("end", len(shape))
    chosen = shape[start:end]
    return (known_array(tuple(map(term_of, chosen)), (len(chosen),), DType.I64),)


def _size(call: Call) -> Results:
    return (known_array((term_of(math.prod(call.sizes(0))),), (), DType.I64),)


def _range(call: Call) -> Results:
    dtype = call.dtype_of(0)
    if any(is_computed(call, at) for at in range(3)):
        return computed_range(call, dtype)
    if any(isinstance(operand, SizeArray) for operand in call.operands):
        return _open_range(call, dtype)
    start, limit, delta = (
        call.scalar(at, name) for at, name in enumerate(("start", "limit", "delta"))
    )
    if delta == 0:
        raise call.unsupported("its delta is 0")
    count = max(int(np.ceil((limit - start) / delta)), 0)
    if count > _MOST_ELEMENTS:
        raise call.unsupported(f"it has more than {_MOST_ELEMENTS} elements")
    if count * dtype.size_bytes > LARGE_BYTES:
        wide = DType.F32 if dtype in (DType.F16, DType.BF16) else dtype
        made = call.add("range", size=count, start=start, step=delta, dtype=wide)
        return (made if wide is dtype else call.add("cast", made, to=dtype),)
    return ((start + np.arange(count) * delta).astype(dtype.numpy),)


def _open_range(call: Call, dtype: DType) -> Results:
    """A range whose ends depend on sizes."""
    start, limit, delta = (
        call.whole(at, name) for at, name in enumerate(("start", "limit", "delta"))
    )
    if not isinstance(delta, int):
        raise call.undecided((delta,), "delta")
    if delta == 0:
        raise call.unsupported("its delta is 0")
    gap = limit - start if delta > 0 else start - limit
    count = expr.simplify(expr.maximum(expr.ceil_div(gap, abs(delta)), 0), {})
    wide = DType.F32 if dtype in (DType.F16, DType.BF16) else dtype
    made = call.add("range", size=count, start=start, step=delta, dtype=wide)
    return (made if wide is dtype else call.add("cast", made, to=dtype),)


def _eye_like(call: Call) -> Results:
    rows, columns = call.extents(0)
    dtype = call.dtype_of(0)
    if call.has("dtype"):
        dtype = dtype_of(call.integer("dtype"), call.label, call.operator)
    diagonal = call.integer("k", 0)
    if rows * columns * dtype.size_bytes > LARGE_BYTES:
        return (call.add("eye_like", call.tensor(0), dtype=dtype, k=diagonal),)
    return (np.eye(rows, columns, diagonal, dtype.numpy),)


def _list(call: Call) -> tuple[Single, ...]:
    operand = call.operand(0)
    if not isinstance(operand, TensorList):
        raise call.unsupported("its first input is a tensor, not a sequence")
    return operand.parts


def _single(call: Call, position: int) -> Single:
    operand = call.operand(position)
    if isinstance(operand, TensorList):
        raise call.unsupported("a sequence of sequences is not supported")
    return operand


def _position(call: Call, number: int, count: int, last: int) -> int:
    """The position in a sequence of `count` that an input says, by default the last one that may
    be; negative ones count from the end.
    """
    if not call.has(number):
        return last
    at = int(call.scalar(number, "position"))
    if not -count <= at <= last:
        raise call.unsupported(f"its position {at} is outside of {count} tensors")
    return at + count if at < 0 else at


def _construct(call: Call) -> Results:
    return (TensorList(tuple(_single(call, at) for at in range(len(call.operands)))),)


def _insert(call: Call) -> Results:
    parts = _list(call)
    at = _position(call, 2, len(parts), len(parts))
    return (TensorList((*parts[:at], _single(call, 1), *parts[at:])),)


def _erase(call: Call) -> Results:
    parts = _list(call)
    at = _position(call, 1, len(parts), len(parts) - 1)
    return (TensorList((*parts[:at], *parts[at + 1 :])),)


def _element(call: Call) -> Results:
    parts = _list(call)
    return (parts[_position(call, 1, len(parts), len(parts) - 1)],)


def _length(call: Call) -> Results:
    return (np.asarray(len(_list(call))),)


def _joined(call: Call) -> Results:
    parts, axis = _list(call), call.integer("axis")
    if not parts:
        raise call.unsupported("it joins a sequence without a tensor")
    if call.flag("new_axis"):
        return (call.stack(parts, axis_in(axis, len(call.sizes(parts[0])) + 1)),)
    return (parts[0] if len(parts) == 1 else call.add("concat", *parts, axis=axis),)


def _split_to_list(call: Call) -> Results:
    """Parts of one extent, the last of which may be shorter, or of given extents."""
    x, axis = call.tensor(0), axis_in(call.integer("axis", 0), call.rank(0))
    extent = call.sizes(0)[axis]
    given = call.indices(1, "split") if call.has(1) else (1,)
    if not call.has(1) or not call.type_of(1).shape:
        each, whole = number_of(given[0]), number_of(extent)
        given = tuple(min(each, whole - start) for start in range(0, whole, each))
    if not given:
        return (TensorList(()),)
    parts: tuple[Operand, ...] = (x,)
    if len(given) > 1:
        parts = call.apply("split", x, sizes=given, axis=axis)
    if not call.has(1) and not call.flag("keepdims", default=True):
        parts = tuple(call.add("squeeze", part, axes=(axis,)) for part in parts)
    return (TensorList(tuple(map(call.as_tensor, parts))),)


SHAPE_VALUES: Table = (
    ("Constant", _constant),
    ("ConstantOfShape", _constant_of_shape),
    ("Shape", _shape),
    ("Size", _size),
    ("Range", _range),
    ("EyeLike", _eye_like),
    ("SequenceEmpty", lambda call: (TensorList(()),)),
    ("SequenceConstruct", _construct),
    ("SequenceInsert", _insert),
    ("SequenceErase", _erase),
    ("SequenceAt", _element),
    ("SequenceLength", _length),
    ("ConcatFromSequence", _joined),
    ("SplitToSequence", _split_to_list),
)
