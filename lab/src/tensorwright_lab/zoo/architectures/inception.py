"""Inception-v3 (Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR
2016), without the auxiliary head. The modules bear torchvision's letters.
"""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers


def _conv(net: Layers, x: str, channels: int, height: int, width: int) -> str:
    """A convolution that keeps the extents."""
    pad = (height // 2, width // 2)
    return net.conv_norm_relu(x, channels, (height, width), pad=pad)


def _halve(net: Layers, x: str, channels: int) -> str:
    return net.conv_norm_relu(x, channels, (3, 3), stride=2)


def _pooled(net: Layers, x: str, channels: int) -> str:
    return _conv(net, net.average_pool(x, 3, 1, 1), channels, 1, 1)


def _chain(net: Layers, x: str, *layers: tuple[int, int, int]) -> str:
    for channels, height, width in layers:
        x = _conv(net, x, channels, height, width)
    return x


def _module_a(net: Layers, x: str, pooled: int) -> str:
    branches = (
        _conv(net, x, 64, 1, 1),
        _chain(net, x, (48, 1, 1), (64, 5, 5)),
        _chain(net, x, (64, 1, 1), (96, 3, 3), (96, 3, 3)),
        _pooled(net, x, pooled),
    )
    return net.add("concat", *branches, axis=1)


def _module_b(net: Layers, x: str) -> str:
    branches = (
        _halve(net, x, 384),
        _halve(net, _chain(net, x, (64, 1, 1), (96, 3, 3)), 96),
        net.max_pool(x, 3, 2),
    )
    return net.add("concat", *branches, axis=1)


def _module_c(net: Layers, x: str, inner: int) -> str:
    long = ((inner, 1, 1), (inner, 7, 1), (inner, 1, 7), (inner, 7, 1), (192, 1, 7))
    branches = (
        _conv(net, x, 192, 1, 1),
        _chain(net, x, (inner, 1, 1), (inner, 1, 7), (192, 7, 1)),
        _chain(net, x, *long),
        _pooled(net, x, 192),
    )
    return net.add("concat", *branches, axis=1)


def _module_d(net: Layers, x: str) -> str:
    branches = (
        _halve(net, _conv(net, x, 192, 1, 1), 320),
        _halve(net, _chain(net, x, (192, 1, 1), (192, 1, 7), (192, 7, 1)), 192),
        net.max_pool(x, 3, 2),
    )
    return net.add("concat", *branches, axis=1)


def _module_e(net: Layers, x: str) -> str:
    def both(y: str) -> tuple[str, str]:
        return _conv(net, y, 384, 1, 3), _conv(net, y, 384, 3, 1)

    branches = (
        _conv(net, x, 320, 1, 1),
        *both(_conv(net, x, 384, 1, 1)),
        *both(_chain(net, x, (448, 1, 1), (384, 3, 3))),
        _pooled(net, x, 192),
    )
    return net.add("concat", *branches, axis=1)


def inception_v3(seed: int = 0, batch: int = 1, size: int = 299) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 23.8 million parameters."""
    net = Layers("inception_v3", seed, epsilon=1e-3)
    x = net.input("image", (batch, 3, size, size))
    x = _halve(net, x, 32)
    x = net.conv_norm_relu(x, 32, (3, 3))
    x = net.conv_norm_relu(x, 64, (3, 3), pad=1)
    x = net.max_pool(x, 3, 2)
    x = net.conv_norm_relu(x, 80, (1, 1))
    x = net.conv_norm_relu(x, 192, (3, 3))
    x = net.max_pool(x, 3, 2)
    for pooled in (32, 64, 64):
        x = _module_a(net, x, pooled)
    x = _module_b(net, x)
    for inner in (128, 160, 160, 192):
        x = _module_c(net, x, inner)
    x = _module_d(net, x)
    x = _module_e(net, _module_e(net, x))
    return net.finish(net.classify(x))
