"""SqueezeNet 1.1 (Iandola et al., "SqueezeNet", 2016; version 1.1 of its authors' repository)."""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers

# channels that a fire module squeezes to, channels of each half that it expands to; None: pool
_MODULES = (
    (16, 64),
    (16, 64),
    None,
    (32, 128),
    (32, 128),
    None,
    (48, 192),
    (48, 192),
    (64, 256),
    (64, 256),
)


def _conv_relu(net: Layers, x: str, channels: int, kernel: int, pad: int = 0) -> str:
    return net.add("relu", net.conv(x, channels, (kernel, kernel), pad=pad, bias=True))


def squeezenet(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 1.24 million parameters."""
    net = Layers("squeezenet", seed)
    x = net.input("image", (batch, 3, size, size))
    x = net.add("relu", net.conv(x, 64, (3, 3), stride=2, bias=True))
    x = net.max_pool(x, 3, 2, ceil_mode=True)
    for module in _MODULES:
        if module is None:
            x = net.max_pool(x, 3, 2, ceil_mode=True)
            continue
        squeezed, expanded = module
        x = _conv_relu(net, x, squeezed, 1)
        halves = (_conv_relu(net, x, expanded, 1), _conv_relu(net, x, expanded, 3, 1))
        x = net.add("concat", *halves, axis=1)
    x = _conv_relu(net, x, 1000, 1)
    return net.finish(net.flatten(net.add("global_average_pool", x)))
