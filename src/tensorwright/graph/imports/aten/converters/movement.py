"""Rearrangements: views, joining, splitting, padding."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.base import DType
from tensorwright.expr import Index, IndexExpr, ceil_div, simplify
from tensorwright.graph.imports.call import Call, Converter, Results, Table
from tensorwright.graph.imports.converters.movement import reshaped, tiled
from tensorwright.graph.imports.promotion import common_type
from tensorwright.ops import axis_in, number_of, product_of

_END = (1 << 63) - 1


def piece(call: Call, tensor: str, axis: int, start: Index, end: Index, step: int = 1) -> str:
    """tensor[start:end:step] along a dimension."""
    return call.add("slice", tensor, starts=(start,), ends=(end,), axes=(axis,), steps=(step,))


def element(call: Call, tensor: str, axis: int, index: Index) -> str:
    """One slice along a dimension, without that dimension."""
    end = _END if index == -1 else index + 1
    return call.add("squeeze", piece(call, tensor, axis, index, end), axes=(axis,))


def _view(call: Call) -> Results:
    if call.has("dtype"):
        raise call.unsupported("it reads the bytes of a tensor as another type")
    name = "size" if call.has("size") else "shape"
    return (reshaped(call, call.tensor("self"), call.shape(name, ())),)


def _view_as(call: Call) -> Results:
    return (reshaped(call, call.tensor("self"), call.sizes(call.tensor("other"))),)


def _flatten(call: Call) -> Results:
    x = call.tensor("self")
    shape = call.sizes(x)
    if not shape:
        return (call.add("reshape", x, shape=(1,)),)
    start = call.axis(len(shape), "start_dim", 0)
    end = call.axis(len(shape), "end_dim", -1)
    joined = product_of(shape[start : end + 1])
    return (call.add("reshape", x, shape=(*shape[:start], joined, *shape[end + 1 :])),)


def _unflatten(call: Call) -> Results:
    x = call.tensor("self")
    shape = call.sizes(x)
    axis = call.axis(len(shape))
    wanted = (*shape[:axis], *call.shape("sizes"), *shape[axis + 1 :])
    return (reshaped(call, x, wanted),)


def _permute(call: Call) -> Results:
    x = call.tensor("self")
    rank = call.rank(x)
    perm = tuple(axis_in(axis, max(rank, 1)) for axis in call.integers("dims", ()))
    return (call.add("transpose", x, perm=perm) if rank else x,)


def _swapped(call: Call, first: int, second: int) -> Results:
    x = call.tensor("self")
    perm = list(range(call.rank(x)))
    if len(perm) > 1:
        perm[first], perm[second] = perm[second], perm[first]
    return (call.add("transpose", x, perm=tuple(perm)) if perm else x,)


def _transpose(call: Call) -> Results:
    rank = call.rank(call.tensor("self"))
    return _swapped(call, call.axis(rank, "dim0"), call.axis(rank, "dim1"))


def _t(call: Call) -> Results:
    return _swapped(call, 0, -1)


def _last_two(call: Call) -> Results:
    return _swapped(call, -2, -1)


def _move(call: Call) -> Results:
    x = call.tensor("self")
    rank = call.rank(x)
    sources = [axis_in(axis, rank) for axis in call.integers("source")]
    targets = [axis_in(axis, rank) for axis in call.integers("destination")]
    perm = [axis for axis in range(rank) if axis not in sources]
    for target, source in sorted(zip(targets, sources, strict=True)):
        perm.insert(target, source)
    return (call.add("transpose", x, perm=tuple(perm)),)


def _squeeze(call: Call) -> Results:
    x = call.tensor("self")
    shape = call.sizes(x)
    axes = call.integers("dim", range(len(shape)))
    axes = tuple(axis_in(axis, max(len(shape), 1)) for axis in axes)
    axes = tuple(axis for axis in axes if shape and shape[axis] == 1)
    return (call.add("squeeze", x, axes=axes) if axes else x,)


def _unsqueeze(call: Call) -> Results:
    x = call.tensor("self")
    return (call.add("unsqueeze", x, axes=(call.axis(call.rank(x) + 1),)),)


def expanded(call: Call, tensor: str, sizes: Sequence[Index]) -> str:
    """A tensor repeated along dimensions of extent 1; -1 keeps an extent."""
    own = call.sizes(tensor)
    own = (*(1,) * (len(sizes) - len(own)), *own)
    target = tuple(n if wanted == -1 else wanted for n, wanted in zip(own, sizes, strict=True))
    return call.add("expand", tensor, shape=target)


def _expand(call: Call) -> Results:
    return (expanded(call, call.tensor("self"), call.shape("size")),)


def _expand_as(call: Call) -> Results:
    return (expanded(call, call.tensor("self"), call.sizes(call.tensor("other"))),)


def _repeat(call: Call) -> Results:
    x = call.tensor("self")
    repeats = call.shape("repeats" if call.has("repeats") else "dims")
    shape = call.sizes(x)
    if len(repeats) > len(shape):
        shape = (*(1,) * (len(repeats) - len(shape)), *shape)
        x = call.add("reshape", x, shape=shape)
    repeats = (*(1,) * (len(shape) - len(repeats)), *repeats)
    return (tiled(call, x, repeats),)


def _repeat_interleave(call: Call) -> Results:
    x, many = call.tensor("self"), call.size("repeats")
    if not call.has("dim"):
        x = call.add("reshape", x, shape=(product_of(call.sizes(x)),))
    axis = call.axis(call.rank(x), default=0)
    shape = call.sizes(x)
    wide = call.add("unsqueeze", x, axes=(axis + 1,))
    wide = call.add("expand", wide, shape=(*shape[: axis + 1], many, *shape[axis + 1 :]))
    return (
        call.add("reshape", wide, shape=(*shape[:axis], shape[axis] * many, *shape[axis + 1 :])),
    )


def _select(call: Call) -> Results:
    x = call.tensor("self")
    return (element(call, x, call.axis(call.rank(x)), call.size("index")),)


def _slice(call: Call) -> Results:
    x = call.tensor("self")
    axis = call.axis(call.rank(x), default=0)
    start, end = call.size("start", 0), call.size("end", _END)
    step = call.integer("step", 1)
    if (start, end, step) == (0, _END, 1) or (start == 0 and end == call.sizes(x)[axis]):
        return (x,)
    return (piece(call, x, axis, start, end, step),)


def _narrow(call: Call) -> Results:
    x = call.tensor("self")
    start = call.size("start")
    end = start + call.size("length")
    return (piece(call, x, call.axis(call.rank(x)), start, end),)


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
    axis = call.axis(call.rank(parts[0]) + 1, default=0)
    rows = [call.add("unsqueeze", each, axes=(axis,)) for each in parts]
    return (rows[0] if len(rows) == 1 else call.add("concat", *rows, axis=axis),)


def _in_parts(call: Call, x: str, axis: int, sizes: tuple[Index, ...]) -> Results:
    if len(sizes) == 1:
        return (x,)
    return call.apply("split", x, sizes=sizes, axis=axis)


def _equal_parts(extent: Index, size: Index) -> tuple[Index, ...]:
    """Parts of a size; the last one is the rest."""
    count = number_of(simplify(ceil_div(extent, size), {}))
    rest = extent - size * (count - 1)
    return (*(size,) * (count - 1), simplify(rest, {}) if isinstance(rest, IndexExpr) else rest)


def _split(call: Call) -> Results:
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
    count = number_of(call.sizes(x)[axis])
    parts = (x,) if count == 1 else call.apply("split", x, sizes=(1,) * count, axis=axis)
    return tuple(call.add("squeeze", each, axes=(axis,)) for each in parts)


def _roll(call: Call) -> Results:
    x = call.tensor("self")
    shifts, axes = call.shape("shifts"), call.integers("dims", ())
    shape = call.sizes(x)
    if not axes:
        flat = call.add("reshape", x, shape=(product_of(shape),))
        return (call.add("reshape", _rolled(call, flat, 0, shifts[0]), shape=shape),)
    for shift, axis in zip(shifts, axes, strict=True):
        x = _rolled(call, x, axis_in(axis, len(shape)), shift)
    return (x,)


def _rolled(call: Call, x: str, axis: int, shift: Index) -> str:
    extent = call.sizes(x)[axis]
    if isinstance(extent, int) and isinstance(shift, int):
        shift %= extent
    if shift == 0:
        return x
    tail = piece(call, x, axis, extent - shift, _END)
    return call.add("concat", tail, piece(call, x, axis, 0, extent - shift), axis=axis)


def _flip(call: Call) -> Results:
    x = call.tensor("self")
    axes = tuple(axis_in(axis, call.rank(x)) for axis in call.integers("dims"))
    count = len(axes)
    return (
        call.add(
            "slice",
            x,
            starts=(-1,) * count,
            ends=(-_END,) * count,
            axes=axes,
            steps=(-1,) * count,
        ),
    )


def _padded(call: Call, name: str, mode: str) -> Results:
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


def _pad(call: Call) -> Results:
    mode = call.text("mode", "constant")
    if mode not in _MODES:
        raise call.unsupported(f"its mode {mode} is not supported")
    return _padded(call, "pad", _MODES[mode])


def _pad_constant(call: Call) -> Results:
    return _padded(call, "pad", "constant")


def _pad_reflect(call: Call) -> Results:
    return _padded(call, "padding", "reflect")


def _pad_edge(call: Call) -> Results:
    return _padded(call, "padding", "edge")


def _pixel_shuffle(call: Call) -> Results:
    x, factor = call.tensor("self"), call.integer("upscale_factor")
    lead = call.sizes(x)[:-3]
    if len(lead) != 1:
        x = call.add("reshape", x, shape=(product_of(lead), *call.sizes(x)[-3:]))
    y = call.add("depth_to_space", x, blocksize=factor, mode="CRD")
    return (y if len(lead) == 1 else call.add("reshape", y, shape=(*lead, *call.sizes(y)[1:])),)


def _triangle(*, upper: bool) -> Converter:
    def convert(call: Call) -> Results:
        x = call.tensor("self")
        is_bool = call.dtype_of(x) is DType.BOOL
        wide = call.cast(x, DType.U8) if is_bool else x
        y = call.add("trilu", wide, upper=upper, k=call.size("diagonal", 0))
        return (call.cast(y, DType.BOOL) if is_bool else y,)

    return convert


def _diagonal(call: Call) -> Results:
    """The elements with equal indices in two dimensions, along a new last dimension."""
    x = call.tensor("self")
    rank = call.rank(x)
    first, second = call.axis(rank, "dim1", 0), call.axis(rank, "dim2", 1)
    rest = [axis for axis in range(rank) if axis not in (first, second)]
    x = call.add("transpose", x, perm=(*rest, first, second))
    *lead, high, wide = call.sizes(x)
    rows, columns = number_of(high), number_of(wide)
    offset = call.integer("offset", 0)
    start = offset if offset >= 0 else -offset * columns
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    flat = call.add("reshape", x, shape=(*lead, rows * columns))
    return (
        piece(call, flat, len(lead), start, start + (columns + 1) * (count - 1) + 1, columns + 1),
    )


def _unfold(call: Call) -> Results:
    """Windows along a dimension; the elements of a window lie along a new last dimension."""
    x = call.tensor("self")
    axis, size, step = (
        call.axis(call.rank(x), "dimension"),
        call.integer("size"),
        call.integer("step"),
    )
    count = (number_of(call.sizes(x)[axis]) - size) // step + 1
    taps = [piece(call, x, axis, tap, tap + (count - 1) * step + 1, step) for tap in range(size)]
    rows = [call.add("unsqueeze", each, axes=(call.rank(x),)) for each in taps]
    return (rows[0] if size == 1 else call.add("concat", *rows, axis=call.rank(x)),)


MOVEMENT: Table = (
    ("view", _view),
    ("reshape", _view),
    ("_unsafe_view", _view),
    ("view_copy", _view),
    ("view_as", _view_as),
    ("reshape_as", _view_as),
    ("flatten", _flatten),
    ("unflatten", _unflatten),
    ("permute", _permute),
    ("transpose", _transpose),
    ("swapaxes", _transpose),
    ("t", _t),
    ("numpy_T", _t),
    ("mT", _last_two),
    ("movedim", _move),
    ("moveaxis", _move),
    ("squeeze", _squeeze),
    ("unsqueeze", _unsqueeze),
    ("expand", _expand),
    ("broadcast_to", _expand),
    ("expand_as", _expand_as),
    ("repeat", _repeat),
    ("tile", _repeat),
    ("repeat_interleave", _repeat_interleave),
    ("select", _select),
    ("slice", _slice),
    ("narrow", _narrow),
    ("cat", _cat),
    ("concat", _cat),
    ("concatenate", _cat),
    ("stack", _stack),
    ("split", _split),
    ("split_with_sizes", _split),
    ("chunk", _chunk),
    ("unsafe_chunk", _chunk),
    ("unsafe_split", _split),
    ("unbind", _unbind),
    ("roll", _roll),
    ("flip", _flip),
    ("pad", _pad),
    ("constant_pad_nd", _pad_constant),
    *((f"reflection_pad{n}d", _pad_reflect) for n in (1, 2, 3)),
    *((f"replication_pad{n}d", _pad_edge) for n in (1, 2, 3)),
    ("pixel_shuffle", _pixel_shuffle),
    ("triu", _triangle(upper=True)),
    ("tril", _triangle(upper=False)),
    ("diagonal", _diagonal),
    ("unfold", _unfold),
)
