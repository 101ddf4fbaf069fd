"""Shape arithmetic that the rules of several families share.

Names of axes, and loads that several families share.

Positions that are constants must lie inside of what they are read from or written to.

Positions that are computed when the program runs are taken modulo the extent: nothing checks them.

Sums of narrow floats: computed in f32, rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from tensorwright import expr
from tensorwright.base import Array, Attributes, DType, TensorType
from tensorwright.ops.named_sizes import are_equal, is_certain, is_equal, shape_text, sizes_of
from tensorwright.ops.operator import (
    NARROW,
    POSITIONS_INPUT,
    Computes,
    Operator,
    Pattern,
    Tensors,
    fault,
    int_of,
)


def broadcast_shapes(*shapes: tuple[expr.Index, ...]) -> tuple[expr.Index, ...]:
    """The common shape, NumPy style: aligned at the last dimension, extent 1 stretches.

    Raises:  ModelError if two extents differ and neither is 1; UnsupportedError where sizes decide.
    """
    result: list[expr.Index] = []
    for extents in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        common, *others = dict.fromkeys(extent for extent in extents if extent != 1) or (1,)
        for other in others:
            if not is_equal(common, other) and not is_equal(common, 1) and not is_equal(other, 1):
                listed = " and ".join(map(shape_text, shapes))
                raise fault(f"shapes {listed} do not broadcast")
        result.append(common)
    return tuple(reversed(result))


def broadcasts_to(own: tuple[expr.Index, ...], shape: tuple[expr.Index, ...]) -> bool:
    """Whether a shape stretches to another one.

    Raises:  ModelError if they do not broadcast; UnsupportedError where sizes decide.
    """
    return are_equal(broadcast_shapes(own, shape), shape)


def axis_in(axis: int, rank: int, name: str = "axis") -> int:
    """The axis counted from the first dimension.

    Raises:  ModelError if there is no such dimension.
    """
    if not -rank <= axis < rank:
        raise fault(f"attribute {name} is {axis}, but there are {rank} dimensions")
    return axis % rank


def axes_in(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes counted from the first dimension, sorted.

    Raises:  ModelError if one does not exist or occurs twice.
    """
    normalized = sorted(axis_in(axis, rank, "axes") for axis in axes)
    if len(set(normalized)) < len(normalized):
        raise fault(f"attribute axes {axes} names a dimension twice")
    return tuple(normalized)


def window_extent(
    extent: expr.Index, kernel: int, stride: int, dilation: int, pads: expr.Index
) -> expr.Index:
    """How many windows fit: floor((extent + pads - dilation*(kernel-1) - 1) / stride) + 1."""
    return (extent + pads - dilation * (kernel - 1) - 1) // stride + 1


def automatic_pads(
    mode: str,
    extents: tuple[expr.Index, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[expr.Index, ...]:
    """The explicit pads (all begins, then all ends) of ONNX's auto_pad.

    SAME_UPPER and SAME_LOWER give ceil(extent / stride) windows and put the odd element last and
    first; VALID and NOTSET pad nothing.

    Raises:  ModelError for another mode.
    """
    if mode in ("VALID", "NOTSET", ""):
        return (0,) * (2 * len(extents))
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise fault(f"auto_pad is {mode!r}", "one of NOTSET, SAME_UPPER, SAME_LOWER, VALID")
    begins: list[expr.Index] = []
    ends: list[expr.Index] = []
    for extent, taps, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
        windows = expr.ceil_div(extent, stride)
        needed = (windows - 1) * stride + (taps - 1) * dilation + 1
        total = expr.simplify(expr.maximum(needed - extent, 0), {})
        begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
        begins.append(begin)
        ends.append(total - begin)
    return (*begins, *ends)


_BY_RANK = ("", "i", "ij", "bij", "nchw", "ncdhw")
SPATIAL = ((), ("w",), ("h", "w"), ("d", "h", "w"))


def axis_names(rank: int) -> tuple[str, ...]:
    """Names for the dimensions: i | i, j | b, i, j | n, c, h, w | n, c, d, h, w, by rank."""
    if rank < len(_BY_RANK):
        return tuple(_BY_RANK[rank])
    return tuple(f"i{n}" for n in range(rank))


def spatial_names(count: int) -> tuple[str, ...]:
    """Names for `count` spatial dimensions: w | h, w | d, h, w."""
    return SPATIAL[count] if count < len(SPATIAL) else tuple(f"s{n}" for n in range(count))


def stretched_indices(
    own: Sequence[expr.Index], indices: Sequence[expr.Index], shape: Sequence[expr.Index]
) -> tuple[expr.Index, ...]:
    """The indices into a shape that broadcasts to another: 0 where an extent of 1 stretches."""
    skip = len(shape) - len(own)
    return tuple(
        0 if expr.is_same(extent, 1) and not expr.is_same(wanted, 1) else index
        for extent, wanted, index in zip(own, shape[skip:], indices[skip:], strict=True)
    )


def stretched(
    tensor: expr.Tensor, indices: Sequence[expr.Index], shape: Sequence[expr.Index]
) -> expr.Load:
    """Read a tensor that broadcasts to `shape`."""
    return expr.Load(tensor, stretched_indices(tensor.shape, indices, shape))


def pointwise(
    name: str,
    tensors: Sequence[expr.Tensor],
    shape: tuple[expr.Index, ...],
    rule: Callable[..., expr.Value],
) -> expr.Compute:
    """Apply a rule to the elements of tensors that broadcast to `shape`."""

    def body(*indices: expr.Index) -> expr.Value:
        return rule(*(stretched(tensor, indices, shape) for tensor in tensors))

    return expr.compute(name, shape, body, axis_names(len(shape)))


def position_along(axis: expr.Axis) -> expr.Index:
    """The position along a reduced axis; 0 where its extent is 1, over which nothing is folded."""
    return 0 if expr.is_same(axis.extent, 1) else axis.var


def fold_over(
    fold: Callable[..., expr.Reduce], value: expr.Value, axes: Sequence[expr.Axis]
) -> expr.Value | expr.Reduce:
    """Fold over those axes whose extent is not 1."""
    folded = tuple(axis for axis in axes if not expr.is_same(axis.extent, 1))
    return fold(value, *folded) if folded else value


def padded(
    name: str,
    tensor: expr.Tensor,
    begins: Sequence[expr.Index],
    shape: Sequence[expr.Index],
    names: Sequence[str],
    fill: float | int | bool = 0,
) -> expr.Tensor:
    """The tensor inside a larger box of `shape`, moved by `begins`, with `fill` around it.

    Gives the tensor itself where nothing changes; negative begins crop.
    """
    own = tensor.shape
    if tuple(shape) == own and all(begin == 0 for begin in begins):
        return tensor

    def body(*indices: expr.Index) -> expr.Value:
        moved = tuple(index - begin for index, begin in zip(indices, begins, strict=True))
        inside = expr.all_of(
            *(
                part
                for at, begin, extent, large in zip(indices, begins, own, shape, strict=True)
                for part in (
                    is_certain(begin <= 0) or at >= begin,
                    is_certain(begin + extent >= large) or at < begin + extent,
                )
            )
        )
        value: expr.Value = expr.Load(tensor, moved)
        return expr.select(inside, value, expr.constant(fill, tensor.dtype))

    return expr.compute(name, tuple(shape), body, tuple(names))


def position_fault(
    operator: Operator, x: TensorType, positions: Array, attributes: Attributes
) -> str:
    """The message about the first position outside of x; "" where all are inside.

    operator    one that `has_positions`, which takes these inputs and complete attributes
    positions   negative ones count from the end; lengths of sequences do not
    """
    is_length = operator.inputs[POSITIONS_INPUT] == "lengths"
    along = "time_axis" if is_length else "axis"
    if along in attributes:
        axis = int_of(attributes, along)
        dimensions = range(axis % len(x.shape), axis % len(x.shape) + 1)
    else:
        first = int_of(attributes, "batch_dims") if "batch_dims" in attributes else 0
        dimensions = range(first, first + positions.shape[-1])
    if positions.size == 0:
        return ""
    rows = np.asarray(positions, np.int64).reshape(-1, len(dimensions))
    for at, dimension in enumerate(dimensions):
        extent = sizes_of(x)[dimension]
        column = rows[:, at]
        outside = np.flatnonzero(_is_outside(column, extent, is_length=is_length))
        if outside.size:
            what = "length" if is_length else "index"
            return (
                f"{what} {column[outside[0]]} is outside of dimension {dimension} of "
                f"{shape_text(sizes_of(x))}, whose extent is {extent}"
            )
    return ""


def _is_outside(
    column: NDArray[np.int64], extent: expr.Index, *, is_length: bool
) -> NDArray[np.bool_]:
    """Which positions are outside; of a named size, those that no number makes room for."""
    if isinstance(extent, int):
        low, high = (0, extent) if is_length else (-extent, extent - 1)
        return np.asarray((column < low) | (column > high))
    numbers, places = np.unique(column, return_inverse=True)
    needed = numbers if is_length else np.where(numbers < 0, -numbers, numbers + 1)
    impossible = [expr.simplify_condition(extent >= int(each), {}) is False for each in needed]
    is_outside = np.array(impossible, np.bool_) | ((numbers < 0) & is_length)
    return np.asarray(is_outside[places.reshape(-1)])


_FOLDING = frozenset((Pattern.REDUCTION, Pattern.ANCHOR, Pattern.COMPOSITE))


def in_single_precision(operator: Operator) -> Operator:
    """An operator that folds f16 or bf16 as f32: stages that convert stand before and after it.

    Sums of many f16 would overflow or lose most of their digits.  Others stay as they are.
    """
    inner = operator.meaning
    if inner is None or operator.pattern not in _FOLDING:
        return operator

    def meaning(tensors: Tensors, attributes: Attributes) -> Computes:
        narrow = next((tensor.dtype for tensor in tensors if tensor.dtype in NARROW), None)
        if narrow is None:
            return inner(tensors, attributes)
        wide = tuple(
            _converted("wide", tensor, DType.F32) if tensor.dtype in NARROW else tensor
            for tensor in tensors
        )
        return tuple(
            _converted(f"{result.name}_narrow", result, narrow)
            if result.dtype is DType.F32
            else result
            for result in inner(wide, attributes)
        )

    return replace(operator, meaning=meaning)


def _converted(name: str, tensor: expr.Tensor, dtype: DType) -> expr.Compute:
    return pointwise(name, (tensor,), tensor.shape, lambda value: expr.cast(value, dtype))
