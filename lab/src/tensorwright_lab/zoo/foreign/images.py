"""Networks over images: detectors, classifiers, U-Nets, windows of attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from tensorwright_lab.zoo.foreign.case import Given, Size
from tensorwright_lab.zoo.foreign.exporting import BOTH, Block, Network

Tensor: TypeAlias = Any
_STATIC = (*BOTH, "torchscript+qdq", "torchscript+operators")
_IMAGE = (Given("image", ("batch", 3, "rows", "columns")),)


def _sides(most: int, by: int = 1, least: int = 0) -> Mapping[str, Size]:
    side = Size(least, most, by)
    return {"batch": Size(0, 3), "rows": side, "columns": side}


def _block(inner: int, outer: int, stride: int = 1) -> Any:
    return nn.Sequential(
        *(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.SiLU())
    )


class _Pyramid(nn.Module):
    """Levels that go down, and up again to the size of the level before."""

    def __init__(self, *, doubled: bool) -> None:
        super().__init__()
        self.doubled = doubled
        self.down = nn.ModuleList([_block(3, 8, 2), _block(8, 12, 2), _block(12, 16, 2)])
        self.lateral = nn.ModuleList(nn.Conv2d(c, 8, 1) for c in (8, 12, 16))
        self.head = nn.Conv2d(8, 5, 3, padding=1)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        levels = []
        x = image
        for down in self.down:
            x = down(x)
            levels.append(x)
        top = self.lateral[2](levels[2])
        results = [self.head(top)]
        for k in (1, 0):
            across = self.lateral[k](levels[k])
            if self.doubled:
                top = across + functional.interpolate(top, scale_factor=2.0, mode="nearest")
            else:
                top = across + functional.interpolate(top, size=across.shape[2:], mode="nearest")
            results.append(self.head(top))
        return tuple(results)


class _Boxes(nn.Module):
    """A detector of one shot: heads of three levels in one row, boxes from a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _block(3, 8, 2)
        self.levels = nn.ModuleList([_block(8, 12, 2), _block(12, 16, 2)])
        self.boxes = nn.ModuleList([nn.Conv2d(12, 8, 3, padding=1), nn.Conv2d(16, 8, 3, padding=1)])
        self.classes = nn.ModuleList([nn.Conv2d(12, 6, 3, padding=1), nn.Conv2d(16, 6, 1)])

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stem(image)
        boxes, classes = [], []
        for level, box, kind in zip(self.levels, self.boxes, self.classes, strict=True):
            x = level(x)
            batch, _, rows, columns = x.shape
            grid = torch.stack(
                torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"), -1
            ).reshape(1, -1, 1, 2)
            parts = box(x).permute(0, 2, 3, 1).reshape(batch, rows * columns, 2, 4)
            centres = parts[..., :2].sigmoid() + grid
            boxes.append(torch.cat([centres, parts[..., 2:].exp()], -1).flatten(1, 2))
            classes.append(kind(x).permute(0, 2, 3, 1).reshape(batch, -1, 3))
        return torch.cat(boxes, 1), torch.cat(classes, 1).softmax(-1)


class _Chosen(nn.Module):
    """The best places of a map: centres that are the greatest of their neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(_block(3, 8, 2), nn.Conv2d(8, 2, 1))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        heat = self.layers(image).sigmoid()
        peaks = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat).to(heat.dtype)
        best = peaks.flatten(1).topk(5)
        return best.values, best.indices % heat.shape[3]


class _Net(nn.Module):
    """A U-Net: it goes up by transposed convolutions, or by resizing."""

    def __init__(self, up: str) -> None:
        super().__init__()
        self.up = up
        self.first, self.second, self.third = _block(3, 6), _block(6, 12), _block(12, 16)
        self.raise_second = nn.ConvTranspose2d(16, 12, 2, 2)
        self.raise_first = nn.ConvTranspose2d(12, 6, 4, 2, 1)
        self.narrow = nn.ModuleList([nn.Conv2d(16, 12, 1), nn.Conv2d(12, 6, 1)])
        self.join_second, self.join_first = _block(24, 12), _block(12, 6)
        self.out = nn.Conv2d(6, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        first = self.first(image)
        second = self.second(functional.max_pool2d(first, 2))
        x = self.third(functional.max_pool2d(second, 2))
        x = self._raised(x, self.raise_second, self.narrow[0], second)
        x = self.join_second(torch.cat([x, second], 1))
        x = self._raised(x, self.raise_first, self.narrow[1], first)
        return self.out(self.join_first(torch.cat([x, first], 1)))

    def _raised(self, x: Tensor, transposed: Any, narrow: Any, like: Tensor) -> Tensor:
        if self.up == "transposed":
            return transposed(x)
        if self.up == "padded":
            x = transposed(x)
            below, right = like.shape[2] - x.shape[2], like.shape[3] - x.shape[3]
            return functional.pad(x, (0, right, 0, below))
        return functional.interpolate(
            narrow(x), size=like.shape[2:], mode="bilinear", align_corners=False
        )


class _Pooled(nn.Module):
    """A classifier of images of any size, by an adaptive pooling to 1, or to 3 x 3."""

    def __init__(self, pooling: Any, places: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(_block(3, 8, 2), _block(8, 8), nn.MaxPool2d(3, 2, 1))
        self.squeeze = nn.Sequential(nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 8, 1))
        self.pooling = pooling
        self.classes = nn.Linear(8 * places, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.layers(image)
        x = x * self.squeeze(x.mean((2, 3), keepdim=True)).sigmoid()
        return self.classes(self.pooling(x).flatten(1)).softmax(1)


class _Windows(nn.Module):
    """Attention inside of windows of an image that is padded to whole windows and rolled."""

    def __init__(self, shift: int) -> None:
        super().__init__()
        self.shift = shift
        self.patches = nn.Conv2d(3, 16, 2, 2)
        self.norm = nn.LayerNorm(16)
        self.products = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).permute(0, 2, 3, 1)
        batch, rows, columns, _ = x.shape
        y = functional.pad(self.norm(x), (0, 0, 0, (4 - columns % 4) % 4, 0, (4 - rows % 4) % 4))
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        high, wide = y.shape[1] // 4, y.shape[2] // 4
        y = y.reshape(batch, high, 4, wide, 4, 16).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 16)
        q, k, v = self.products(y).reshape(-1, 16, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = ((q @ k.transpose(2, 3)) * 8**-0.5).softmax(-1) @ v
        y = self.out(y.transpose(1, 2).reshape(-1, 16, 16))
        y = y.reshape(batch, high, wide, 4, 4, 16).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(batch, high * 4, wide * 4, 16)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        return x + y[:, :rows, :columns]


class _Patches(nn.Module):
    """Patches with a token in front, positions interpolated to the sides of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.at = nn.Parameter(torch.randn(1, 16, 5, 5))
        self.layer = Block(16, 2)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image)
        at = functional.interpolate(self.at, size=x.shape[2:], mode="bicubic", align_corners=False)
        x = (x + at).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.layer(x)[:, 0]


class _Larger(nn.Module):
    """An image of twice the sides: channels to pixels, a skip by bilinear resizing."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PReLU(12))
        self.last = nn.Conv2d(12, 12, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        x = functional.pixel_shuffle(self.last(self.layers(image)), 2)
        skip = functional.interpolate(image, scale_factor=2, mode="bilinear", align_corners=False)
        return (x + skip).clamp(0, 1)


class _Styled(nn.Module):
    """A style transfer: reflected edges, instance norms, resizing by 2."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, 2)
        self.norm = nn.InstanceNorm2d(8, affine=True)
        self.last = nn.Conv2d(8, 3, 5)

    def forward(self, image: Tensor) -> Tensor:
        x = self.norm(self.down(functional.pad(image, (1, 1, 1, 1), mode="reflect"))).relu()
        x = functional.interpolate(x, scale_factor=2, mode="nearest")
        return self.last(functional.pad(x, (2, 2, 2, 2), mode="reflect")).tanh()


class _Context(nn.Module):
    """Segmentation: dilated branches, one of them of the whole image, resized to the image."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _block(3, 8, 2)
        self.branches = nn.ModuleList(nn.Conv2d(8, 6, 3, padding=d, dilation=d) for d in (1, 2, 4))
        self.whole = nn.Conv2d(8, 6, 1)
        self.classes = nn.Conv2d(24, 4, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        parts = [branch(x).relu() for branch in self.branches]
        whole = self.whole(functional.adaptive_avg_pool2d(x, 1))
        parts.append(whole.expand(-1, -1, x.shape[2], x.shape[3]))
        y = self.classes(torch.cat(parts, 1))
        return functional.interpolate(
            y, size=image.shape[2:], mode="bilinear", align_corners=False
        ).argmax(1)


NETWORKS = (
    Network("pyramid", "met", lambda: _Pyramid(doubled=False), _IMAGE, _sides(40, least=1)),
    Network("pyramid", "doubled", lambda: _Pyramid(doubled=True), _IMAGE, _sides(48, 8)),
    Network("pyramid", "doubled, any", lambda: _Pyramid(doubled=True), _IMAGE, _sides(40, least=1)),
    Network("detector", "one shot", _Boxes, _IMAGE, _sides(40, least=1), _STATIC),
    Network("detector", "centres", _Chosen, _IMAGE, _sides(32, least=6)),
    Network("u-net", "transposed", lambda: _Net("transposed"), _IMAGE, _sides(32, 4), _STATIC[:3]),
    Network("u-net", "padded", lambda: _Net("padded"), _IMAGE, _sides(32, least=4)),
    Network("u-net", "resized", lambda: _Net("resized"), _IMAGE, _sides(32, least=4)),
    Network(
        *("image classifier", "pooled to 1", lambda: _Pooled(nn.AdaptiveAvgPool2d(1), 1)),
        *(_IMAGE, _sides(40, least=1), (*_STATIC[:3], "torchscript+dynamic")),
    ),
    Network(
        *("image classifier", "greatest", lambda: _Pooled(nn.AdaptiveMaxPool2d(1), 1)),
        *(_IMAGE, _sides(40, least=1)),
    ),
    Network(
        *("image classifier", "pooled to 3", lambda: _Pooled(nn.AdaptiveAvgPool2d(3), 9)),
        *((Given("image", ("batch", 3, 24, 48)),), {"batch": Size(0, 3)}),
    ),
    Network("windows", "plain", lambda: _Windows(0), _IMAGE, _sides(24, least=2)),
    Network("windows", "rolled", lambda: _Windows(2), _IMAGE, _sides(24, least=2)),
    Network("patches", "token", _Patches, _IMAGE, _sides(32, least=4)),
    Network("larger image", "channels to pixels", _Larger, _IMAGE, _sides(16), _STATIC),
    Network("style", "reflected", _Styled, _IMAGE, _sides(24, least=4)),
    Network("segmentation", "context", _Context, _IMAGE, _sides(32, least=1)),
)
