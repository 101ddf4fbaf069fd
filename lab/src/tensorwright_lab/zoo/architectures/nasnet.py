"""NasNet-A (Zoph et al., "Learning transferable architectures for scalable image recognition", CVPR
2018) as TASO measured it: three stages of five normal cells and a reduction cell, no classifier.

Convolutions have no bias and no normalisation; a separable one is a depthwise and a pointwise one.
"""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers

_STAGES, _CELLS, _CHANNELS = 3, 5, 128


def _squeeze(net: Layers, x: str, channels: int) -> str:
    return net.add("relu", net.conv(x, channels, (1, 1)))


def _fit(net: Layers, previous: str, x: str) -> str:
    """An earlier tensor, with the channels and extents of the present one."""
    channels, height = net.shape_of(x)[1:3]
    if net.shape_of(previous)[2] == height:
        return _squeeze(net, previous, channels)
    return net.add("relu", net.conv(previous, channels, (3, 3), stride=2, pad=1))


def _separable(net: Layers, x: str, kernel: int, stride: int = 1) -> str:
    channels = net.shape_of(x)[1]
    window = (kernel, kernel)
    y = net.conv(x, channels, window, stride=stride, pad=kernel // 2, groups=channels, gain=1.0)
    return net.conv(y, channels, (1, 1), gain=0.5)


def _average(net: Layers, x: str, stride: int = 1) -> str:
    return net.average_pool(x, 3, stride, 1)


def _normal(net: Layers, previous: str, x: str, channels: int) -> str:
    x = _squeeze(net, x, channels)
    previous = _fit(net, previous, x)
    pairs = (
        (_separable(net, x, 3), x),
        (_separable(net, previous, 3), _separable(net, x, 5)),
        (_average(net, x), previous),
        (_average(net, previous), _average(net, previous)),
        (_separable(net, previous, 5), _separable(net, previous, 3)),
    )
    return net.add("concat", *(net.add("add", *pair) for pair in pairs), axis=1)


def _reduction(net: Layers, previous: str, x: str, channels: int) -> str:
    x = _squeeze(net, x, channels)
    previous = _fit(net, previous, x)
    first = net.add("add", _separable(net, previous, 7, 2), _separable(net, x, 5, 2))
    second = net.add("add", net.max_pool(x, 3, 2, 1), _separable(net, previous, 7, 2))
    third = net.add("add", _average(net, x, 2), _separable(net, previous, 5, 2))
    fourth = net.add("add", net.max_pool(x, 3, 2, 1), _separable(net, first, 3))
    fifth = net.add("add", _average(net, first), second)
    return net.add("concat", first, second, third, fourth, fifth, axis=1)


def nasnet_a(seed: int = 0, batch: int = 1, size: int = 224, channels: int = _CHANNELS) -> Graph:
    """image (batch, 3, size, size) -> features (batch, 40 * channels, size / 32, size / 32)."""
    net = Layers("nasnet_a", seed)
    x = net.input("image", (batch, 3, size, size))
    x = net.add("relu", net.conv(x, 64, (7, 7), stride=2, pad=3))
    x = net.max_pool(x, 3, 2, 1)
    for _ in range(_STAGES):
        previous = x
        for _ in range(_CELLS):
            previous, x = x, _normal(net, previous, x, channels)
        channels *= 2
        x = _reduction(net, previous, x, channels)
    return net.finish(x)
