"""Tensors that are made of numbers and sizes, and sequences, whose number of tensors import knows.

A node of them is left in the graph only where a value is large, so that who reads it computes it.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from onnx import SparseTensorProto, TensorProto

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.expr import Index, IndexExpr
from tensorwright.graph.builder import LARGE_BYTES
from tensorwright.graph.imports.call import (
    Call,
    Operand,
    Results,
    Single,
    Table,
    TensorList,
)
from tensorwright.graph.imports.converters.selecting import computed_range
from tensorwright.graph.imports.folding import is_computed, sizes_from
from tensorwright.graph.imports.size_terms import SizeArray, known_array, term_of
from tensorwright.graph.imports.tensors import dense, dtype_of, to_array
from tensorwright.ops import Array, axis_in, number_of, product_of

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
        return (_counted(call, count, start, delta, dtype),)
    return ((start + np.arange(count) * delta).astype(dtype.numpy),)


def _open_range(call: Call, dtype: DType) -> Results:
    """A range whose ends depend on sizes."""
    start, limit, delta = (
        call.index(at, name) for at, name in enumerate(("start", "limit", "delta"))
    )
    if not isinstance(delta, int):
        raise call.undecided((delta,), "delta")
    if delta == 0:
        raise call.unsupported("its delta is 0")
    gap = limit - start if delta > 0 else start - limit
    count = expr.simplify(expr.maximum(expr.ceil_div(gap, abs(delta)), 0), {})
    return (_counted(call, count, start, delta, dtype),)


def _counted(
    call: Call, size: expr.Index, start: expr.Index | float, step: float, dtype: DType
) -> str:
    wide = DType.F32 if dtype in (DType.F16, DType.BF16) else dtype
    return call.cast(call.add("range", size=size, start=start, step=step, dtype=wide), dtype)


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
    """The position in a sequence that an input says, by default the last; -1 is the last, too."""
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
    ("SequenceLength", lambda call: (np.asarray(len(_list(call))),)),
    ("ConcatFromSequence", _joined),
    ("SplitToSequence", _split_to_list),
)


# -- ATen


def _full(call: Call, value: float | None = None, shape: str = "size") -> Results:
    """One number for all elements; in the number's type if no other one is named."""
    filled = call.get("fill_value") if value is None else value
    default = DType.F32
    if value is None:
        kinds = ((bool, DType.BOOL), (int, DType.I64), (IndexExpr, DType.I64))
        default = next((d for kind, d in kinds if isinstance(filled, kind)), DType.F32)
    if call.has("self"):
        default = call.dtype_of(call.tensor("self"))
    dtype = call.dtype() or default
    sizes = call.shape(shape, ()) if shape else call.sizes(call.tensor("self"))
    return (call.full(sizes, filled, dtype),)


def _fill(call: Call) -> Results:
    """fill_ and zero_"""
    x = call.tensor("self")
    return (call.full(call.sizes(x), call.get("value", 0), call.dtype_of(x)),)


def _arange(call: Call) -> Results:
    """start + step * i for all i for which that is before `end`."""
    given = (call.get("start", 0), call.get("end"), call.get("step", 1))
    are_whole = not any(isinstance(each, float) for each in given)
    dtype = call.dtype() or DType.I64 if are_whole else DType.F32
    if not are_whole:
        sizes = tuple(each for each in given if isinstance(each, expr.IndexExpr))
        if sizes:
            raise call.undecided(sizes, "number of steps, which are fractions,")
        numbers = np.arange(call.real("start", 0.0), call.real("end"), call.real("step", 1.0))
        return (call.builder.constant(numbers.astype(dtype.numpy)),)
    start, end, step = call.size("start", 0), call.size("end"), call.integer("step", 1)
    difference = end - start if step > 0 else start - end
    count = -((-difference) // abs(step))
    wide = dtype if dtype.is_int else DType.I64
    made = call.add("range", size=count, start=start, step=step, dtype=wide)
    return (call.cast(made, dtype),)


def _linspace(call: Call) -> Results:
    steps = call.integer("steps")
    dtype = call.dtype() or DType.F32
    numbers = np.linspace(call.real("start"), call.real("end"), steps)
    return (call.builder.constant(numbers.astype(dtype.numpy)),)


def _eye(call: Call) -> Results:
    rows = call.size("n")
    shape = (rows, call.size("m", rows))
    dtype = call.dtype() or DType.F32
    return (call.add("eye_like", call.full(shape, 0.0, dtype), dtype=dtype),)


def _meshgrid(call: Call) -> Results:
    vectors = call.tensors("tensors")
    counts = [product_of(call.sizes(each)) for each in vectors]
    is_xy = call.text("indexing", "ij") == "xy" and len(vectors) > 1
    places = list(range(len(vectors)))
    if is_xy:
        places[:2] = (1, 0)
    shape = tuple(counts[at] for at in places)
    grids = []
    for at, each in enumerate(vectors):
        own = tuple(counts[at] if places[axis] == at else 1 for axis in range(len(shape)))
        grids.append(call.add("expand", call.add("reshape", each, shape=own), shape=shape))
    return tuple(grids)


def _aten_size(call: Call) -> Results:
    shape = call.sizes(call.tensor("self"))
    return (_number(shape[axis_in(call.integer("dim"), len(shape))]),)


def _number(size: Index) -> SizeArray:
    """A number, which stands for itself."""
    return SizeArray(DType.I64, np.array(term_of(size), object))


def _item(call: Call) -> Results:
    """The element of a tensor of one element; the tensor itself stands for the number."""
    x = call.tensor("self")
    return (call.add("reshape", x, shape=()) if call.rank(x) else x,)


ATEN_VALUES: Table = (
    ("full new_full", _full),
    ("zeros empty new_zeros new_empty", partial(_full, value=0.0)),
    ("ones new_ones", partial(_full, value=1.0)),
    ("full_like", partial(_full, shape="")),
    ("zeros_like empty_like", partial(_full, value=0.0, shape="")),
    ("ones_like", partial(_full, value=1.0, shape="")),
    ("fill zero", _fill),
    ("scalar_tensor", lambda call: (call.full((), call.get("s"), call.dtype() or DType.F32),)),
    ("arange", _arange),
    ("linspace", _linspace),
    ("eye", _eye),
    ("meshgrid", _meshgrid),
    ("sym_size", _aten_size),
    ("sym_numel", lambda call: (_number(product_of(call.sizes(call.tensor("self")))),)),
    ("item _local_scalar_dense", _item),
)
