"""The generator of DCGAN (Radford et al., "Unsupervised representation learning with deep
convolutional generative adversarial networks", ICLR 2016), as in TVM's `relay.testing.dcgan`.
"""

from __future__ import annotations

import math

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers


def _enlarge(net: Layers, x: str, channels: int, number: int) -> str:
    """A transposed convolution 4x4 with stride 2: twice the height and width."""
    inputs = net.shape_of(x)[1]
    deviation = math.sqrt(2.0 / (4 * inputs))  # 4 of the 16 places of the kernel meet an output
    w = net.weight(f"enlarge_{number}", "weight", (inputs, channels, 4, 4), deviation)
    return net.add("conv_transpose", x, w, strides=(2, 2), pads=(1, 1, 1, 1))


def dcgan(seed: int = 0, batch: int = 1, width: int = 128) -> Graph:
    """code (batch, 100) -> image (batch, 3, 64, 64) in -1 to 1."""
    net = Layers("dcgan", seed)
    x = net.add("relu", net.linear(net.input("code", (batch, 100)), 16 * 8 * width))
    x = net.add("reshape", x, shape=(batch, 8 * width, 4, 4))
    for number, multiple in enumerate((4, 2, 1)):
        x = net.add("relu", net.norm(_enlarge(net, x, multiple * width, number)))
    return net.finish(net.add("tanh", _enlarge(net, x, 3, 3)))
