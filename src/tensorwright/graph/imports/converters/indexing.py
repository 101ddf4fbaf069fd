"""Reading and writing at positions that are tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Operand, Results, Table, Tensor
from tensorwright.graph.imports.converters.windows import per_dimension
from tensorwright.graph.imports.counterparts import AT_POSITIONS, Counterpart
from tensorwright.graph.imports.folding import size_at
from tensorwright.graph.imports.formula import as_type, formula, positions
from tensorwright.ops import axis_in, product_of, shape_text, sizes_of


def _at_positions(counterpart: Counterpart, call: Call) -> Results:
    operands = (call.tensor(0), positions(call, call.operand(1)), *call.operands[2:])
    return counterpart.convert(replace(call, operands=operands))


def _one_hot(call: Call) -> Results:
    depth = size_at(call, 1, "depth")
    indices: Operand = positions(call, call.operand(0))
    axis = call.integer("axis", -1)
    return (call.add("one_hot", indices, call.tensor(2), depth=depth, axis=axis),)


def _top_k(call: Call) -> Results:
    axis = call.integer("axis", -1)
    extent = call.sizes(0)[axis_in(axis, call.rank(0))]
    k = call.integer("k") if call.opset < 10 else size_at(call, 1, "k", extent)
    if isinstance(k, expr.IndexExpr):
        k = expr.simplify(expr.minimum(k, extent), {})
    return _first_of(call, call.tensor(0), k, axis)


def _first_of(call: Call, x: str, k: Index, axis: int) -> Results:
    largest, is_sorted = (call.flag(name, default=True) for name in ("largest", "sorted"))
    return call.apply("topk", x, k=k, axis=axis, largest=largest, sorted=is_sorted)


def _write_to_cache(call: Call) -> Results:
    """TensorScatter: rows of a cache are replaced from a position of each example on."""
    cache, update = call.tensor(0), call.tensor(1)
    shape = call.sizes(0)
    axis = call.integer("axis", -2)
    if not -len(shape) <= axis < len(shape) or axis % len(shape) == 0:
        reason = f"its axis {axis} is none of the cache {shape_text(shape)} but the first"
        raise call.unsupported(reason)
    starts = positions(call, call.operand(2)) if call.has(2) else None
    is_circular = call.text("mode", "linear") == "circular"
    return (rows_written(call, cache, update, starts, axis % len(shape), is_circular=is_circular),)


def rows_written(
    call: Call,
    cache: str,
    update: str,
    starts: str | None,
    axis: int,
    *,
    is_circular: bool = False,
) -> str:
    """A cache with rows of each example replaced from a position on; the first one if None."""
    written = sizes_of(call.type_of(update))
    extent = written[axis]
    places = call.add("reshape", call.positions(extent, DType.I64), shape=(1, extent))
    if starts is not None:
        starts = call.add("unsqueeze", starts, axes=(1,))
        places = call.add("add", call.add("cast", starts, to=DType.I64), places)
    if is_circular:
        room = sizes_of(call.type_of(cache))[axis]
        places = call.add("floormod", places, call.full((), room, DType.I64))
    rows = sizes_of(call.type_of(places))[0]
    target = (rows, *(extent if at == axis else 1 for at in range(1, len(written))))
    places = call.add("expand", call.add("reshape", places, shape=target), shape=written)
    return call.add("scatter_elements", cache, places, update, axis=axis, reduction="none")


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
    ("Scatter", partial(_at_positions, Counterpart("Scatter", "scatter_elements"))),
    ("TopK", _top_k),
    ("OneHot", _one_hot),
    ("TensorScatter", _write_to_cache),
    ("Col2Im", _columns_to_image),
)


# -- ATen


def _gather(call: Call) -> Results:
    """`index` may be smaller than the tensor in the other dimensions."""
    x, index = call.tensor("self"), positions(call, call.tensor("index"))
    axis = call.axis(call.rank(x))
    for at, (own, other) in enumerate(zip(call.sizes(x), call.sizes(index), strict=True)):
        if at != axis and own != other:
            x = call.piece(x, at, 0, other)
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
    return (call.take(flat, _flat_positions(call, indices, extents), axis=first),)


def _indexed(call: Call) -> tuple[str, list[int], list[str]]:
    """The tensor, the dimensions that have positions, and the positions."""
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
            indices.append(positions(call, each.name))
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


def _scatter(call: Call, given: str = "") -> Results:
    """Values of `src`, or one number, at positions along a dimension."""
    x, index = call.tensor("self"), positions(call, call.tensor("index"))
    axis, dtype = call.axis(call.rank(x)), call.dtype_of(x)
    if call.has("src"):
        updates = call.cast(call.tensor("src"), dtype)
        for at, (own, wanted) in enumerate(
            zip(call.sizes(updates), call.sizes(index), strict=True)
        ):
            if own != wanted:
                updates = call.piece(updates, at, 0, wanted)
    else:
        updates = as_type(call, call.get("value"), dtype)
        updates = call.add("expand", updates, shape=call.sizes(index))
    asked = given or call.text("reduce", "")
    if asked and (asked not in _REDUCTIONS or not call.flag("include_self", default=True)):
        raise call.unsupported(f"its reduction {asked} is not supported")
    reduction = _REDUCTIONS[asked] if asked else "none"
    return (call.add("scatter_elements", x, index, updates, axis=axis, reduction=reduction),)


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


def _aten_top_k(call: Call) -> Results:
    x = call.tensor("self")
    return _first_of(call, x, call.size("k"), call.axis(call.rank(x), default=-1))


def _sort(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=-1)
    largest, extent = call.flag("descending"), call.sizes(x)[axis]
    return call.apply("topk", x, k=extent, axis=axis, largest=largest, sorted=True)


def _aten_one_hot(call: Call) -> Results:
    values = call.builder.constant(np.array([0, 1], np.int64))
    depth = call.size("num_classes", -1)
    if depth == -1:
        raise call.unsupported("only a call tells the number of classes; give num_classes")
    index = positions(call, call.tensor("self"))
    return (call.add("one_hot", index, values, depth=depth, axis=-1),)


def _histogram(call: Call) -> Results:
    """How many elements lie in each of `bins` equal parts of a range, the last one with its end."""
    bins, least, most = call.integer("bins", 100), call.real("min", 0.0), call.real("max", 0.0)
    if least >= most:
        raise call.unsupported("its range is that of the elements; give min and max")
    x = call.tensor("self")
    column = call.add("reshape", x, shape=(product_of(call.sizes(x)), 1))
    text = """
        at = min(floor((x - low) * scale), last)
        is_in = (at == cast(range(size=bins, start=0, step=1, dtype=whole), to=dtype))
        counted = cast(is_in & ((low <= x) & (x <= high)), to=dtype)
        reduce_sum(counted, axes=axes, keepdims=False)
        """
    names = {"low": least, "high": most, "scale": bins / (most - least), "last": bins - 1}
    types = {"dtype": call.dtype_of(x), "whole": DType.I64}
    return (formula(call, text, x=column, bins=bins, axes=(0,), **names, **types),)


ATEN_INDEXING: Table = (
    ("gather", _gather),
    ("index _unsafe_index", _index),
    ("scatter scatter_reduce", _scatter),
    ("scatter_add", partial(_scatter, given="add")),
    ("index_put _unsafe_index_put", _index_put),
    ("topk", _aten_top_k),
    ("sort", _sort),
    ("argsort", lambda call: _sort(call)[1:]),
    ("one_hot", _aten_one_hot),
    ("histc", _histogram),
)
