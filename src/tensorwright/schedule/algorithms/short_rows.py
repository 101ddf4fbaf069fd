"""Short numbers that are copied before they are widened, with the terms of a product side by side.

Rewrite:  t[n, c, h, w] = f32(x[n, c, h, w])
    ->    t_rows[n, h, w, c] = x[n, c, h, w];  t[n, c, h, w] = f32(t_rows[n, h, w, c])
and for channels in blocks of 16:
          t[n, c_o, h, w, c_i] = select(p, f32(x[n, c_o, h, w, c_i]), 0)
    ->    t_rows[n, h, w, c] = select(p, x[n, c//16, h, w, c%16], 0)
          t[n, c_o, h, w, c_i] = f32(t_rows[n, h, w, c_o*16 + c_i])
and for few channels, with p the next multiple of 4, and one sum over the taps of a row of a window:
    ->    t_pixels[n, h, v] = select(v%p < C, x[n, v%p, h, v//p], 0)
          t[n, c, h, w] = f32(t_pixels[n, h, w*p + c])
          y[o, w] = sum over kw, c of f32(t_pixels[(w + kw)*p + c]) * f32(g[o, c, kw])
    ->    y_weights[o, k] = select(k%p < C, g[o, k%p, k//p], 0)
          y[o, w] = sum over k of f32(t_pixels[w*p + k]) * f32(y_weights[o, k])
A reader into which t is inlined widens what it reads of t_rows: instructions that multiply short
numbers take those.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.schedule.algorithms.implicit_gemm import Algorithm

_CHANNELS = 1
_BLOCKED_RANK = 4  # one dimension of an image, at least
_MOST_BYTES = 2  # of a short number
_ALIGNED = 4  # channels of a pixel: whole groups of terms of any instruction
_FACTORS = 2


def _rewrite(tensor: expr.Compute, *, moves: bool, joins: bool) -> expr.Compute | None:
    """The tensor by rows; None if it folds, its numbers are not short, or it has no such channels.

    moves   the channels behind the other axes    joins   them with the last axis, a block of them
    """
    short = None if tensor.reduction is not None else _narrowed(tensor.body)
    axes = list(tensor.axes)
    least = _BLOCKED_RANK if joins else _BLOCKED_RANK - 1
    is_named = expr.named_sizes_of(*(axis.extent for axis in axes))
    if short is None or is_named or (moves and len(axes) < least):
        return None
    own: list[expr.Index] = [axis.var for axis in axes]
    if moves:
        channels = axes.pop(_CHANNELS)
        own.append(own.pop(_CHANNELS))
        if joins:
            block = axes.pop()
            both = expr.Axis(expr.Var("c"), channels.length * block.length)
            own[-2:] = [channels.var * block.length + block.var]
            parts = {
                channels.var: expr.floor_div(both.var, block.length),
                block.var: expr.mod(both.var, block.length),
            }
            short = expr.substitute_value(short, parts)
            channels = both
        axes.append(channels)
    rows = expr.Compute(f"{tensor.name}_rows", tuple(axes), short)
    read = _cast(expr.Load(rows, tuple(own)), tensor.dtype)
    return expr.Compute(tensor.name, tensor.axes, read)


def _pixels(tensor: expr.Compute) -> expr.Compute | None:
    """A tensor of an image by pixels, whose channels lie side by side; None as in `_rewrite`."""
    short = None if tensor.reduction is not None else _narrowed(tensor.body)
    axes = list(tensor.axes)
    is_named = expr.named_sizes_of(*(axis.extent for axis in axes))
    if short is None or is_named or len(axes) < _BLOCKED_RANK - 1:
        return None
    channels, across = axes.pop(_CHANNELS), axes.pop()
    apart = -(-channels.length // _ALIGNED) * _ALIGNED
    both = expr.Axis(expr.Var("v"), across.length * apart)
    channel = expr.mod(both.var, apart)
    digits = {channels.var: channel, across.var: expr.floor_div(both.var, apart)}
    inside = expr.substitute_value(short, digits)
    body = expr.select(channel < channels.length, inside, expr.constant(0, short.dtype))
    pixels = expr.Compute(f"{tensor.name}_pixels", (*axes, both), body)
    at = (*(axis.var for axis in axes), across.var * apart + channels.var)
    return expr.Compute(tensor.name, tensor.axes, _cast(expr.Load(pixels, at), tensor.dtype))


def _joined_taps(tensor: expr.Compute) -> expr.Compute | None:
    """A sum of products over one axis for the taps of a row and the channels of pixels; None for
    others.
    """
    factors = tuple(expr.factors_of(tensor.body))
    if tensor.reduction is None or len(factors) != _FACTORS:
        return None
    for data, weights in (factors, factors[::-1]):
        load, short = _narrowed(data), _narrowed(weights)
        pair = _joinable(tensor, load) if isinstance(load, expr.Load) else None
        if pair is None or short is None or not isinstance(load, expr.Load):
            continue
        tap, channel, apart = pair
        joined = expr.Axis(expr.Var("k"), _joined_length(load, pair))
        digits = {
            tap.var: expr.floor_div(joined.var, apart),
            channel.var: expr.mod(joined.var, apart),
        }
        others = [axis for axis in tensor.reduce_axes if axis not in (tap, channel)]
        used = frozenset().union(*(expr.free_vars(*each.indices) for each in expr.loads_of(short)))
        own = [axis for axis in (*tensor.axes, *others) if axis.var in used]
        inside = expr.substitute_value(short, digits)
        exists = digits[channel.var] < channel.length
        body = expr.select(exists, inside, expr.constant(0, short.dtype))
        filled = expr.Compute(f"{tensor.name}_weights", (*own, joined), body)
        read = expr.Load(filled, tuple(axis.var for axis in filled.axes))
        last = load.indices[-1] - tap.var * apart - channel.var + joined.var
        moved = expr.Load(load.source, (*load.indices[:-1], last))
        product = _cast(moved, data.dtype) * _cast(read, weights.dtype)
        reduction = replace(tensor.reduction, axes=(joined, *others))
        return expr.Compute(tensor.name, tensor.axes, product, reduction)
    return None


def _joinable(tensor: expr.Compute, load: expr.Load) -> tuple[expr.Axis, expr.Axis, int] | None:
    """The axes of a sum along which a read moves by a distance, and by one inside of that."""
    steps = dict(expr.terms_of(load.indices[-1])) if load.indices else {}
    moving = [(axis, steps.get((axis.var,), 0)) for axis in tensor.reduce_axes]
    others = expr.free_vars(*load.indices[:-1])
    for channel in (axis for axis, step in moving if step == 1 and axis.var not in others):
        for tap, apart in moving:
            if apart >= channel.length and tap is not channel and tap.var not in others:
                return tap, channel, apart
    return None


def _joined_length(load: expr.Load, pair: tuple[expr.Axis, expr.Axis, int]) -> int:
    """From the first channel of the first tap to the last one of the last, whole groups of channels
    where rows consist of these: nothing is read behind a row.
    """
    tap, channel, apart = pair
    aligned = -(-channel.length // _ALIGNED) * _ALIGNED
    extents = apart, load.source.shape[-1]
    is_whole = all(isinstance(n, int) and n % aligned == 0 for n in extents)
    return (tap.length - 1) * apart + (aligned if is_whole else channel.length)


def _cast(value: expr.Value, dtype: DType) -> expr.Value:
    return value if value.dtype is dtype else expr.cast(value, dtype)


def _narrowed(value: expr.Value) -> expr.Value | None:
    """The short numbers that a value widens, or which it is; None for others."""
    if value.dtype.size_bytes <= _MOST_BYTES:
        return value
    match value:
        case expr.Cast(operand) if operand.dtype.size_bytes <= _MOST_BYTES:
            return operand
        case expr.Select(condition, then, expr.Const(0.0)):
            inside = _narrowed(then)
            if inside is None:
                return None
            return expr.select(condition, inside, expr.constant(0, inside.dtype))
    return None


SHORT_ROWS = (
    Algorithm("short_rows", partial(_rewrite, moves=False, joins=False), rounds=False),
    Algorithm("channels_last", partial(_rewrite, moves=True, joins=False), rounds=False),
    Algorithm("blocks_last", partial(_rewrite, moves=True, joins=True), rounds=False),
    Algorithm("pixels", _pixels, rounds=False),
    Algorithm("joined_taps", _joined_taps, rounds=False),
)
