"""ResNet (He et al., "Deep residual learning for image recognition", CVPR 2016) and ResNeXt (Xie et
al., "Aggregated residual transformations for deep neural networks", CVPR 2017).

The stride of a bottleneck is on its 3x3 convolution, as in torchvision.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import BRANCH, Layers


@dataclass(frozen=True, slots=True)
class _Shape:
    """Units per stage; whether they are bottlenecks; width of the first stage's inner convolution,
    groups in it, and the unit's output as a multiple of that width.
    """

    units: tuple[int, int, int, int]
    is_bottleneck: bool
    width: int = 64
    groups: int = 1
    expansion: int = 4


def _bottleneck(net: Layers, x: str, width: int, outputs: int, groups: int, stride: int) -> str:
    y = net.conv_norm_relu(x, width, (1, 1))
    y = net.conv_norm_relu(y, width, (3, 3), stride=stride, pad=1, groups=groups)
    return net.norm(net.conv(y, outputs, (1, 1)), BRANCH)


def _basic(net: Layers, x: str, outputs: int, stride: int) -> str:
    y = net.conv_norm_relu(x, outputs, (3, 3), stride=stride, pad=1)
    return net.norm(net.conv(y, outputs, (3, 3), pad=1), BRANCH)


def _resnet(name: str, shape: _Shape, seed: int, batch: int, size: int) -> Graph:
    net = Layers(name, seed)
    x = net.input("image", (batch, 3, size, size))
    x = net.conv_norm_relu(x, 64, (7, 7), stride=2, pad=3)
    x = net.max_pool(x, 3, 2, 1)
    for stage, count in enumerate(shape.units):
        width = shape.width << stage
        outputs = width * shape.expansion
        for unit in range(count):
            stride = 2 if unit == 0 and stage > 0 else 1
            if shape.is_bottleneck:
                branch = _bottleneck(net, x, width, outputs, shape.groups, stride)
            else:
                branch = _basic(net, x, outputs, stride)
            if net.shape_of(x) != net.shape_of(branch):
                x = net.norm(net.conv(x, outputs, (1, 1), stride=stride, gain=1.0))
            x = net.add("relu", net.add("add", branch, x))
    return net.finish(net.classify(x))


def resnet18(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 11.7 million parameters."""
    return _resnet(
        "resnet18", _Shape((2, 2, 2, 2), is_bottleneck=False, expansion=1), seed, batch, size
    )


def resnet50(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 25.6 million parameters."""
    return _resnet("resnet50", _Shape((3, 4, 6, 3), is_bottleneck=True), seed, batch, size)


def resnet101(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 44.5 million parameters."""
    return _resnet("resnet101", _Shape((3, 4, 23, 3), is_bottleneck=True), seed, batch, size)


def resnext50(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """32 groups of 4 channels: image (batch, 3, size, size) -> scores (batch, 1000); 25.0 million
    parameters.
    """
    shape = _Shape((3, 4, 6, 3), is_bottleneck=True, width=128, groups=32, expansion=2)
    return _resnet("resnext50", shape, seed, batch, size)
