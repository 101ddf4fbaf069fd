"""Convolution over one, two or three spatial dimensions.

Shapes:  x (n, c, *spatial), w (oc, c/groups, *kernel), bias (oc)

`pads` holds all begins, then all ends; empty tuples stand for stride 1, no padding, dilation 1.
The kernel's extents are those of w.  ONNX's auto_pad: `automatic_pads` in shapes.py.

Stages: `<name>_pad` (only where something is padded) holds the zeros, so that the indices of the
reduction are affine; then the reduction; then `<name>_bias`.  Axes of extent 1 are not reduced
over: a depthwise convolution reduces over the kernel alone, a 1x1 convolution over the channels
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import operator, shapes
from tensorwright.ops.contraction import require_short
from tensorwright.ops.named_sizes import (
    decided,
    is_equal,
    is_multiple,
    number_of,
    shape_text,
    sizes_of,
)
from tensorwright.ops.shapes import padded


@dataclass(frozen=True, slots=True)
class Window:
    """How a window of `kernel` elements slides over some spatial dimensions."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[expr.Index, ...]

    @classmethod
    def of(cls, kernel: tuple[int, ...], attributes: Attributes) -> Window:
        """Read strides, dilations and pads.

        Raises:  ModelError for values that are not positive, or negative pads, or a wrong number
                 of them.
        """
        count = len(kernel)
        strides = operator.per_axis(attributes, "strides", count, 1)
        dilations = operator.per_axis(attributes, "dilations", count, 1)
        pads = operator.per_axis(attributes, "pads", 2 * count, 0)
        for name, values in (("kernel", kernel), ("strides", strides), ("dilations", dilations)):
            if min(values, default=1) < 1:
                raise operator.fault(f"attribute {name} {values} must be positive")
        if min(pads, default=0) < 0:
            raise operator.fault(f"attribute pads {pads} must not be negative")
        return cls(kernel, strides, dilations, pads[:count], pads[count:])

    def slots(self, shape: tuple[expr.Index, ...]) -> tuple[expr.Index, ...]:
        """The number of window positions along each dimension.

        Raises:  ModelError if the window does not fit once.
        """
        counts = tuple(
            shapes.window_extent(extent, kernel, stride, dilation, begin + end)
            for extent, kernel, stride, dilation, begin, end in zip(
                shape,
                self.kernel,
                self.strides,
                self.dilations,
                self.begins,
                self.ends,
                strict=True,
            )
        )
        if not all(decided(count >= 1) for count in counts):
            raise operator.fault(
                f"a window of {self.kernel} (dilations {self.dilations}) does not fit into "
                f"{shape_text(shape)} with pads {self.begins + self.ends}"
            )
        return counts

    def padded(self, name: str, x: expr.Tensor, fill: float | int | bool = 0) -> expr.Tensor:
        """The tensor (n, c, *spatial) with its padding."""
        batch, channels, *space = x.shape
        large = (b + n + e for b, n, e in zip(self.begins, space, self.ends, strict=True))
        names = ("n", "c", *shapes.spatial_names(len(space)))
        return padded(name, x, (0, 0, *self.begins), (batch, channels, *large), names, fill)

    def taps(self) -> tuple[expr.Axis, ...]:
        """The axes of the kernel, to be reduced over."""
        space = shapes.spatial_names(len(self.kernel))
        return tuple(expr.reduce_axis(f"k{s}", n) for s, n in zip(space, self.kernel, strict=True))

    def places(self, at: Sequence[expr.Index], taps: Sequence[expr.Axis]) -> tuple[expr.Index, ...]:
        """The indices into the padded input that the window at a position reads."""
        return tuple(
            i * stride + shapes.position_along(tap) * dilation
            for i, stride, tap, dilation in zip(at, self.strides, taps, self.dilations, strict=True)
        )


WINDOW_ATTRIBUTES = (
    operator.Attribute("strides", (), "steps between windows, per spatial dimension; empty: 1"),
    operator.Attribute("pads", (), "elements added: all begins, then all ends; empty: 0"),
    operator.Attribute("dilations", (), "steps between the elements of a window; empty: 1"),
)
GROUPS = operator.Attribute("groups", 1, "the number of independent groups of channels")


def _output_shape(x: TensorType, w: TensorType, attributes: Attributes) -> tuple[expr.Index, ...]:
    operator.require_rank("x", x, 3)
    operator.require_rank("w", w, len(x.shape), len(x.shape))
    groups = operator.int_of(attributes, "groups")
    (batch, channels, *space), (outputs, each, *kernel) = sizes_of(x), sizes_of(w)
    wanted = each * groups
    if groups < 1 or not is_equal(channels, wanted):
        taken = f"w {shape_text(sizes_of(w))} in {groups} groups takes {wanted}"
        raise operator.fault(f"input x has {channels} channels, but {taken}")
    if not is_multiple(outputs, groups):
        raise operator.fault(f"{outputs} output channels do not divide into {groups} groups")
    window = Window.of(tuple(map(number_of, kernel)), attributes)
    return (batch, outputs, *window.slots(tuple(space)))


def _infer_conv(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, w = types[:2]
    operator.require_dtype("x", x, operator.NUMBERS)
    operator.require_same_dtype(("x", "w", "bias")[: len(types)], types)
    shape = _output_shape(x, w, attributes)
    if len(types) == 3:
        operator.require_shape("bias", types[2], sizes_of(w)[:1])
    return (TensorType(x.dtype, shape),)


def convolve(
    name: str, x: expr.Tensor, w: expr.Tensor, attributes: Attributes, wide: DType | None = None
) -> expr.Compute:
    """The padding and the reduction of a convolution, in the element type `wide`."""
    shape, kernel = x.shape, w.shape
    window = Window.of(tuple(map(number_of, kernel[2:])), attributes)
    slots = window.slots(shape[2:])
    data = window.padded(f"{name}_pad", x)
    per_group = kernel[1]
    group_outputs = kernel[0] // operator.int_of(attributes, "groups")
    channel = expr.reduce_axis("ic", per_group)
    taps = window.taps()

    def body(n: expr.Index, oc: expr.Index, *at: expr.Index) -> expr.Value | expr.Reduce:
        ic = shapes.position_along(channel)
        source = expr.floor_div(oc, group_outputs) * per_group + ic
        if expr.is_same(group_outputs, kernel[0]):  # one group
            source = ic
        left: expr.Value = expr.Load(data, (n, source, *window.places(at, taps)))
        right: expr.Value = expr.Load(w, (oc, ic, *map(shapes.position_along, taps)))
        if wide is not None:
            left, right = expr.cast(left, wide), expr.cast(right, wide)
        return shapes.fold_over(expr.sum_over, left * right, (channel, *taps))

    names = ("n", "oc", *shapes.spatial_names(len(slots)))
    return expr.compute(name, (shape[0], kernel[0], *slots), body, names)


def add_bias(name: str, product: expr.Compute, bias: expr.Tensor) -> expr.Compute:
    """Add one number per channel (dimension 1)."""

    def body(n: expr.Index, oc: expr.Index, *at: expr.Index) -> expr.Value:
        return expr.Load(product, (n, oc, *at)) + expr.Load(bias, (oc,))

    return expr.compute(name, product.shape, body, tuple(axis.name for axis in product.axes))


def _conv(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    product = convolve("conv", tensors[0], tensors[1], attributes)
    if len(tensors) == 2:
        return (product,)
    return (add_bias("conv_bias", product, tensors[2]),)


def _infer_conv_integer(types: operator.Types, attributes: Attributes) -> operator.Types:
    require_short("xw", types)
    x, w = types[:2]
    shape = _output_shape(x, w, attributes)
    if len(types) > 2 and types[2].shape not in ((), (1,)):
        raise operator.fault(f"input x_zero_point has shape {types[2].shape}, not () or (1,)")
    if len(types) > 3 and types[3].shape not in ((), (1,), w.shape[:1]):
        raise operator.fault(
            f"input w_zero_point has shape {types[3].shape}, not () or ({w.shape[0]},)"
        )
    return (TensorType(DType.I32, shape),)


def _conv_integer(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, w = tensors[:2]
    if len(tensors) > 2:
        x = _without_zero_point("conv_integer_x", x, tensors[2])
    if len(tensors) > 3:
        w = _without_zero_point("conv_integer_w", w, tensors[3])
    return (convolve("conv_integer", x, w, attributes, DType.I32),)


def _without_zero_point(name: str, tensor: expr.Tensor, zero: expr.Tensor) -> expr.Compute:
    """The tensor as i32 minus its zero point: one number, or one per extent of dimension 0."""
    own = zero.shape

    def rule(value: expr.Value, point: expr.Value) -> expr.Value:
        return expr.cast(value, DType.I32) - expr.cast(point, DType.I32)

    if own in ((), (1,)):
        return shapes.pointwise(name, (tensor, zero), tensor.shape, rule)

    def body(*indices: expr.Index) -> expr.Value:
        return rule(expr.Load(tensor, indices), expr.Load(zero, indices[:1]))

    return expr.compute(name, tensor.shape, body, tuple(f"i{n}" for n in range(len(tensor.shape))))


def _scaled_kernels(
    weights: operator.Numbers, factor: operator.Numbers, _: Attributes
) -> operator.Numbers:
    """Shapes: weights (oc, c, ...), factor (oc)"""
    return weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))


CONVOLUTION_OPERATORS = (
    operator.tensor_operator(
        "conv",
        "sum over channels and kernel of x * w, plus the bias of the output channel",
        ("x", "w", "bias?"),
        (*WINDOW_ATTRIBUTES, GROUPS),
        _infer_conv,
        _conv,
        operator.Pattern.ANCHOR,
        operator.LayoutPreference.CHANNELS,
        fold=operator.Fold.WINDOWS,
        channel_scale=_scaled_kernels,
        multiplied=2,
    ),
    operator.tensor_operator(
        "conv_integer",
        "convolution of (x - x_zero_point) with (w - w_zero_point) in i32",
        ("x", "w", "x_zero_point?", "w_zero_point?"),
        (*WINDOW_ATTRIBUTES, GROUPS),
        _infer_conv_integer,
        _conv_integer,
        operator.Pattern.ANCHOR,
        operator.LayoutPreference.CHANNELS,
        fold=operator.Fold.WINDOWS,
    ),
)
