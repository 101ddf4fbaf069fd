"""Short numbers that are copied before they are widened, with the terms of a product side by side.

Rewrite:  t[n, c, h, w] = f32(x[n, c, h, w])
    ->    t_rows[n, h, w, c] = x[n, c, h, w];  t[n, c, h, w] = f32(t_rows[n, h, w, c])
and for channels in blocks of 16:
          t[n, c_o, h, w, c_i] = select(p, f32(x[n, c_o, h, w, c_i]), 0)
    ->    t_rows[n, h, w, c] = select(p, x[n, c//16, h, w, c%16], 0)
          t[n, c_o, h, w, c_i] = f32(t_rows[n, h, w, c_o*16 + c_i])
A reader into which t is inlined widens what it reads of t_rows: instructions that multiply short
numbers take those.
"""

from __future__ import annotations

from functools import partial

from tensorwright import expr
from tensorwright.schedule.algorithms.implicit_gemm import Algorithm

_CHANNELS = 1
_BLOCKED_RANK = 4  # one dimension of an image, at least
_MOST_BYTES = 2  # of a short number


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
    read: expr.Value = expr.Load(rows, tuple(own))
    if read.dtype is not tensor.dtype:
        read = expr.cast(read, tensor.dtype)
    return expr.Compute(tensor.name, tensor.axes, read)


def _narrowed(value: expr.Value) -> expr.Value | None:
    """The short numbers that a value widens, or which it is; None for others."""
    if value.dtype.size_bytes <= _MOST_BYTES:
        return value
    match value:
        case expr.Cast(operand, dtype) if operand.dtype.size_bytes <= _MOST_BYTES:
            return operand if dtype.is_float else None
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
)
