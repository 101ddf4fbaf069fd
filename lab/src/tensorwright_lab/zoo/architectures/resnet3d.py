"""3D-ResNet-18 as Ansor measured it (Zheng et al., OSDI 2020): TVM's `relay.testing.resnet_3d`.

It normalises before each convolution, its input too, and has no pooling after the stem:
torchvision's `r3d_18` is another network.
"""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers


def _unit(net: Layers, x: str, channels: int, stride: int) -> str:
    """Two convolutions, each after normalisation and ReLU, and a sum."""
    y = net.add("relu", net.norm(x))
    shortcut = x
    if stride != 1 or net.shape_of(x)[1] != channels:
        shortcut = net.conv(y, channels, (1, 1, 1), stride=stride, gain=1.0)
    y = net.conv(y, channels, (3, 3, 3), stride=stride, pad=1)
    y = net.add("relu", net.norm(y))
    return net.add("add", net.conv(y, channels, (3, 3, 3), pad=1, gain=0.5), shortcut)


def resnet3d_18(seed: int = 0, batch: int = 1, size: int = 112, frames: int = 16) -> Graph:
    """video (batch, 3, frames, size, size) -> scores (batch, 1000)."""
    net = Layers("resnet3d_18", seed, epsilon=2e-5)
    x = net.norm(net.input("video", (batch, 3, frames, size, size)))
    x = net.conv_norm_relu(x, 64, (3, 7, 7), stride=(1, 2, 2), pad=(1, 3, 3))
    for stage in range(4):
        for unit in range(2):
            x = _unit(net, x, 64 << stage, 2 if stage > 0 and unit == 0 else 1)
    return net.finish(net.classify(net.add("relu", net.norm(x))))
