"""DenseNet-121 (Huang et al., "Densely connected convolutional networks", CVPR 2017)."""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers

_UNITS = (6, 12, 24, 16)
_GROWTH = 32


def _norm_relu_conv(net: Layers, x: str, channels: int, kernel: int) -> str:
    y = net.add("relu", net.norm(x))
    return net.conv(y, channels, (kernel, kernel), pad=kernel // 2)


def densenet121(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 8.0 million parameters."""
    net = Layers("densenet121", seed)
    x = net.input("image", (batch, 3, size, size))
    x = net.conv_norm_relu(x, 64, (7, 7), stride=2, pad=3)
    x = net.max_pool(x, 3, 2, 1)
    for stage, units in enumerate(_UNITS):
        for _ in range(units):
            y = _norm_relu_conv(net, x, 4 * _GROWTH, 1)
            x = net.add("concat", x, _norm_relu_conv(net, y, _GROWTH, 3), axis=1)
        if stage < len(_UNITS) - 1:
            x = _norm_relu_conv(net, x, net.shape_of(x)[1] // 2, 1)
            x = net.average_pool(x, 2, 2)
    return net.finish(net.classify(net.add("relu", net.norm(x))))
