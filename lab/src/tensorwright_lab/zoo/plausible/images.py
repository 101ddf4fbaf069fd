"""Families of networks that see: convolutions and what stands around them."""

from __future__ import annotations

import math

from tensorwright.graph import Graph
from tensorwright_lab.zoo.plausible.drawer import Drawer

_KERNELS = (1, 1, 1, 3, 3, 3, 3, 5, 7)


def convolutions(net: Drawer) -> Graph:
    """Convolutions with normalisation and activation in a row, at times with a sum or a pool."""
    kernel = net.pick(*_KERNELS)
    inputs, outputs, height, width = net.fitting(
        lambda: (net.channels(), net.channels(), *net.image()),
        lambda c, o, h, w: c * o * h * w * kernel**2,
    )
    x = net.input((net.batch() if inputs * height < 4096 else 1, inputs, height, width))
    stride = net.pick(1, 1, 1, 2) if height > 7 else 1
    y = _conv(net, x, outputs, kernel, stride)
    if net.chance(0.5):
        y = _conv(net, y, net.channels(outputs + 8), net.pick(1, 3), 1)
    if net.chance(0.3):
        other = net.input(net.shape(y))
        y = net.activation(net.add("add", y, other), none=0.4)
    if net.chance(0.2):
        y = pooled(net, y)
    return net.finish(y)


def _conv(net: Drawer, x: str, outputs: int, kernel: int, stride: int) -> str:
    is_wide = kernel > 1 and min(net.shape(x)[2:]) >= 8 and net.chance(0.15)
    y = net.conv(
        x,
        outputs,
        (kernel, kernel),
        stride=stride,
        dilation=net.pick(2, 3) if is_wide else 1,
        bias=net.chance(0.6),
    )
    return net.activation(net.channel_norm(y) if net.chance(0.3) else y)


def pooled(net: Drawer, x: str) -> str:
    """Windows of a kind that networks have, or the whole image."""
    size = min(net.shape(x)[2:])
    if size < 8 or net.chance(0.25):
        y = net.add("global_average_pool", x)
        return net.add("reshape", y, shape=net.shape(y)[:2]) if net.chance(0.5) else y
    kernel, stride, pad = ((2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 1, 2))[net.pick(0, 1, 2, 3)]
    operator = "max_pool" if net.chance(0.6) else "average_pool"
    return net.add(operator, x, kernel=(kernel,) * 2, strides=(stride,) * 2, pads=(pad,) * 4)


def pools(net: Drawer) -> Graph:
    """A pool by itself, after an activation, or beside others whose results are joined."""
    channels, height, width = net.fitting(
        lambda: (net.channels(), *net.image()), lambda c, h, w: 25.0 * c * h * w
    )
    x = net.input((net.batch(), channels, height, width))
    if net.chance(0.2) and height >= 8 and width >= 8:
        parts = [x]
        for kernel in (5, 5, 5):
            part = net.add(
                "max_pool", parts[-1], kernel=(kernel,) * 2, strides=(1, 1), pads=(2,) * 4
            )
            parts.append(part)
        return net.finish(net.add("concat", *parts, axis=1))
    return net.finish(pooled(net, net.activation(x, none=0.5)))


def inverted_residual(net: Drawer) -> Graph:
    """Widen, convolve each channel alone, maybe squeeze and excite, narrow, add."""
    inputs, height, width = net.fitting(
        lambda: (net.channels(192, 8), *net.image(112)), lambda c, h, w: 6.0 * c * c * h * w
    )
    x = net.input((1, inputs, height, width))
    hidden = inputs * net.pick(1, 2, 4, 6)
    y = net.activation(net.conv(x, hidden, (1, 1)))
    kernel = net.pick(3, 3, 5, 7)
    stride = net.pick(1, 1, 2)
    y = net.activation(net.conv(y, hidden, (kernel, kernel), groups=hidden, stride=stride))
    if net.chance(0.4):
        y = excited(net, y)
    y = net.conv(y, inputs, (1, 1))
    if stride == 1:
        y = net.add("add", x, y)
    return net.finish(y)


def excited(net: Drawer, x: str) -> str:
    """Squeeze and excite: channels are scaled by what their means say."""
    channels = net.shape(x)[1]
    y = (
        net.add("global_average_pool", x)
        if net.chance(0.5)
        else net.add("reduce_mean", x, axes=(2, 3))
    )
    inner = max(1, channels // net.pick(4, 8, 16))
    y = net.activation(net.conv(y, inner, (1, 1)), none=0.0)
    gate = "hard_sigmoid" if net.chance(0.4) else "sigmoid"
    return net.add("mul", x, net.add(gate, net.conv(y, channels, (1, 1))))


def excitation(net: Drawer) -> Graph:
    """Squeeze and excite after a convolution; or attention over places."""
    channels, height, width = net.fitting(
        lambda: (net.channels(384, 8), *net.image(112)), lambda c, h, w: c * c * h * w
    )
    x = net.input((1, channels, height, width))
    if net.chance(0.6):
        return net.finish(excited(net, net.activation(net.conv(x, channels, (1, 1)))))
    mean = net.add("reduce_mean", x, axes=(1,))
    most = net.add("reduce_max", x, axes=(1,))
    both = net.add("concat", mean, most, axis=1)
    gate = net.add("sigmoid", net.conv(both, 1, (7, 7), bias=False))
    return net.finish(net.add("mul", x, gate))


def depthwise_rows(net: Drawer) -> Graph:
    """A wide depthwise convolution, then a network over channels that lie last."""
    channels, height, width = net.fitting(
        lambda: (net.channels(512, 16), *net.image(64)), lambda c, h, w: 4.0 * c * c * h * w
    )
    x = net.input((1, channels, height, width))
    kernel = net.pick(3, 5, 7, 7)
    y = net.conv(x, channels, (kernel, kernel), groups=channels)
    y = net.row_norm(net.add("transpose", y, perm=(0, 2, 3, 1)))
    y = net.linear(net.activation(net.linear(y, 4 * channels), none=0.0), channels)
    if net.chance(0.6):
        y = net.add("mul", y, net.constant(channels))
    return net.finish(net.add("add", x, net.add("transpose", y, perm=(0, 3, 1, 2))))


def group_normalised(net: Drawer) -> Graph:
    """Convolutions with group or instance normalisation, as a node or as exporters write it."""
    groups = net.pick(1, 2, 4, 8, 16, 32)
    kernel = net.pick(1, 3, 3)
    per_group, height, width = net.fitting(
        lambda: (net.pick(1, 2, 3, 4, 6, 8, 16), *net.image(128)),
        lambda g, h, w: (g * groups) ** 2 * h * w * kernel**2,
    )
    channels = groups * per_group
    x = net.input((1, net.channels(channels + 8), height, width))
    y = net.conv(x, channels, (kernel, kernel), bias=net.chance(0.5))
    y = net.activation(_group_norm(net, y, groups))
    if net.chance(0.5):
        y = net.conv(y, channels, (kernel, kernel))
    if net.chance(0.3):
        y = net.add("add", y, net.input(net.shape(y)))
    return net.finish(y)


def _group_norm(net: Drawer, x: str, groups: int) -> str:
    shape = net.shape(x)
    count = shape[1]
    if net.chance(0.3):
        return net.add("group_norm", x, net.constant(count), net.constant(count), groups=groups)
    y = net.add("reshape", x, shape=(shape[0], groups, math.prod(shape[1:]) // groups))
    y = net.add("instance_norm", y, net.constant(groups, low=1.0, high=1.0), net.constant(groups))
    y = net.add("reshape", y, shape=shape)
    y = net.add("mul", y, net.constant(1, count, 1, 1, low=0.5, high=1.5))
    return net.add("add", y, net.constant(1, count, 1, 1))


def grouped(net: Drawer) -> Graph:
    """Convolutions in groups, at times with the channels shuffled between."""
    groups = net.pick(2, 3, 4, 8, 16, 32)
    kernel = net.pick(1, 3, 3)
    per_group, height, width = net.fitting(
        lambda: (net.pick(2, 4, 6, 8, 12, 16, 24, 32), *net.image(64)),
        lambda g, h, w: g * g * groups * h * w * kernel**2,
    )
    channels = groups * per_group
    x = net.input((1, channels, height, width))
    y = net.activation(net.conv(x, channels, (kernel, kernel), groups=groups))
    if net.chance(0.5):
        y = net.add("reshape", y, shape=(1, groups, per_group, height, width))
        y = net.add("transpose", y, perm=(0, 2, 1, 3, 4))
        y = net.add("reshape", y, shape=(1, channels, height, width))
        y = net.conv(y, channels, (3, 3), groups=channels)
    return net.finish(y)


def dense_connections(net: Drawer) -> Graph:
    """Normalise, activate, convolve; and join with what came before. Or parallel dilations."""
    inputs, height, width = net.fitting(
        lambda: (net.channels(384, 8), *net.image(64)), lambda c, h, w: 100.0 * c * h * w * 9
    )
    x = net.input((1, inputs, height, width))
    if net.chance(0.5):
        growth = net.pick(12, 16, 24, 32, 48)
        parts = [x]
        for _ in range(net.pick(1, 2)):
            y = net.add("concat", *parts, axis=1) if len(parts) > 1 else x
            y = net.add("relu", net.channel_norm(y))
            y = net.add("relu", net.conv(y, 4 * growth, (1, 1)))
            parts.append(net.conv(y, growth, (3, 3)))
        return net.finish(net.add("concat", *parts, axis=1))
    outputs = net.channels(64)
    parts = [net.activation(net.conv(x, outputs, (1, 1)))]
    for dilation in (2, 4, 6)[: net.pick(1, 2, 3)]:
        parts.append(net.activation(net.conv(x, outputs, (3, 3), dilation=dilation)))
    return net.finish(net.conv(net.add("concat", *parts, axis=1), outputs, (1, 1)))


def upscaled(net: Drawer) -> Graph:
    """Larger images: transposed convolution, interpolation, or channels as pixels."""
    kind = net.pick(0, 1, 2)
    inputs, outputs, height, width = net.fitting(
        lambda: (net.channels(512), net.channels(256), *net.image(64)),
        lambda c, o, h, w: 16.0 * c * o * h * w,
    )
    x = net.input((1, inputs, height, width))
    if kind == 0:
        return net.finish(net.activation(_transposed(net, x, outputs)))
    if kind == 1:
        scale = net.pick(2, 2, 4)
        sizes = (1, inputs, scale * height, scale * width)
        mode = "nearest" if net.chance(0.5) else "linear"
        coordinates = "asymmetric" if mode == "nearest" else "half_pixel"
        y = net.add("resize", x, sizes=sizes, mode=mode, coordinates=coordinates)
        if net.chance(0.5):
            y = net.add("add", y, net.input(net.shape(y)))
        return net.finish(net.conv(y, net.pick(1, 3, 8, 16), (3, 3)) if net.chance(0.5) else y)
    block = net.pick(2, 2, 3, 4)
    y = net.activation(net.conv(x, net.pick(1, 3, 8, 16) * block**2, (3, 3)))
    mode = "CRD" if net.chance(0.7) else "DCR"
    return net.finish(net.activation(net.add("depth_to_space", y, blocksize=block, mode=mode)))


def _transposed(net: Drawer, x: str, outputs: int) -> str:
    kernel, stride, pad = ((2, 2, 0), (4, 2, 1), (3, 2, 1), (4, 1, 0), (5, 2, 2))[
        net.pick(0, 1, 2, 3, 4)
    ]
    inputs = net.shape(x)[1]
    outputs = net.pick(outputs, outputs, 1, 3)
    weight = net.weight(inputs, outputs, kernel, kernel, inputs=inputs * kernel**2)
    y = net.add(
        "conv_transpose",
        x,
        weight,
        net.constant(outputs),
        strides=(stride,) * 2,
        pads=(pad,) * 4,
        output_padding=(1, 1) if kernel % 2 and stride == 2 else (0, 0),
    )
    return net.channel_norm(y) if net.chance(0.4) else y


def volumes(net: Drawer) -> Graph:
    """Convolutions of videos and volumes."""
    kernel = ((3, 3, 3), (1, 3, 3), (3, 1, 1), (1, 1, 1))[net.pick(0, 1, 2, 3)]
    inputs, outputs, depth, size = net.fitting(
        lambda: (net.channels(128), net.channels(128), net.pick(4, 8, 16), net.size(56)),
        lambda c, o, d, s: c * o * d * s * s * math.prod(kernel),
    )
    x = net.input((1, inputs, depth, size, size))
    return net.finish(net.activation(net.conv(x, outputs, kernel, stride=net.pick(1, 1, 2))))


def patches(net: Drawer) -> Graph:
    """An image cut into patches, each a token; or folded into channels and normalised."""
    patch = net.pick(2, 4, 4, 7, 8, 14, 16, 16)
    width, count = net.fitting(
        lambda: (net.width(), net.pick(4, 7, 8, 14, 16, 28, 32, 56)),
        lambda d, n: d * n * n * 3 * patch**2,
    )
    channels = net.pick(1, 3, 3, 3, 8)
    x = net.input((1, channels, patch * count, patch * count))
    y = net.conv(x, width, (patch, patch), stride=patch, pad=0)
    y = net.add("reshape", y, shape=(1, width, count * count))
    y = net.add("transpose", y, perm=(0, 2, 1))
    if net.chance(0.5):
        y = net.add("concat", net.constant(1, 1, width), y, axis=1)
    if net.chance(0.7):
        y = net.add("add", y, net.constant(*net.shape(y)))
    return net.finish(net.row_norm(y) if net.chance(0.6) else y)


def merged_patches(net: Drawer) -> Graph:
    """Neighbouring tokens joined: slices with steps, or a reshape and a transpose."""
    size, width = net.fitting(
        lambda: (net.pick(8, 14, 16, 28, 56), net.width(512)), lambda s, d: 2.0 * s * s * d * d
    )
    x = net.input((1, size, size, width))
    corners = [
        net.add("slice", x, starts=(row, column), ends=(size, size), axes=(1, 2), steps=(2, 2))
        for column in (0, 1)
        for row in (0, 1)
    ]
    y = net.row_norm(net.add("concat", *corners, axis=-1))
    return net.finish(net.linear(y, 2 * width, bias=False))
