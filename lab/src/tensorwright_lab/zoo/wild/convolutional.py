"""Modern convolutional classifiers: of images with depthwise 7x7, or squeeze-excite; of videos."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tensorwright_lab.zoo.wild.export import Example


class _LayerNorm2d(nn.LayerNorm):
    """Layer normalisation over the channels of an image."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _ConvNextBlock(nn.Module):
    """Depthwise 7x7, then two linear layers with channels last, scaled and added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.expand = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.reduce = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.gamma * self.reduce(self.act(self.expand(y)))
        return x + y.permute(0, 3, 1, 2)


def _convnext_layers(widths: tuple[int, ...], depths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if stage:
            before = widths[stage - 1]
            layers += [_LayerNorm2d(before, eps=1e-6), nn.Conv2d(before, width, 2, stride=2)]
        else:
            layers += [nn.Conv2d(3, width, 4, stride=4), _LayerNorm2d(width, eps=1e-6)]
        layers += [_ConvNextBlock(width) for _ in range(depth)]
    return nn.Sequential(*layers)


def convnext_t(
    image: int = 224,
    widths: tuple[int, ...] = (96, 192, 384, 768),
    depths: tuple[int, ...] = (3, 3, 9, 3),
) -> Example:
    """ConvNeXt-T (Liu et al., "A ConvNet for the 2020s", CVPR 2022): image f32 (1, 3, 224, 224) ->
    scores (1, 1000).
    """
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(widths[-1], eps=1e-6))
    module = nn.Sequential(*_convnext_layers(widths, depths), *head, nn.Linear(widths[-1], 1000))
    return Example(module, {"image": torch.zeros(1, 3, image, image)})


class _SqueezeExcite(nn.Module):
    """Each channel scaled by what two small layers make of all channels' means."""

    def __init__(self, channels: int, squeezed: int, gate: nn.Module) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)
        self.act, self.gate = nn.ReLU(), gate

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.fc2(self.act(self.fc1(self.pool(x)))))


def _conv_norm(
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int = 1,
    groups: int = 1,
    act: type[nn.Module] = nn.Identity,
) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs, eps=1e-3), act())


class _InvertedResidual(nn.Module):
    """Widen, convolve each channel, squeeze and excite, narrow."""

    def __init__(
        self,
        inputs: int,
        kernel: int,
        inner: int,
        outputs: int,
        has_excite: bool,
        act: type[nn.Module],
        stride: int,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if inner != inputs:
            layers.append(_conv_norm(inputs, inner, 1, act=act))
        layers.append(_conv_norm(inner, inner, kernel, stride, inner, act))
        if has_excite:
            squeezed = max(8, (inner // 4 + 4) // 8 * 8)
            layers.append(_SqueezeExcite(inner, squeezed, nn.Hardsigmoid()))
        self.block = nn.Sequential(*layers, _conv_norm(inner, outputs, 1))
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x)
        return x + y if self.is_residual else y


_MOBILENET_V3_LARGE = (
    # kernel, inner, outputs, squeeze-excite, hard swish, stride: table 1 of the paper
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)


def mobilenet_v3(image: int = 224, blocks: int = len(_MOBILENET_V3_LARGE)) -> Example:
    """MobileNet-V3 large (Howard et al., "Searching for MobileNetV3", ICCV 2019), its first
    `blocks` blocks: image f32 (1, 3, 224, 224) -> scores (1, 1000).
    """
    layers: list[nn.Module] = [_conv_norm(3, 16, 3, 2, act=nn.Hardswish)]
    channels = 16
    for kernel, inner, outputs, has_excite, has_swish, stride in _MOBILENET_V3_LARGE[:blocks]:
        act = nn.Hardswish if has_swish else nn.ReLU
        block = _InvertedResidual(channels, kernel, inner, outputs, has_excite, act, stride)
        layers.append(block)
        channels = outputs
    layers += [
        _conv_norm(channels, 6 * channels, 1, act=nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6 * channels, 1280),
        nn.Hardswish(),
        nn.Linear(1280, 1000),
    ]
    return Example(nn.Sequential(*layers), {"image": torch.zeros(1, 3, image, image)})


class _X3dBlock(nn.Module):
    """As an inverted residual, with a depthwise convolution over time and space."""

    def __init__(self, inputs: int, outputs: int, stride: int, has_excite: bool) -> None:
        super().__init__()
        inner = round(2.25 * outputs)
        self.expand = nn.Conv3d(inputs, inner, 1, bias=False)
        self.norm1 = nn.BatchNorm3d(inner)
        strides = (1, stride, stride)
        self.depthwise = nn.Conv3d(inner, inner, 3, strides, 1, groups=inner, bias=False)
        self.norm2 = nn.BatchNorm3d(inner)
        squeezed = max(8, (inner // 16 + 7) // 8 * 8)
        self.excite = nn.Sequential(
            nn.AdaptiveAvgPool3d(1),
            nn.Conv3d(inner, squeezed, 1),
            nn.ReLU(),
            nn.Conv3d(squeezed, inner, 1),
            nn.Sigmoid(),
        )
        self.has_excite = has_excite
        self.act = nn.SiLU()
        self.reduce = nn.Conv3d(inner, outputs, 1, bias=False)
        self.norm3 = nn.BatchNorm3d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            convolution = nn.Conv3d(inputs, outputs, 1, strides, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm3d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.depthwise(torch.relu(self.norm1(self.expand(x)))))
        if self.has_excite:
            y = y * self.excite(y)
        return torch.relu(self.shortcut(x) + self.norm3(self.reduce(self.act(y))))


def x3d_s(frames: int = 13, image: int = 160, depths: tuple[int, ...] = (3, 5, 11, 7)) -> Example:
    """X3D-S (Feichtenhofer, "X3D: expanding architectures for efficient video recognition", CVPR
    2020): video f32 (1, 3, 13, 160, 160) -> scores (1, 400).
    """
    layers: list[nn.Module] = [
        nn.Conv3d(3, 24, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
        nn.Conv3d(24, 24, (5, 1, 1), padding=(2, 0, 0), groups=24, bias=False),
        nn.BatchNorm3d(24),
        nn.ReLU(),
    ]
    channels = 24
    for outputs, depth in zip((24, 48, 96, 192), depths, strict=False):
        for number in range(depth):
            stride = 1 if number else 2
            layers.append(_X3dBlock(channels, outputs, stride, number % 2 == 0))
            channels = outputs
    inner = round(2.25 * channels)
    layers += [nn.Conv3d(channels, inner, 1, bias=False), nn.BatchNorm3d(inner), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool3d(1), nn.Conv3d(inner, 2048, 1, bias=False), nn.ReLU()]
    layers += [nn.Flatten(), nn.Linear(2048, 400)]
    return Example(nn.Sequential(*layers), {"video": torch.zeros(1, 3, frames, image, image)})
