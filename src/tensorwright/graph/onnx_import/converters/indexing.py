"""Reading and writing at positions that are tensors."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import IndexExpr, minimum, simplify
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.graph.onnx_import.computed_sizes import size_at
from tensorwright.graph.onnx_import.converters.windows import per_dimension
from tensorwright.graph.onnx_import.counterparts import AT_POSITIONS, SCATTER, Counterpart
from tensorwright.ops import axis_in


def _positions(call: Call, position: int) -> Operand:
    """Indices as i32 or i64."""
    if call.type_at(position).dtype in (DType.I32, DType.I64):
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
    if isinstance(k, IndexExpr):
        k = simplify(minimum(k, extent), {})
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
    shape, written = call.shape(0), call.shape(1)
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
    shape, image = call.shape(0), call.ints(1, "image_shape")
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
    empty, dtype = (math.prod(sizes), planes), call.type_at(0).dtype
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
