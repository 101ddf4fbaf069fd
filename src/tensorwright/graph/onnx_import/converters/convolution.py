"""Convolutions and matrix products."""

from __future__ import annotations

import numpy as np

from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.graph.onnx_import.converters.windows import (
    Window,
    auto_pad_of,
    convolve,
    padded_window,
    per_dimension,
    window_of,
)
from tensorwright.ops import number_of


def _kernel(call: Call) -> tuple[int, ...]:
    kernel = tuple(map(number_of, call.sizes(1)[2:]))
    declared = call.integers("kernel_shape", kernel)
    if declared != kernel:
        raise call.unsupported(f"its kernel_shape {declared} is not that of its weights {kernel}")
    return kernel


def _conv(call: Call) -> Results:
    x, window = padded_window(call, _kernel(call), 0.0)
    return (convolve(call, "conv", (x, *call.tensors()[1:]), window),)


def _zero_points(call: Call, first: int) -> tuple[Operand, ...]:
    """The zero points that are given; one that is left out before another is a zero."""
    if not call.has(first + 1):
        return (call.operand(first),) if call.has(first) else ()
    left: Operand = np.zeros((), call.type_at(0).dtype.numpy)
    if call.has(first):
        left = call.operand(first)
    return left, call.operand(first + 1)


def _conv_integer(call: Call) -> Results:
    inputs = (call.tensor(0), call.tensor(1), *_zero_points(call, 2))
    return (convolve(call, "conv_integer", inputs, window_of(call, _kernel(call))),)


def _transposed_pads(
    call: Call,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    extra: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pads and output padding; `output_shape` and SAME_* say how large the result is and so what is
    cut off.
    """
    count = call.rank(0) - 2
    mode = auto_pad_of(call)
    if not call.given("output_shape") and mode not in ("SAME_UPPER", "SAME_LOWER"):
        pads = call.integers("pads", ()) if mode == "NOTSET" else ()
        return pads or (0,) * (2 * count), extra
    extents = call.shape(0)[2:]
    if call.given("output_shape"):
        wanted = call.integers("output_shape")[-count:]
    else:
        wanted = tuple(n * stride for n, stride in zip(extents, strides, strict=True))
    begins, ends, more = [], [], []
    for n, k, s, d, e, size in zip(extents, kernel, strides, dilations, extra, wanted, strict=True):
        total = s * (n - 1) + e + (k - 1) * d + 1 - size
        more.append(e + max(-total, 0))
        total = max(total, 0)
        begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
        begins.append(begin)
        ends.append(total - begin)
    return (*begins, *ends), tuple(more)


def _conv_transpose(call: Call) -> Results:
    kernel = _kernel(call)
    count = len(kernel)
    strides = per_dimension(call, "strides", count, 1)
    dilations = per_dimension(call, "dilations", count, 1)
    extra = per_dimension(call, "output_padding", count, 0)
    pads, extra = _transposed_pads(call, kernel, strides, dilations, extra)
    window = Window(kernel, strides, pads, dilations)
    return (convolve(call, "conv_transpose", call.tensors(), window, output_padding=extra),)


def _matmul_integer(call: Call) -> Results:
    inputs = (call.tensor(0), call.tensor(1), *_zero_points(call, 2))
    return (call.add("matmul_integer", *inputs),)


CONVOLUTION: Table = (
    ("Conv", _conv),
    ("ConvInteger", _conv_integer),
    ("ConvTranspose", _conv_transpose),
    ("MatMulInteger", _matmul_integer),
)
