"""A detector of objects in one pass."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tensorwright_lab.zoo.wild.export import Example

_BINS = 16
_CLASSES = 80
_STRIDES = (8, 16, 32)


class _Conv(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class _Bottleneck(nn.Module):
    def __init__(self, channels: int, is_residual: bool) -> None:
        super().__init__()
        self.cv1, self.cv2 = _Conv(channels, channels, 3), _Conv(channels, channels, 3)
        self.is_residual = is_residual

    def forward(self, x: Tensor) -> Tensor:
        y = self.cv2(self.cv1(x))
        return x + y if self.is_residual else y


class _PartialStage(nn.Module):
    """Half of the channels through bottlenecks, whatever each gives kept and joined."""

    def __init__(self, inputs: int, outputs: int, depth: int, is_residual: bool = False) -> None:
        super().__init__()
        half = outputs // 2
        self.cv1 = _Conv(inputs, outputs)
        self.cv2 = _Conv((2 + depth) * half, outputs)
        self.blocks = nn.ModuleList(_Bottleneck(half, is_residual) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.cv1(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class _PoolingPyramid(nn.Module):
    """Three poolings, one behind the other, joined with what they read."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1 = _Conv(channels, channels // 2)
        self.cv2 = _Conv(2 * channels, channels)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class _Backbone(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        w = [width << stage for stage in range(5)]
        self.low = nn.Sequential(
            _Conv(3, w[0], 3, 2),
            _Conv(w[0], w[1], 3, 2),
            _PartialStage(w[1], w[1], depth, is_residual=True),
            _Conv(w[1], w[2], 3, 2),
            _PartialStage(w[2], w[2], 2 * depth, is_residual=True),
        )
        self.middle = nn.Sequential(
            _Conv(w[2], w[3], 3, 2), _PartialStage(w[3], w[3], 2 * depth, is_residual=True)
        )
        self.high = nn.Sequential(
            _Conv(w[3], w[4], 3, 2),
            _PartialStage(w[4], w[4], depth, is_residual=True),
            _PoolingPyramid(w[4]),
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        low = self.low(image)
        middle = self.middle(low)
        return low, middle, self.high(middle)


class _Neck(nn.Module):
    """From coarse to fine and back, each level joined with the one beside it."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        low, middle, high = width << 2, width << 3, width << 4
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.down_middle = _PartialStage(high + middle, middle, depth)
        self.down_low = _PartialStage(middle + low, low, depth)
        self.shrink_low = _Conv(low, low, 3, 2)
        self.up_middle = _PartialStage(low + middle, middle, depth)
        self.shrink_middle = _Conv(middle, middle, 3, 2)
        self.up_high = _PartialStage(middle + high, high, depth)

    def forward(self, low: Tensor, middle: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        coarse = self.down_middle(torch.cat((self.up(high), middle), 1))
        low = self.down_low(torch.cat((self.up(coarse), low), 1))
        middle = self.up_middle(torch.cat((self.shrink_low(low), coarse), 1))
        high = self.up_high(torch.cat((self.shrink_middle(middle), high), 1))
        return low, middle, high


class _Head(nn.Module):
    """For each level and place a distribution over each side's distance, and a score a class."""

    def __init__(self, widths: tuple[int, ...], sides: tuple[int, ...]) -> None:
        super().__init__()
        box, score = max(16, widths[0] // 4, 4 * _BINS), max(widths[0], min(_CLASSES, 100))
        self.boxes = nn.ModuleList(
            nn.Sequential(_Conv(w, box, 3), _Conv(box, box, 3), nn.Conv2d(box, 4 * _BINS, 1))
            for w in widths
        )
        self.scores = nn.ModuleList(
            nn.Sequential(_Conv(w, score, 3), _Conv(score, score, 3), nn.Conv2d(score, _CLASSES, 1))
            for w in widths
        )
        anchors, strides = [], []
        for side, stride in zip(sides, _STRIDES, strict=True):
            at = torch.arange(side) + 0.5
            rows, columns = torch.meshgrid(at, at, indexing="ij")
            anchors.append(torch.stack((columns, rows)).view(2, -1))
            strides.append(torch.full((1, side * side), float(stride)))
        self.register_buffer("anchors", torch.cat(anchors, 1).unsqueeze(0))
        self.register_buffer("strides", torch.cat(strides, 1))
        self.register_buffer("bins", torch.arange(_BINS).float().view(1, _BINS, 1, 1))

    def forward(self, *levels: Tensor) -> Tensor:
        batch = levels[0].shape[0]
        joined = [
            torch.cat((boxes(x), scores(x)), 1).view(batch, 4 * _BINS + _CLASSES, -1)
            for boxes, scores, x in zip(self.boxes, self.scores, levels, strict=True)
        ]
        box, score = torch.cat(joined, 2).split((4 * _BINS, _CLASSES), 1)
        likely = box.view(batch, 4, _BINS, -1).transpose(2, 1).softmax(1)
        left_top, right_bottom = functional.conv2d(likely, self.bins).view(batch, 4, -1).chunk(2, 1)
        start, end = self.anchors - left_top, self.anchors + right_bottom
        corners = torch.cat(((start + end) / 2, end - start), 1) * self.strides
        return torch.cat((corners, score.sigmoid()), 1)


class _Yolo(nn.Module):
    def __init__(self, image: int, width: int, depth: int) -> None:
        super().__init__()
        self.backbone, self.neck = _Backbone(width, depth), _Neck(width, depth)
        widths = (width << 2, width << 3, width << 4)
        self.head = _Head(widths, tuple(image // stride for stride in _STRIDES))

    def forward(self, image: Tensor) -> Tensor:
        return self.head(*self.neck(*self.backbone(image)))


def yolo_n(image: int = 320, width: int = 16, depth: int = 1) -> Example:
    """A detector like YOLO-V8n (Jocher et al., 2023): a pyramid of three levels, decoupled heads,
    distances as distributions (Li et al., NeurIPS 2020); image f32 (1, 3, 320, 320) -> (1, 84,
    2100): boxes and scores of 80 classes.
    """
    return Example(_Yolo(image, width, depth), {"image": torch.zeros(1, 3, image, image)})
