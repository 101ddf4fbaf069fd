"""Reading and writing at positions, and tensors that are made from numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Index, IndexExpr
from tensorwright.graph.imports.aten.converters.movement import piece
from tensorwright.graph.imports.call import Call, Converter, Results, Table, Tensor
from tensorwright.graph.imports.promotion import as_type
from tensorwright.graph.imports.size_terms import SizeArray, term_of
from tensorwright.ops import axis_in, product_of

_END = (1 << 63) - 1


def _positions(call: Call, tensor: str) -> str:
    """Positions as i32 or i64."""
    dtype = call.dtype_of(tensor)
    return tensor if dtype in (DType.I32, DType.I64) else call.cast(tensor, DType.I64)


def _embedding(call: Call) -> Results:
    indices = _positions(call, call.tensor("indices"))
    return (call.add("gather", call.tensor("weight"), indices, axis=0),)


def _index_select(call: Call) -> Results:
    x = call.tensor("self")
    indices = _positions(call, call.tensor("index"))
    return (call.add("gather", x, indices, axis=call.axis(call.rank(x))),)


def _gather(call: Call) -> Results:
    """`index` may be smaller than the tensor in the other dimensions."""
    x, index = call.tensor("self"), _positions(call, call.tensor("index"))
    axis = call.axis(call.rank(x))
    for at, (own, other) in enumerate(zip(call.sizes(x), call.sizes(index), strict=True)):
        if at != axis and own != other:
            x = piece(call, x, at, 0, other)
    return (call.add("gather_elements", x, index, axis=axis),)


def _index(call: Call) -> Results:
    """Positions for some dimensions, broadcast to one shape.

    The dimensions of that shape replace the indexed ones if those are neighbours; else they come
    first.
    """
    x, axes, indices = _indexed(call)
    x, first = _neighbours(call, x, axes)
    count = len(axes)
    shape = call.sizes(x)
    extents = shape[first : first + count]
    flat = call.add(
        "reshape", x, shape=(*shape[:first], product_of(extents), *shape[first + count :])
    )
    return (call.add("gather", flat, _flat_positions(call, indices, extents), axis=first),)


def _indexed(call: Call) -> tuple[str, list[int], list[str]]:
    """The tensor, the dimensions that have positions, and the positions.

    Raises:  UnsupportedError for a mask, because only a call tells how many positions it selects.
    """
    given = call.get("indices")
    assert isinstance(given, tuple)
    axes, indices = [], []
    for axis, each in enumerate(given):
        if isinstance(each, Tensor):
            if call.dtype_of(each.name) in (DType.BOOL, DType.U8):
                raise call.unsupported(
                    "a mask selects elements, and only a call tells how many",
                    "compute with torch.where, which keeps all of them",
                )
            axes.append(axis)
            indices.append(_positions(call, each.name))
    return call.tensor("self"), axes, indices


def _neighbours(call: Call, x: str, axes: Sequence[int]) -> tuple[str, int]:
    """The tensor with these dimensions side by side, and the first of their new positions."""
    first = axes[0]
    if list(axes) == list(range(first, first + len(axes))):
        return x, first
    rest = [axis for axis in range(call.rank(x)) if axis not in axes]
    return call.add("transpose", x, perm=(*axes, *rest)), 0


def _flat_positions(call: Call, indices: Sequence[str], extents: Sequence[Index]) -> str:
    """Positions in several dimensions as one, in row-major order."""
    if len(indices) == 1:
        return indices[0]
    total = ""
    for index, extent in zip(indices, extents, strict=True):
        size = call.full((), extent, DType.I64)
        inside = call.add("floormod", call.cast(index, DType.I64), size)  # which may be negative
        total = call.add("add", call.add("mul", total, size), inside) if total else inside
    return total


_REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
}


def _scatter(given: str = "") -> Converter:
    def convert(call: Call) -> Results:
        """Values of `src`, or one number, at positions along a dimension."""
        x, index = call.tensor("self"), _positions(call, call.tensor("index"))
        axis, dtype = call.axis(call.rank(x)), call.dtype_of(x)
        if call.has("src"):
            updates = call.cast(call.tensor("src"), dtype)
            for at, (own, wanted) in enumerate(
                zip(call.sizes(updates), call.sizes(index), strict=True)
            ):
                if own != wanted:
                    updates = piece(call, updates, at, 0, wanted)
        else:
            updates = as_type(call, call.get("value"), dtype)
            updates = call.add("expand", updates, shape=call.sizes(index))
        asked = given or call.text("reduce", "")
        if asked and (asked not in _REDUCTIONS or not call.flag("include_self", default=True)):
            raise call.unsupported(f"its reduction {asked} is not supported")
        reduction = _REDUCTIONS[asked] if asked else "none"
        return (call.add("scatter_elements", x, index, updates, axis=axis, reduction=reduction),)

    return convert


def _index_put(call: Call) -> Results:
    """Values at positions of the leading dimensions; a mask takes one number."""
    x, values = call.tensor("self"), call.tensor("values")
    given = call.get("indices")
    assert isinstance(given, tuple)
    values = call.cast(values, call.dtype_of(x))
    if len(given) == 1 and isinstance(given[0], Tensor):
        mask = given[0].name
        if call.dtype_of(mask) is DType.BOOL and not call.rank(values):
            more = call.rank(x) - call.rank(mask)
            mask = call.add("reshape", mask, shape=(*call.sizes(mask), *(1,) * more))
            return (call.add("where", mask, values, x),)
    x, axes, indices = _indexed(call)
    if axes != list(range(len(axes))):
        raise call.unsupported("its first dimension has no positions")
    shape = call.sizes(x)
    extents, rest = shape[: len(axes)], shape[len(axes) :]
    flat = call.add("reshape", x, shape=(product_of(extents), *rest))
    at = _flat_positions(call, indices, extents)
    places = call.sizes(at)
    values = call.add("expand", values, shape=(*places, *rest))
    updates = call.add("reshape", values, shape=(product_of(places), *rest))
    rows = call.add("reshape", at, shape=(product_of(places), 1))
    reduction = "add" if call.flag("accumulate") else "none"
    written = call.add("scatter_nd", flat, rows, updates, reduction=reduction)
    return (call.add("reshape", written, shape=shape),)


def replaced(call: Call, x: str, source: str, axis: int, start: Index, end: Index) -> str:
    """A tensor with x[start:end] along a dimension replaced."""
    extent = call.sizes(x)[axis]
    parts = [source]
    if start != 0:
        parts.insert(0, piece(call, x, axis, 0, start))
    if end != extent:
        parts.append(piece(call, x, axis, end, _END))
    return source if len(parts) == 1 else call.add("concat", *parts, axis=axis)


def _slice_scatter(call: Call) -> Results:
    x, source = call.tensor("self"), call.tensor("src")
    axis = call.axis(call.rank(x), default=0)
    if call.integer("step", 1) != 1:
        raise call.unsupported("its step is not 1")
    extent = call.sizes(x)[axis]
    start, end = call.size("start", 0), call.size("end", _END)
    if isinstance(extent, int) and isinstance(start, int) and isinstance(end, int):
        start, end, _ = slice(start, end).indices(extent)
    elif end == _END:
        end = extent
    source = call.cast(source, call.dtype_of(x))
    return (replaced(call, x, source, axis, start, end),)


def _diff(call: Call) -> Results:
    """x[1:] - x[:-1] along a dimension, `n` times."""
    given = [call.tensor(name) for name in ("prepend", "self", "append") if call.has(name)]
    axis = call.axis(call.rank(call.tensor("self")), default=-1)
    x = given[0] if len(given) == 1 else call.add("concat", *given, axis=axis)
    minus = "xor" if call.dtype_of(x) is DType.BOOL else "sub"
    for _ in range(call.integer("n", 1)):
        last = call.sizes(x)[axis] - 1
        x = call.add(minus, piece(call, x, axis, 1, _END), piece(call, x, axis, 0, last))
    return (x,)


def _select_scatter(call: Call) -> Results:
    x, source = call.tensor("self"), call.tensor("src")
    axis, index = call.axis(call.rank(x)), call.size("index")
    if isinstance(index, int) and index < 0:
        index = index + call.sizes(x)[axis]
    source = call.cast(call.add("unsqueeze", source, axes=(axis,)), call.dtype_of(x))
    return (replaced(call, x, source, axis, index, index + 1),)


def _top_k(call: Call) -> Results:
    x = call.tensor("self")
    return call.apply(
        "topk",
        x,
        k=call.size("k"),
        axis=call.axis(call.rank(x), default=-1),
        largest=call.flag("largest", default=True),
        sorted=call.flag("sorted", default=True),
    )


def _sort(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=-1)
    largest, extent = call.flag("descending"), call.sizes(x)[axis]
    return call.apply("topk", x, k=extent, axis=axis, largest=largest, sorted=True)


def _arg_sort(call: Call) -> Results:
    return _sort(call)[1:]


def _one_hot(call: Call) -> Results:
    values = call.builder.constant(np.array([0, 1], np.int64))
    depth = call.size("num_classes", -1)
    if depth == -1:
        raise call.unsupported("only a call tells the number of classes; give num_classes")
    index = _positions(call, call.tensor("self"))
    return (call.add("one_hot", index, values, depth=depth, axis=-1),)


def _histogram(call: Call) -> Results:
    """How many elements lie in each of `bins` equal parts of a range, the last one with its end."""
    bins, least, most = call.integer("bins", 100), call.real("min", 0.0), call.real("max", 0.0)
    if least >= most:
        raise call.unsupported("its range is that of the elements; give min and max")
    x = call.tensor("self")
    dtype, count = call.dtype_of(x), product_of(call.sizes(x))
    low, high, scale = (call.full((), each, dtype) for each in (least, most, bins / (most - least)))
    x = call.add("reshape", x, shape=(count, 1))
    at = call.add("floor", call.add("mul", call.add("sub", x, low), scale))
    at = call.add("min", at, call.full((), bins - 1, dtype))
    bin_ = call.add("range", size=bins, start=0, step=1, dtype=DType.I64)
    is_in = call.add("equal", at, call.cast(bin_, dtype))
    is_inside = call.add(
        "and", call.add("less_or_equal", low, x), call.add("less_or_equal", x, high)
    )
    counted = call.cast(call.add("and", is_in, is_inside), dtype)
    return (call.add("reduce_sum", counted, axes=(0,), keepdims=False),)


# -- tensors made of numbers


def _full(value: float | None = None, shape: str = "size") -> Converter:
    def convert(call: Call) -> Results:
        """One number for all elements; in the number's type if no other one is named."""
        filled = call.get("fill_value") if value is None else value
        default = DType.F32
        if value is None:
            kinds = ((bool, DType.BOOL), (int, DType.I64), (IndexExpr, DType.I64))
            default = next((d for kind, d in kinds if isinstance(filled, kind)), DType.F32)
        if call.has("self"):
            default = call.dtype_of(call.tensor("self"))
        dtype = call.dtype(default=default)
        assert dtype is not None
        sizes = call.shape(shape, ()) if shape else call.sizes(call.tensor("self"))
        return (call.full(sizes, filled, dtype),)

    return convert


def _fill(call: Call) -> Results:
    """fill_ and zero_"""
    x = call.tensor("self")
    return (call.full(call.sizes(x), call.get("value", 0), call.dtype_of(x)),)


def _scalar(call: Call) -> Results:
    dtype = call.dtype(default=DType.F32)
    assert dtype is not None
    return (call.full((), call.get("s"), dtype),)


def _arange(call: Call) -> Results:
    """start + step * i for all i for which that is before `end`."""
    given = (call.get("start", 0), call.get("end"), call.get("step", 1))
    are_whole = not any(isinstance(each, float) for each in given)
    dtype = call.dtype(default=DType.I64 if are_whole else DType.F32)
    assert dtype is not None
    if not are_whole:
        if not all(isinstance(each, int | float) for each in given):
            raise call.unsupported("it counts up to a named size in steps that are not integers")
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
    dtype = call.dtype(default=DType.F32)
    assert dtype is not None
    numbers = np.linspace(call.real("start"), call.real("end"), steps)
    return (call.builder.constant(numbers.astype(dtype.numpy)),)


def _eye(call: Call) -> Results:
    rows = call.size("n")
    shape = (rows, call.size("m", rows))
    dtype = call.dtype(default=DType.F32)
    assert dtype is not None
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


def _size(call: Call) -> Results:
    shape = call.sizes(call.tensor("self"))
    return (_number(shape[axis_in(call.integer("dim"), len(shape))]),)


def _count(call: Call) -> Results:
    return (_number(product_of(call.sizes(call.tensor("self")))),)


def _number(size: Index) -> SizeArray:
    """A number that is no tensor."""
    return SizeArray(DType.I64, np.array(term_of(size), object))


def _item(call: Call) -> Results:
    """The element of a tensor of one element; the tensor itself stands for the number."""
    x = call.tensor("self")
    return (call.add("reshape", x, shape=()) if call.rank(x) else x,)


INDEXING: Table = (
    ("embedding", _embedding),
    ("index_select", _index_select),
    ("gather", _gather),
    ("index", _index),
    ("_unsafe_index", _index),
    ("scatter", _scatter()),
    ("scatter_add", _scatter("add")),
    ("scatter_reduce", _scatter()),
    ("index_put", _index_put),
    ("_unsafe_index_put", _index_put),
    ("slice_scatter", _slice_scatter),
    ("select_scatter", _select_scatter),
    ("diff", _diff),
    ("topk", _top_k),
    ("sort", _sort),
    ("argsort", _arg_sort),
    ("one_hot", _one_hot),
    ("histc", _histogram),
    ("full", _full()),
    ("zeros", _full(0.0)),
    ("ones", _full(1.0)),
    ("empty", _full(0.0)),
    ("new_full", _full()),
    ("new_zeros", _full(0.0)),
    ("new_ones", _full(1.0)),
    ("new_empty", _full(0.0)),
    ("full_like", _full(shape="")),
    ("zeros_like", _full(0.0, shape="")),
    ("ones_like", _full(1.0, shape="")),
    ("empty_like", _full(0.0, shape="")),
    ("fill", _fill),
    ("zero", _fill),
    ("scalar_tensor", _scalar),
    ("arange", _arange),
    ("linspace", _linspace),
    ("eye", _eye),
    ("meshgrid", _meshgrid),
    ("sym_size", _size),
    ("sym_numel", _count),
    ("item", _item),
    ("_local_scalar_dense", _item),
)
