"""Networks that make images: larger from small ones, new ones from noise."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from tensorwright_lab.zoo.wild.export import Example


class _EnhancedBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(torch.relu(self.conv1(x))) * 0.1


class _Edsr(nn.Module):
    def __init__(self, width: int, depth: int, scale: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor((0.4488, 0.4371, 0.4040)).view(1, 3, 1, 1))
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Sequential(*(_EnhancedBlock(width) for _ in range(depth)))
        self.body_end = nn.Conv2d(width, width, 3, padding=1)
        self.grow = nn.Conv2d(width, scale * scale * width, 3, padding=1)
        self.shuffle = nn.PixelShuffle(scale)
        self.tail = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.head(image - self.mean)
        x = x + self.body_end(self.body(x))
        return self.tail(self.shuffle(self.grow(x))) + self.mean


def edsr_x2(rows: int = 96, columns: int = 96, width: int = 64, depth: int = 16) -> Example:
    """EDSR, its baseline of 16 blocks, twice as large (Lim et al., "Enhanced deep residual networks
    for single image super-resolution", CVPRW 2017): image f32 (1, 3, 96, 96) -> (1, 3, 192, 192).
    """
    return Example(_Edsr(width, depth, 2), {"image": torch.zeros(1, 3, rows, columns)})


class _ModulatedConv(nn.Module):
    """A convolution whose filters are scaled by a style, and normalised again."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, style: int, is_up: bool, is_normal: bool
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, outputs, inputs, kernel, kernel))
        self.affine = nn.Linear(style, inputs)
        self.padding, self.is_up, self.is_normal = kernel // 2, is_up, is_normal
        taps = torch.tensor((1.0, 3.0, 3.0, 1.0))
        self.register_buffer("blur", torch.outer(taps, taps).view(1, 1, 4, 4) / 16.0)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        batch, inputs, rows, columns = x.shape
        scale = self.affine(style).view(batch, 1, inputs, 1, 1) + 1.0
        weight = self.weight * scale
        if self.is_normal:
            weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        _, outputs, _, kernel, _ = weight.shape
        x = x.view(1, batch * inputs, rows, columns)
        if not self.is_up:
            weight = weight.view(batch * outputs, inputs, kernel, kernel)
            y = functional.conv2d(x, weight, padding=self.padding, groups=batch)
            return y.view(batch, outputs, rows, columns)
        weight = weight.transpose(1, 2).reshape(batch * inputs, outputs, kernel, kernel)
        y = functional.conv_transpose2d(x, weight, stride=2, groups=batch)
        y = functional.pad(y, (1, 1, 1, 1)).view(batch * outputs, 1, 2 * rows + 3, 2 * columns + 3)
        return functional.conv2d(y, self.blur).view(batch, outputs, 2 * rows, 2 * columns)


class _StyledConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, style: int, side: int, is_up: bool) -> None:
        super().__init__()
        self.conv = _ModulatedConv(inputs, outputs, 3, style, is_up, is_normal=True)
        self.noise_strength = nn.Parameter(torch.zeros(1))
        self.register_buffer("noise", torch.randn(1, 1, side, side))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = self.conv(x, style) + self.noise_strength * self.noise
        return functional.leaky_relu(y + self.bias.view(1, -1, 1, 1), 0.2) * 2**0.5


class _StyleGenerator(nn.Module):
    def __init__(self, style: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(8):
            layers += [nn.Linear(style, style), nn.LeakyReLU(0.2)]
        self.mapping = nn.Sequential(*layers)
        self.start = nn.Parameter(torch.zeros(1, widths[0], 4, 4))
        self.first = _StyledConv(widths[0], widths[0], style, 4, is_up=False)
        self.first_image = _ModulatedConv(widths[0], 3, 1, style, is_up=False, is_normal=False)
        pairs = list(enumerate(pairwise(widths)))
        sides = [8 << number for number, _ in pairs]
        self.grow = nn.ModuleList(
            _StyledConv(a, b, style, sides[number], is_up=True) for number, (a, b) in pairs
        )
        self.refine = nn.ModuleList(
            _StyledConv(b, b, style, sides[number], is_up=False) for number, (_, b) in pairs
        )
        self.to_image = nn.ModuleList(
            _ModulatedConv(b, 3, 1, style, is_up=False, is_normal=False) for _, (_, b) in pairs
        )

    def forward(self, z: Tensor) -> Tensor:
        style = self.mapping(z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8))
        x = self.first(self.start.repeat(z.shape[0], 1, 1, 1), style)
        image = self.first_image(x, style)
        for grow, refine, to_image in zip(self.grow, self.refine, self.to_image, strict=True):
            x = refine(grow(x, style), style)
            image = functional.interpolate(
                image, scale_factor=2, mode="bilinear", align_corners=False
            )
            image = image + to_image(x, style)
        return image


def stylegan2(style: int = 512, widths: tuple[int, ...] = (512, 512, 512, 256, 128, 64)) -> Example:
    """The generator of StyleGAN2 (Karras et al., CVPR 2020) up to 128x128, with half of the widths
    at the end: z f32 (1, 512) -> image (1, 3, 128, 128). Filters depend on the input.
    """
    return Example(_StyleGenerator(style, widths), {"z": torch.zeros(1, style)})
