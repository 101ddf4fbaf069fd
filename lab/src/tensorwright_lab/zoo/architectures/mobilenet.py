"""MobileNet-V2 (Sandler et al., "Inverted residuals and linear bottlenecks", CVPR 2018)."""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import BRANCH, Layers

# expansion, output channels, units, stride of the first unit
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _conv_norm_relu6(
    net: Layers, x: str, channels: int, kernel: int, stride: int = 1, groups: int = 1
) -> str:
    window = (kernel, kernel)
    y = net.conv(x, channels, window, stride=stride, pad=kernel // 2, groups=groups)
    return net.add("clip", net.norm(y), min=0.0, max=6.0)


def _unit(net: Layers, x: str, expansion: int, outputs: int, stride: int) -> str:
    """Widen, convolve each channel by itself, narrow without activation; add the input if it
    fits.
    """
    inputs = net.shape_of(x)[1]
    hidden = inputs * expansion
    y = x if expansion == 1 else _conv_norm_relu6(net, x, hidden, 1)
    y = _conv_norm_relu6(net, y, hidden, 3, stride, groups=hidden)
    is_summed = stride == 1 and inputs == outputs
    y = net.norm(net.conv(y, outputs, (1, 1)), BRANCH if is_summed else 1.0)
    return net.add("add", x, y) if is_summed else y


def mobilenet_v2(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 3.5 million parameters."""
    net = Layers("mobilenet_v2", seed)
    x = net.input("image", (batch, 3, size, size))
    x = _conv_norm_relu6(net, x, 32, 3, 2)
    for expansion, outputs, units, stride in _STAGES:
        for unit in range(units):
            x = _unit(net, x, expansion, outputs, stride if unit == 0 else 1)
    x = _conv_norm_relu6(net, x, 1280, 1)
    return net.finish(net.classify(x))
