"""Networks that answer for every pixel: segmentation, denoising, detection."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from tensorwright_lab.zoo.wild.export import Example


class _NormedBlock(nn.Module):
    """Twice group normalisation, SiLU and a convolution, added to the input."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(8, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2 = nn.GroupNorm(8, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(functional.silu(self.norm1(x)))
        y = self.conv2(functional.silu(self.norm2(y)))
        return self.shortcut(x) + y


class _PixelAttention(nn.Module):
    """Attention of every pixel to every other, as diffusion models have it at low resolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, rows, columns = x.shape
        flat = self.norm(x).reshape(batch, channels, rows * columns)
        q, k, v = self.qkv(flat).chunk(3, dim=1)
        weights = torch.softmax(torch.einsum("bct,bcs->bts", q, k) * channels**-0.5, dim=-1)
        mixed = torch.einsum("bts,bcs->bct", weights, v)
        return x + self.proj(mixed).reshape(batch, channels, rows, columns)


class _UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, padding=1)
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList(_NormedBlock(width, width) for width in widths[:-1])
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairs)
        last = widths[-1]
        self.middle = nn.Sequential(
            _NormedBlock(last, last), _PixelAttention(last), _NormedBlock(last, last)
        )
        pairs.reverse()
        self.grow = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in pairs)
        self.up = nn.ModuleList(_NormedBlock(2 * a, a) for a, _ in pairs)
        self.norm = nn.GroupNorm(8, widths[0])
        self.head = nn.Conv2d(widths[0], classes, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        skipped = []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            x = block(x)
            skipped.append(x)
            x = shrink(x)
        x = self.middle(x)
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat((grow(x), skipped.pop()), dim=1))
        return self.head(functional.silu(self.norm(x)))


def unet_gn(
    rows: int = 192, columns: int = 192, widths: tuple[int, ...] = (32, 64, 128, 256)
) -> Example:
    """A U-Net (Ronneberger et al., MICCAI 2015) with group normalisation, SiLU and attention in
    the middle, as Ho et al. (NeurIPS 2020) have it: image f32 (1, 3, 192, 192) -> (1, 3, 192, 192).
    """
    return Example(_UNet(widths, 3), {"image": torch.zeros(1, 3, rows, columns)})


def _conv_relu(
    inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1
) -> list[nn.Module]:
    padding = dilation * (kernel // 2)
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]


class _Residual(nn.Module):
    """Two 3x3 convolutions added to their input, as in ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int, dilation: int) -> None:
        super().__init__()
        layers = _conv_relu(inputs, outputs, 3, stride, dilation)
        self.body = nn.Sequential(*layers, *_conv_relu(outputs, outputs, 3, 1, dilation)[:-1])
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(*_conv_relu(inputs, outputs, 1, stride)[:-1])

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class _PyramidPooling(nn.Module):
    """Convolutions of several dilations and the mean of the image, side by side."""

    def __init__(self, inputs: int, outputs: int, rates: tuple[int, ...]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [
                nn.Sequential(*_conv_relu(inputs, outputs, 1)),
                *(nn.Sequential(*_conv_relu(inputs, outputs, 3, 1, rate)) for rate in rates),
            ]
        )
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), *_conv_relu(inputs, outputs, 1))
        self.project = nn.Sequential(*_conv_relu((len(rates) + 2) * outputs, outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        mean = functional.interpolate(
            self.pooled(x), x.shape[-2:], mode="bilinear", align_corners=False
        )
        return self.project(torch.cat([*(branch(x) for branch in self.branches), mean], dim=1))


class _DeepLab(nn.Module):
    def __init__(self, depth: int, width: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_conv_relu(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)]
        channels = width
        for stage, (stride, dilation) in enumerate(((1, 1), (2, 1), (2, 1), (1, 2))):
            outputs = width << stage
            for number in range(depth):
                layers.append(_Residual(channels, outputs, 1 if number else stride, dilation))
                channels = outputs
        self.backbone = nn.Sequential(*layers)
        self.pyramid = _PyramidPooling(channels, channels // 2, (6, 12, 18))
        self.head = nn.Sequential(
            *_conv_relu(channels // 2, channels // 2, 3), nn.Conv2d(channels // 2, classes, 1)
        )

    def forward(self, image: Tensor) -> Tensor:
        x = self.head(self.pyramid(self.backbone(image)))
        return functional.interpolate(x, image.shape[-2:], mode="bilinear", align_corners=False)


def deeplab_v3(image: int = 256, depth: int = 2, width: int = 64) -> Example:
    """DeepLab-V3 (Chen et al., "Rethinking atrous convolution", 2017) over ResNet-18 with an output
    stride of 16: image f32 (1, 3, 256, 256) -> scores (1, 21, 256, 256).
    """
    return Example(_DeepLab(depth, width, 21), {"image": torch.zeros(1, 3, image, image)})
