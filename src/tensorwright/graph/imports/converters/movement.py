"""Rearrangements of whole tensors: views, transposes, repetitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from tensorwright import expr, ops
from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.folding import sizes_from


def _reshape(call: Call) -> Results:
    shape, wanted = call.sizes(0), sizes_from(call, 1, "shape")
    if not call.flag("allowzero"):
        if any(n == 0 and at >= len(shape) for at, n in enumerate(wanted)):
            text, own = ops.shape_text(wanted), ops.shape_text(shape)
            raise call.unsupported(f"its shape {text} keeps a dimension that {own} does not have")
        wanted = tuple(shape[at] if n == 0 else n for at, n in enumerate(wanted))
    return (reshaped(call, call.operand(0), wanted),)


def reshaped(call: Call, tensor: Operand, wanted: Sequence[expr.Index]) -> str:
    """A tensor in another shape, one extent of which may be -1."""
    text = ops.shape_text(wanted)
    if wanted.count(-1) > 1 or any(isinstance(n, int) and n < -1 for n in wanted):
        raise call.unsupported(f"its shape {text} leaves more than one extent open")
    if -1 in wanted:
        others = [n for n in wanted if n != -1]
        of = list(call.sizes(tensor))
        while 0 in others and 0 in of:  # what remains without them says it
            others.remove(0)
            of.remove(0)
        if 0 in others:
            raise call.unsupported(f"its shape {text} says nothing about the extent -1")
        rest = _quotient(of, others)
        wanted = tuple(rest if n == -1 else n for n in wanted)
    return call.add("reshape", tensor, shape=tuple(wanted))


def _quotient(factors: Sequence[expr.Index], divisors: Sequence[expr.Index]) -> expr.Index:
    """A product divided by another one, factor by factor where one divides the other."""
    left, below = list(factors), []
    for divisor in divisors:
        for at, factor in enumerate(left):
            quotient, rest = expr.divide_terms(factor, divisor)
            if rest == 0:
                left[at] = quotient
                break
        else:
            below.append(divisor)
    return expr.floor_div(math.prod(left), math.prod(below))


def _flatten(call: Call) -> Results:
    shape = call.sizes(0)
    axis = call.integer("axis", 1)
    if axis != len(shape):  # then all of it is one column
        axis = ops.axis_in(axis, len(shape))
    flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    return (call.add("reshape", call.tensor(0), shape=flat),)


def _with_axes(operator: str, call: Call) -> Results:
    axes = call.optional_ints(1, "axes", input_from=13)
    return (call.add(operator, call.tensor(0), axes=axes),)


def _transpose(call: Call) -> Results:
    perm = call.integers("perm", tuple(reversed(range(call.rank(0)))))
    return (call.add("transpose", call.tensor(0), perm=perm),)


def _expand(call: Call) -> Results:
    return (call.add("expand", call.tensor(0), shape=sizes_from(call, 1, "shape")),)


def _tile(call: Call) -> Results:
    return (tiled(call, call.operand(0), sizes_from(call, 1, "repeats")),)


def tiled(call: Call, x: Operand, repeats: tuple[expr.Index, ...]) -> str:
    """A tensor repeated along each dimension."""
    shape = call.sizes(x)
    if len(shape) == len(repeats) and all(1 in pair for pair in zip(shape, repeats, strict=True)):
        target = tuple(n * many for n, many in zip(shape, repeats, strict=True))
        return call.add("expand", x, shape=target)
    return call.add("tile", x, repeats=repeats)


def _space_to_depth(call: Call) -> Results | None:
    if call.text("mode", "DCR") != "DCR":
        return None
    return (call.add("space_to_depth", call.tensor(0), blocksize=call.integer("blocksize")),)


MOVEMENT: Table = (
    ("Reshape", _reshape),
    ("Flatten", _flatten),
    ("Squeeze", partial(_with_axes, "squeeze")),
    ("Unsqueeze", partial(_with_axes, "unsqueeze")),
    ("Transpose", _transpose),
    ("Expand", _expand),
    ("Tile", _tile),
    ("SpaceToDepth", _space_to_depth),
)


# -- ATen


def _view(call: Call) -> Results:
    if call.has("dtype"):
        raise call.unsupported("it reads the bytes of a tensor as another type")
    name = "size" if call.has("size") else "shape"
    return (reshaped(call, call.tensor("self"), call.shape(name, ())),)


def _aten_flatten(call: Call) -> Results:
    x = call.tensor("self")
    shape = call.sizes(x)
    if not shape:
        return (call.add("reshape", x, shape=(1,)),)
    start = call.axis(len(shape), "start_dim", 0)
    end = call.axis(len(shape), "end_dim", -1)
    joined = ops.product_of(shape[start : end + 1])
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
    perm = tuple(ops.axis_in(axis, max(rank, 1)) for axis in call.integers("dims", ()))
    return (call.add("transpose", x, perm=perm) if rank else x,)


_SWAPPED = {"t": (0, -1), "numpy_T": (0, -1), "mT": (-2, -1)}
"""The dimensions that change places; those of other operators are arguments."""


def swapped(call: Call, x: str) -> str:
    """A tensor with two dimensions in each other's places."""
    rank = call.rank(x)
    axes = _SWAPPED.get(call.operator.removesuffix("_"))
    first, second = axes or (call.axis(rank, "dim0"), call.axis(rank, "dim1"))
    perm = list(range(rank))
    if rank > 1:
        perm[first], perm[second] = perm[second], perm[first]
    return call.add("transpose", x, perm=tuple(perm)) if perm else x


def _move(call: Call) -> Results:
    x = call.tensor("self")
    rank = call.rank(x)
    sources = [ops.axis_in(axis, rank) for axis in call.integers("source")]
    targets = [ops.axis_in(axis, rank) for axis in call.integers("destination")]
    perm = [axis for axis in range(rank) if axis not in sources]
    for target, source in sorted(zip(targets, sources, strict=True)):
        perm.insert(target, source)
    return (call.add("transpose", x, perm=tuple(perm)),)


def _aten_squeeze(call: Call) -> Results:
    x = call.tensor("self")
    shape = call.sizes(x)
    axes = call.integers("dim", range(len(shape)))
    axes = tuple(ops.axis_in(axis, max(len(shape), 1)) for axis in axes)
    axes = tuple(axis for axis in axes if shape and shape[axis] == 1)
    return (call.add("squeeze", x, axes=axes) if axes else x,)


def _aten_unsqueeze(call: Call) -> Results:
    x = call.tensor("self")
    return (call.add("unsqueeze", x, axes=(call.axis(call.rank(x) + 1),)),)


def expanded(call: Call, tensor: str, sizes: Sequence[Index]) -> str:
    """A tensor repeated along dimensions of extent 1; -1 keeps an extent."""
    own = call.sizes(tensor)
    own = (*(1,) * (len(sizes) - len(own)), *own)
    target = tuple(n if wanted == -1 else wanted for n, wanted in zip(own, sizes, strict=True))
    return call.add("expand", tensor, shape=target)


def _aten_expand(call: Call) -> Results:
    return (expanded(call, call.tensor("self"), call.shape("size")),)


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
        x = call.add("reshape", x, shape=(ops.product_of(call.sizes(x)),))
    axis = call.axis(call.rank(x), default=0)
    shape = call.sizes(x)
    wide = call.add("unsqueeze", x, axes=(axis + 1,))
    wide = call.add("expand", wide, shape=(*shape[: axis + 1], many, *shape[axis + 1 :]))
    return (
        call.add("reshape", wide, shape=(*shape[:axis], shape[axis] * many, *shape[axis + 1 :])),
    )


def _pixel_shuffle(call: Call) -> Results:
    x, factor = call.tensor("self"), call.integer("upscale_factor")
    lead = call.sizes(x)[:-3]
    if len(lead) != 1:
        x = call.add("reshape", x, shape=(ops.product_of(lead), *call.sizes(x)[-3:]))
    y = call.add("depth_to_space", x, blocksize=factor, mode="CRD")
    return (y if len(lead) == 1 else call.add("reshape", y, shape=(*lead, *call.sizes(y)[1:])),)


def _triangle(call: Call, *, upper: bool) -> Results:
    x = call.tensor("self")
    dtype = call.dtype_of(x)
    wide = call.cast(x, DType.U8 if dtype is DType.BOOL else dtype)
    y = call.add("trilu", wide, upper=upper, k=call.size("diagonal", 0))
    return (call.cast(y, dtype),)


ATEN_MOVEMENT: Table = (
    ("view reshape _unsafe_view view_copy", _view),
    ("flatten", _aten_flatten),
    ("unflatten", _unflatten),
    ("permute", _permute),
    ("transpose swapaxes t numpy_T mT", lambda call: (swapped(call, call.tensor("self")),)),
    ("movedim moveaxis", _move),
    ("squeeze", _aten_squeeze),
    ("unsqueeze", _aten_unsqueeze),
    ("expand broadcast_to", _aten_expand),
    ("repeat tile", _repeat),
    ("repeat_interleave", _repeat_interleave),
    ("pixel_shuffle", _pixel_shuffle),
    ("triu", partial(_triangle, upper=True)),
    ("tril", partial(_triangle, upper=False)),
)
