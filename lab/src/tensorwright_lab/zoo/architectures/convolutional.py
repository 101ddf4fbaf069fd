"""ResNet (He et al., "Deep residual learning for image recognition", CVPR 2016) and ResNeXt (Xie et
al., "Aggregated residual transformations for deep neural networks", CVPR 2017).

The stride of a bottleneck is on its 3x3 convolution, as in torchvision.

DenseNet-121 (Huang et al., "Densely connected convolutional networks", CVPR 2017).

VGG-19 (Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
recognition", ICLR 2015).

SqueezeNet 1.1 (Iandola et al., "SqueezeNet", 2016; version 1.1 of its authors' repository).

MobileNet-V2 (Sandler et al., "Inverted residuals and linear bottlenecks", CVPR 2018).

3D-ResNet-18 as Ansor measured it (Zheng et al., OSDI 2020): TVM's `relay.testing.resnet_3d`.

It normalises before each convolution, its input too, and has no pooling after the stem:
torchvision's `r3d_18` is another network.

The generator of DCGAN (Radford et al., "Unsupervised representation learning with deep
convolutional generative adversarial networks", ICLR 2016), as in TVM's `relay.testing.dcgan`.
"""

from __future__ import annotations

import math
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


_VGG_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))  # channels, convolutions


def vgg19(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> scores (batch, 1000); 143.7 million parameters at size
    224.
    """
    net = Layers("vgg19", seed)
    x = net.input("image", (batch, 3, size, size))
    for channels, count in _VGG_STAGES:
        for _ in range(count):
            x = net.add("relu", net.conv(x, channels, (3, 3), pad=1, bias=True))
        x = net.max_pool(x, 2, 2)
    x = net.flatten(x)
    for _ in range(2):
        x = net.add("relu", net.linear(x, 4096, gain=2.0))
    return net.finish(net.linear(x, 1000))


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


# expansion, output channels, units, stride of the first unit
_MOBILENET_STAGES = (
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
    for expansion, outputs, units, stride in _MOBILENET_STAGES:
        for unit in range(units):
            x = _unit(net, x, expansion, outputs, stride if unit == 0 else 1)
    x = _conv_norm_relu6(net, x, 1280, 1)
    return net.finish(net.classify(x))


def _resnet3d_unit(net: Layers, x: str, channels: int, stride: int) -> str:
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
            x = _resnet3d_unit(net, x, 64 << stage, 2 if stage > 0 and unit == 0 else 1)
    return net.finish(net.classify(net.add("relu", net.norm(x))))


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
