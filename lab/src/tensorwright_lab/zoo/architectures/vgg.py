"""VGG-19 (Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
recognition", ICLR 2015).
"""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))  # channels, convolutions


def vgg19(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 143.7 million parameters at size
    224.
    """
    net = Layers("vgg19", seed)
    x = net.input("image", (batch, 3, size, size))
    for channels, count in _STAGES:
        for _ in range(count):
            x = net.add("relu", net.conv(x, channels, (3, 3), pad=1, bias=True))
        x = net.max_pool(x, 2, 2)
    x = net.flatten(x)
    for _ in range(2):
        x = net.add("relu", net.linear(x, 4096, gain=2.0))
    return net.finish(net.linear(x, 1000))
