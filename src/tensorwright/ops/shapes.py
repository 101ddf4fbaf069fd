"""Shape arithmetic that the rules of several families share."""

from __future__ import annotations

from itertools import zip_longest

from tensorwright.expr import Index, ceil_div, maximum, simplify
from tensorwright.ops.attributes import fault
from tensorwright.ops.named_sizes import are_equal, is_equal, shape_text


def broadcast_shapes(*shapes: tuple[Index, ...]) -> tuple[Index, ...]:
    """The common shape, NumPy style: aligned at the last dimension, extent 1 stretches.

    Raises:  ModelError if two extents differ and neither is 1; UnsupportedError where sizes decide.
    """
    result: list[Index] = []
    for extents in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        common, *others = dict.fromkeys(extent for extent in extents if extent != 1) or (1,)
        for other in others:
            if not is_equal(common, other) and not is_equal(common, 1) and not is_equal(other, 1):
                listed = " and ".join(map(shape_text, shapes))
                raise fault(f"shapes {listed} do not broadcast")
        result.append(common)
    return tuple(reversed(result))


def broadcasts_to(own: tuple[Index, ...], shape: tuple[Index, ...]) -> bool:
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


def window_extent(extent: Index, kernel: int, stride: int, dilation: int, pads: Index) -> Index:
    """How many windows fit: floor((extent + pads - dilation*(kernel-1) - 1) / stride) + 1."""
    return (extent + pads - dilation * (kernel - 1) - 1) // stride + 1


def automatic_pads(
    mode: str,
    extents: tuple[Index, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[Index, ...]:
    """The explicit pads (all begins, then all ends) of ONNX's auto_pad.

    SAME_UPPER and SAME_LOWER give ceil(extent / stride) windows and put the odd element last and
    first; VALID and NOTSET pad nothing.

    Raises:  ModelError for another mode.
    """
    if mode in ("VALID", "NOTSET", ""):
        return (0,) * (2 * len(extents))
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise fault(f"auto_pad is {mode!r}", "one of NOTSET, SAME_UPPER, SAME_LOWER, VALID")
    begins: list[Index] = []
    ends: list[Index] = []
    for extent, taps, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
        windows = ceil_div(extent, stride)
        needed = (windows - 1) * stride + (taps - 1) * dilation + 1
        total = simplify(maximum(needed - extent, 0), {})
        begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
        begins.append(begin)
        ends.append(total - begin)
    return (*begins, *ends)
