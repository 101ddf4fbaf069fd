"""Attributes of sliding windows: explicit numbers out of ONNX's defaults and `auto_pad`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import Index
from tensorwright.graph.onnx_import.call import Call, Operand
from tensorwright.ops import AttributeValue, automatic_pads, number_of, shape_text


@dataclass(frozen=True, slots=True)
class Window:
    """A window over the spatial dimensions; `pads` holds all begins, then all ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def attributes(self) -> dict[str, tuple[int, ...]]:
        """The attributes of our operators, without the kernel."""
        return {"strides": self.strides, "pads": self.pads, "dilations": self.dilations}


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


def window_of(call: Call, kernel: tuple[int, ...]) -> Window:
    """The window of a convolution or a pooling whose data is input 0.

    Raises:  UnsupportedError where a size decides how much `auto_pad` pads.
    """
    window, pads = _window_and_pads(call, kernel)
    return replace(window, pads=tuple(map(number_of, pads)))


def padded_window(call: Call, kernel: tuple[int, ...], fill: float) -> tuple[str, Window]:
    """The data, input 0, and the window over it; what `auto_pad` pads where a size decides it is
    padded before, by the fill.
    """
    window, pads = _window_and_pads(call, kernel)
    numbers = tuple(pad for pad in pads if isinstance(pad, int))
    if len(numbers) == len(pads):
        return call.tensor(0), replace(window, pads=numbers)
    count = len(kernel)
    around = (0, 0, *pads[:count], 0, 0, *pads[count:])
    return call.add("pad", call.tensor(0), pads=around, value=fill), window


def _window_and_pads(call: Call, kernel: tuple[int, ...]) -> tuple[Window, tuple[Index, ...]]:
    """The window without its pads, and these."""
    count = call.rank(0) - 2
    if count < 1 or len(kernel) != count:
        shape = shape_text(call.sizes(0))
        raise call.unsupported(f"a window of {len(kernel)} dimensions does not fit data of {shape}")
    strides = per_dimension(call, "strides", count, 1)
    dilations = per_dimension(call, "dilations", count, 1)
    mode = auto_pad_of(call)
    pads = automatic_pads(mode, call.sizes(0)[2:], kernel, strides, dilations)
    if mode == "NOTSET":
        pads = call.integers("pads", ()) or pads
    return Window(kernel, strides, (0,) * 2 * count, dilations), pads


def convolve(
    call: Call,
    operator: str,
    inputs: tuple[Operand, ...],
    window: Window,
    **more: AttributeValue,
) -> str:
    """A convolution of that kind, with the groups that the node says."""
    groups = call.integer("group", 1)
    return call.add(operator, *inputs, **window.attributes, groups=groups, **more)
