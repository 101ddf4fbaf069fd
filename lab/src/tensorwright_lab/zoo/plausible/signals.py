"""A family that no model is trained on: layers of networks that hear, speak and forecast.

One-dimensional convolutions with dilations of up to 4,096, strides, transposed ones; padding with
zeros, before the signal only, circular or reflected; activations as exporters write them.
"""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.plausible.drawer import Drawer, gelu_by_erf

_LENGTHS = (200, 256, 400, 500, 768, 1000, 1024, 2000, 3000, 4096, 6000, 8192, 12000, 16000)
_DILATIONS = (*(2**power for power in range(13)), 3, 9, 27, 81, 243)
_PADDINGS = ("zeros", "causal", "circular", "wrap", "reflect", "none")


def signals(net: Drawer) -> Graph:
    """Convolutions of a signal: dilated, strided or transposed, with what follows them."""
    layer = net.random.choice((_dilated, _dilated, _dilated, _strided, _enlarged, _separable))
    return layer(net)


def _dilated(net: Drawer) -> Graph:
    """A residual layer: padding, a dilated convolution, an activation or gates, a sum."""
    kernel = net.pick(2, 3, 3, 3, 5, 7)
    channels, length = _signal(net, kernel)
    x = net.input((_batch(net), channels, length))
    padding = net.random.choice(_PADDINGS)
    dilation = net.random.choice(_fitting_dilations(length, kernel))
    is_gated = net.chance(0.3)
    y = _followed(net, x, padding, dilation, kernel, 2 * channels if is_gated else channels)
    y = _gated(net, y) if is_gated else _activated(net, y)
    if net.chance(0.4):
        y = net.conv(y, channels, (1,))
    return net.finish(net.add("add", y, _end(net, x, y)) if net.chance(0.6) else y)


def _strided(net: Drawer) -> Graph:
    """A shorter signal of more channels; at times of one channel, as sound comes."""
    stride = net.pick(2, 2, 4, 5, 8)
    kernel = net.pick(stride, 2 * stride, 3, 4, 7, 10)
    channels, length = _signal(net, kernel)
    inputs = net.pick(1, 2, channels, channels, channels)
    x = net.input((_batch(net), inputs, length))
    outputs = net.random.choice((channels, min(256, 2 * channels)))
    padding = net.random.choice(("zeros", "causal", "reflect", "none"))
    return net.finish(_activated(net, _followed(net, x, padding, 1, kernel, outputs, stride)))


def _enlarged(net: Drawer) -> Graph:
    """A longer signal of fewer channels: a transposed convolution, cut or padded."""
    stride = net.pick(2, 2, 4, 5, 8)
    channels, length = _signal(net, 2)
    length = max(16, length // stride)
    x = net.input((1, channels, length))
    kernel = stride * net.pick(1, 2, 2)
    outputs = max(1, channels // net.pick(1, 2, 2))
    y = net.add(
        "conv_transpose",
        _activated(net, x, none=0.5),
        net.weight(channels, outputs, kernel, inputs=channels * kernel // stride),
        net.constant(outputs),
        strides=(stride,),
        pads=(net.pick(0, (kernel - stride) // 2),) * 2,
    )
    if net.chance(0.3):
        y = net.add("slice", y, starts=(0,), ends=(stride * length,), axes=(2,))
    return net.finish(_activated(net, y))


def _separable(net: Drawer) -> Graph:
    """A convolution of each channel, dilated, between two of single steps."""
    kernel = net.pick(3, 3, 5, 9, 15)
    channels, length = _signal(net, 2)
    x = net.input((1, channels, length))
    y = _activated(net, net.conv(x, 2 * channels, (1,)))
    dilation = net.random.choice(_fitting_dilations(length, kernel))
    padding = net.random.choice(_PADDINGS[:-1])
    y = _padded(net, y, padding, dilation * (kernel - 1))
    pad = dilation * (kernel - 1) // 2 if padding == "zeros" else 0
    y = net.conv(y, 2 * channels, (kernel,), pad=pad, groups=2 * channels, dilation=dilation)
    y = net.conv(_activated(net, y), channels, (1,))
    return net.finish(net.add("add", y, _end(net, x, y)))


def _signal(net: Drawer, kernel: int) -> tuple[int, int]:
    """Channels and length."""
    return net.fitting(
        lambda: (net.channels(256, 16), net.random.choice(_LENGTHS)),
        lambda channels, length: channels * channels * length * kernel,
    )


def _batch(net: Drawer) -> int:
    return net.pick(1, 1, 1, 1, 2, 4)


def _fitting_dilations(length: int, kernel: int) -> list[int]:
    """Those that reach no farther than the signal, which a circular one must not."""
    return [dilation for dilation in _DILATIONS if dilation * (kernel - 1) < length]


def _followed(
    net: Drawer, x: str, padding: str, dilation: int, kernel: int, outputs: int, stride: int = 1
) -> str:
    """A padded convolution, at times normalised."""
    reach = dilation * (kernel - 1)
    y = _padded(net, x, padding, reach)
    pad = reach // 2 if padding == "zeros" else 0
    y = net.conv(y, outputs, (kernel,), stride=stride, pad=pad, dilation=dilation)
    return net.channel_norm(y) if net.chance(0.15) else y


def _padded(net: Drawer, x: str, padding: str, reach: int) -> str:
    """A signal longer by `reach`, where it is not the convolution that pads."""
    before, behind = (reach, 0) if padding == "causal" else (reach // 2, reach - reach // 2)
    if padding in ("zeros", "none") or not reach:
        return x
    if padding == "circular":  # as PyTorch exports it
        length = net.shape(x)[2]
        ends = (_piece(net, x, length - before, length), _piece(net, x, 0, behind))
        parts = [part for part, extent in zip(ends, (before, behind), strict=True) if extent]
        joined = (parts[0], x, *parts[1:]) if before else (x, *parts)
        return net.add("concat", *joined, axis=2)
    mode = "constant" if padding == "causal" else padding
    return net.add("pad", x, pads=(0, 0, before, 0, 0, behind), mode=mode)


def _piece(net: Drawer, x: str, start: int, end: int) -> str:
    return net.add("slice", x, starts=(start,), ends=(end,), axes=(2,))


def _end(net: Drawer, x: str, y: str) -> str:
    """The end of a signal, as long as the tensor computed from it."""
    length, shorter = net.shape(x)[2], net.shape(y)[2]
    return x if length == shorter else _piece(net, x, length - shorter, length)


def _gated(net: Drawer, x: str) -> str:
    """Half of the channels as tanh, the other half as gates."""
    half = net.shape(x)[1] // 2
    left, right = net.builder.apply("split", (x,), sizes=(half, half), axis=1)
    return net.add("mul", net.add("tanh", left), net.add("sigmoid", right))


def _activated(net: Drawer, x: str, none: float = 0.1) -> str:
    if net.chance(none):
        return x
    return net.random.choice((_prelu, _snake, gelu_by_erf, gelu_by_erf, _any))(net, x)


def _any(net: Drawer, x: str) -> str:
    return net.activation(x, none=0.0)


def _prelu(net: Drawer, x: str) -> str:
    return net.add("prelu", x, net.constant(net.shape(x)[1], 1, low=0.0, high=0.5))


def _snake(net: Drawer, x: str) -> str:
    """x + sin(a x)^2 / a, a factor for each channel."""
    factor = net.constant(1, net.shape(x)[1], 1, low=0.5, high=2.0)
    wave = net.add("sin", net.add("mul", x, factor))
    return net.add("add", x, net.add("div", net.add("mul", wave, wave), factor))
