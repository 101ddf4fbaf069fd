"""Attributes of sliding windows: explicit numbers out of ONNX's defaults and `auto_pad`."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.graph.onnx_import.call import Call


@dataclass(frozen=True, slots=True)
class Window:
    """A window over the spatial dimensions; `pads` holds all begins, then all ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]


def auto_pad_of(call: Call) -> str:
    """NOTSET, VALID, SAME_UPPER or SAME_LOWER."""
    mode = call.text("auto_pad", "NOTSET") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.unsupported(f"its auto_pad is {mode}")
    return mode


def per_dimension(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    """A list attribute with one number per spatial dimension."""
    values = call.integers(name, (default,) * count) or (default,) * count
    if len(values) != count:
        raise call.unsupported(
            f"its attribute {name} {values} has {len(values)} values, not {count}"
        )
    return values


def same_pads(
    mode: str,
    extents: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[int, ...]:
    """The pads that give ceil(extent / stride) windows; SAME_UPPER puts the odd element last."""
    begins, ends = [], []
    for extent, taps, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
        windows = -(-extent // stride)
        total = max((windows - 1) * stride + (taps - 1) * dilation + 1 - extent, 0)
        begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
        begins.append(begin)
        ends.append(total - begin)
    return (*begins, *ends)


def window_of(call: Call, kernel: tuple[int, ...]) -> Window:
    """The window of a convolution or a pooling whose data is input 0."""
    count = call.rank(0) - 2
    if count < 1 or len(kernel) != count:
        shape = call.shape(0)
        raise call.unsupported(f"a window of {len(kernel)} dimensions does not fit data of {shape}")
    strides = per_dimension(call, "strides", count, 1)
    dilations = per_dimension(call, "dilations", count, 1)
    mode = auto_pad_of(call)
    if mode == "NOTSET":
        pads = call.integers("pads", (0,) * (2 * count)) or (0,) * (2 * count)
    elif mode == "VALID":
        pads = (0,) * (2 * count)
    else:
        pads = same_pads(mode, call.shape(0)[2:], kernel, strides, dilations)
    return Window(kernel, strides, pads, dilations)
