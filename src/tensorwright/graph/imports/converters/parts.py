"""Parts of tensors: split, sliced, joined, padded, replaced."""

from __future__ import annotations

from functools import partial

from tensorwright import expr, ops
from tensorwright.base import DType
from tensorwright.expr import Index, IndexExpr, ceil_div, simplify
from tensorwright.graph.imports.call import Call, Results, Table
from tensorwright.graph.imports.converters.selecting import computed_slice
from tensorwright.graph.imports.folding import numbers, size_from, sizes_from
from tensorwright.graph.imports.formula import common_type


def _split(call: Call) -> Results:
    axis = ops.axis_in(call.integer("axis", 0), call.rank(0))
    extent = call.sizes(0)[axis]
    sizes: tuple[expr.Index, ...]
    if call.opset >= 13 and call.has(1):
        sizes = _parts(call, extent)
    else:
        sizes = call.integers("split", ()) if call.opset < 13 else ()
    if not sizes:
        count = call.integer("num_outputs", len(call.wanted))
        if count != len(call.wanted):
            raise call.unsupported(f"it names {len(call.wanted)} outputs and asks for {count}")
        size = expr.ceil_div(extent, count)
        sizes = tuple(
            expr.simplify(expr.maximum(expr.minimum(size, extent - size * at), 0), {})
            for at in range(count)
        )
    if len(sizes) != len(call.wanted):
        raise call.unsupported(f"it names {len(call.wanted)} outputs for {len(sizes)} parts")
    return call.apply("split", call.tensor(0), sizes=sizes, axis=axis)


def _parts(call: Call, extent: expr.Index) -> tuple[expr.Index, ...]:
    """The sizes of the parts of a Split; the last one is the rest where it is computed."""
    given = numbers(call, 1, "split")
    if not isinstance(given[-1], str):
        return sizes_from(call, 1, "split", extent)
    parts = [
        size_from(call, each, extent, str(at)) if isinstance(each, str) else each
        for at, each in enumerate(given[:-1])
    ]
    return (*parts, extent - sum(parts))


def _slice(call: Call) -> Results:
    starts: tuple[expr.Index | str, ...]
    ends: tuple[expr.Index | str, ...]
    if call.opset < 10:
        starts, ends = call.integers("starts"), call.integers("ends")
        axes, steps = call.integers("axes", ()), tuple[int, ...]()
    else:
        starts, ends = numbers(call, 1, "starts"), numbers(call, 2, "ends")
        axes = call.ints(3, "axes") if call.has(3) else ()
        steps = call.ints(4, "steps") if call.has(4) else ()
    axes = axes or tuple(range(len(starts)))
    steps = steps or (1,) * len(starts)
    fixed = [
        (start, end, axis, step)
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True)
        if not isinstance(start, str) and not isinstance(end, str)
    ]
    x = call.tensor(0)
    if fixed or not starts:
        left = tuple(zip(*fixed, strict=True)) or ((),) * 4
        x = call.add("slice", x, starts=left[0], ends=left[1], axes=left[2], steps=left[3])
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if isinstance(start, str) or isinstance(end, str):
            x = computed_slice(call, x, ops.axis_in(axis, call.rank(0)), start, end, step)
    return (x,)


def _pad(call: Call) -> Results:
    rank = call.rank(0)
    mode = call.text("mode", "constant")
    value: float
    pads: tuple[expr.Index, ...]
    if call.opset < 11:
        pads, value = call.integers("pads"), call.real("value", 0.0)
    else:
        pads = sizes_from(call, 1, "pads")
        value = call.scalar(2, "constant_value") if call.has(2) else 0.0
    if call.opset >= 18 and call.has(3):
        axes = tuple(ops.axis_in(axis, rank, "axes") for axis in call.ints(3, "axes"))
        if len(set(axes)) < len(axes):
            raise call.unsupported(f"its axes {axes} name a dimension twice")
        if len(pads) != 2 * len(axes):
            raise call.unsupported(f"its {len(pads)} pads do not fit {len(axes)} axes")
        begins = dict(zip(axes, pads, strict=False))
        ends = dict(zip(axes, pads[len(axes) :], strict=True))
        pads = tuple(each.get(axis, 0) for each in (begins, ends) for axis in range(rank))
    return (call.add("pad", call.tensor(0), pads=pads, mode=mode, value=value),)


PARTS: Table = (
    ("Split", _split),
    ("Slice", _slice),
    ("Pad", _pad),
)


# -- ATen


_END = (1 << 63) - 1


def element(call: Call, tensor: str, axis: int, index: Index) -> str:
    """One slice along a dimension, without that dimension."""
    end = _END if index == -1 else index + 1
    return call.add("squeeze", call.piece(tensor, axis, index, end), axes=(axis,))


def _select(call: Call) -> Results:
    x = call.tensor("self")
    return (element(call, x, call.axis(call.rank(x)), call.size("index")),)


def _aten_slice(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=0)
    start, end = call.size("start", 0), call.size("end", _END)
    step = call.integer("step", 1)
    if (start, end, step) == (0, _END, 1) or (start == 0 and end == call.sizes(x)[axis]):
        return (x,)
    return (call.piece(x, axis, start, end, step),)


def _narrow(call: Call) -> Results:
    x = call.tensor("self")
    start = call.size("start")
    end = start + call.size("length")
    return (call.piece(x, call.axis(call.rank(x)), start, end),)


def _joined_type(call: Call, name: str) -> list[str]:
    given = call.get(name)
    assert isinstance(given, tuple)
    dtype = common_type(call, given)
    return [call.cast(each, dtype) for each in call.tensors(name)]


def _cat(call: Call) -> Results:
    parts = _joined_type(call, "tensors")
    if any(call.rank(each) > 1 for each in parts):  # PyTorch ignores empty vectors beside matrices
        parts = [each for each in parts if call.sizes(each) != (0,)]
    axis = call.axis(call.rank(parts[0]), default=0)
    return (parts[0] if len(parts) == 1 else call.add("concat", *parts, axis=axis),)


def _stack(call: Call) -> Results:
    parts = _joined_type(call, "tensors")
    return (call.stack(parts, call.axis(call.rank(parts[0]) + 1, default=0)),)


def _in_parts(call: Call, x: str, axis: int, sizes: tuple[Index, ...]) -> Results:
    if len(sizes) == 1:
        return (x,)
    return call.apply("split", x, sizes=sizes, axis=axis)


def _equal_parts(extent: Index, size: Index) -> tuple[Index, ...]:
    """Parts of a size; the last one is the rest."""
    count = ops.number_of(simplify(ceil_div(extent, size), {}))
    rest = extent - size * (count - 1)
    return (*(size,) * (count - 1), simplify(rest, {}) if isinstance(rest, IndexExpr) else rest)


def _aten_split(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=0)
    name = "split_sizes" if call.has("split_sizes") else "split_size"
    if isinstance(call.get(name), tuple):
        return _in_parts(call, x, axis, call.shape(name))
    return _in_parts(call, x, axis, _equal_parts(call.sizes(x)[axis], call.size(name)))


def _chunk(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=0)
    extent = call.sizes(x)[axis]
    size = simplify(ceil_div(extent, call.integer("chunks")), {})
    return _in_parts(call, x, axis, _equal_parts(extent, size))


def _unbind(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=0)
    count = ops.number_of(call.sizes(x)[axis])
    parts = (x,) if count == 1 else call.apply("split", x, sizes=(1,) * count, axis=axis)
    return tuple(call.add("squeeze", each, axes=(axis,)) for each in parts)


def _roll(call: Call) -> Results:
    x = call.tensor("self")
    shifts, axes = call.shape("shifts"), call.integers("dims", ())
    shape = call.sizes(x)
    if not axes:
        flat = call.add("reshape", x, shape=(ops.product_of(shape),))
        return (call.add("reshape", _rolled(call, flat, 0, shifts[0]), shape=shape),)
    for shift, axis in zip(shifts, axes, strict=True):
        x = _rolled(call, x, ops.axis_in(axis, len(shape)), shift)
    return (x,)


def _rolled(call: Call, x: str, axis: int, shift: Index) -> str:
    extent = call.sizes(x)[axis]
    if isinstance(extent, int) and isinstance(shift, int):
        shift %= extent
    if shift == 0:
        return x
    tail = call.piece(x, axis, extent - shift, _END)
    return call.add("concat", tail, call.piece(x, axis, 0, extent - shift), axis=axis)


def _flip(call: Call) -> Results:
    x = call.tensor("self")
    axes = tuple(ops.axis_in(axis, call.rank(x)) for axis in call.integers("dims"))
    count = len(axes)
    back = (-1,) * count
    return (call.add("slice", x, starts=back, ends=(-_END,) * count, axes=axes, steps=back),)


def _padded(name: str, mode: str, call: Call) -> Results:
    """The argument has a pair of begin and end for each dimension, the last one first."""
    x, given = call.tensor("self"), call.shape(name)
    rank = call.rank(x)
    begins: list[Index] = [0] * rank
    ends: list[Index] = [0] * rank
    for at in range(len(given) // 2):
        begins[rank - 1 - at], ends[rank - 1 - at] = given[2 * at : 2 * at + 2]
    value = call.real("value", 0.0) if mode == "constant" else 0.0
    return (call.add("pad", x, pads=(*begins, *ends), mode=mode, value=value),)


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _aten_pad(call: Call) -> Results:
    mode = call.text("mode", "constant")
    if mode not in _MODES:
        raise call.unsupported(f"its mode {mode} is not supported")
    return _padded("pad", _MODES[mode], call)


def _diagonal(call: Call) -> Results:
    """The elements with equal indices in two dimensions, along a new last dimension."""
    x = call.tensor("self")
    rank = call.rank(x)
    first, second = call.axis(rank, "dim1", 0), call.axis(rank, "dim2", 1)
    rest = [axis for axis in range(rank) if axis not in (first, second)]
    x = call.add("transpose", x, perm=(*rest, first, second))
    *lead, high, wide = call.sizes(x)
    rows, columns = ops.number_of(high), ops.number_of(wide)
    offset = call.integer("offset", 0)
    start = offset if offset >= 0 else -offset * columns
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    flat = call.add("reshape", x, shape=(*lead, rows * columns))
    return (
        call.piece(flat, len(lead), start, start + (columns + 1) * (count - 1) + 1, columns + 1),
    )


def _unfold(call: Call) -> Results:
    """Windows along a dimension; the elements of a window lie along a new last dimension."""
    x = call.tensor("self")
    axis = call.axis(call.rank(x), "dimension")
    size, step = call.integer("size"), call.integer("step")
    count = (ops.number_of(call.sizes(x)[axis]) - size) // step + 1
    taps = [call.piece(x, axis, tap, tap + (count - 1) * step + 1, step) for tap in range(size)]
    return (call.stack(taps, call.rank(x)),)


def replaced(call: Call, x: str, source: str, axis: int, start: Index, end: Index) -> str:
    """A tensor with x[start:end] along a dimension replaced."""
    extent = call.sizes(x)[axis]
    parts = [source]
    if start != 0:
        parts.insert(0, call.piece(x, axis, 0, start))
    if end != extent:
        parts.append(call.piece(x, axis, end, _END))
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


def _select_scatter(call: Call) -> Results:
    x, source = call.tensor("self"), call.tensor("src")
    axis, index = call.axis(call.rank(x)), call.size("index")
    if isinstance(index, int) and index < 0:
        index = index + call.sizes(x)[axis]
    source = call.cast(call.add("unsqueeze", source, axes=(axis,)), call.dtype_of(x))
    return (replaced(call, x, source, axis, index, index + 1),)


def _diff(call: Call) -> Results:
    """x[1:] - x[:-1] along a dimension, `n` times."""
    given = [call.tensor(name) for name in ("prepend", "self", "append") if call.has(name)]
    axis = call.axis(call.rank(call.tensor("self")), default=-1)
    x = given[0] if len(given) == 1 else call.add("concat", *given, axis=axis)
    minus = "xor" if call.dtype_of(x) is DType.BOOL else "sub"
    for _ in range(call.integer("n", 1)):
        last = call.sizes(x)[axis] - 1
        x = call.add(minus, call.piece(x, axis, 1, _END), call.piece(x, axis, 0, last))
    return (x,)


ATEN_PARTS: Table = (
    ("select", _select),
    ("slice", _aten_slice),
    ("narrow", _narrow),
    ("cat concat concatenate", _cat),
    ("stack", _stack),
    ("split split_with_sizes unsafe_split", _aten_split),
    ("chunk unsafe_chunk", _chunk),
    ("unbind", _unbind),
    ("roll", _roll),
    ("flip", _flip),
    ("pad", _aten_pad),
    ("constant_pad_nd", partial(_padded, "pad", "constant")),
    ("reflection_pad1d reflection_pad2d reflection_pad3d", partial(_padded, "padding", "reflect")),
    ("replication_pad1d replication_pad2d replication_pad3d", partial(_padded, "padding", "edge")),
    ("diagonal", _diagonal),
    ("unfold", _unfold),
    ("slice_scatter", _slice_scatter),
    ("select_scatter", _select_scatter),
    ("diff", _diff),
)
