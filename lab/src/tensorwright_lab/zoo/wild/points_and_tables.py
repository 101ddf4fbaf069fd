"""Networks of unordered points, of tables of categories, and with PyTorch's recurrent layers."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from tensorwright_lab.zoo.wild.export import Example


def _shared(widths: tuple[int, ...]) -> nn.Sequential:
    """The same linear layers for every point."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def _dense(widths: tuple[int, ...]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
    return layers


class _Alignment(nn.Module):
    """A matrix for the points, by what their cloud looks like."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.shared = _shared((channels, 64, 128, width))
        self.dense = nn.Sequential(*_dense((width, 512, 256)), nn.Linear(256, channels * channels))

    def forward(self, x: Tensor) -> Tensor:
        cloud = self.shared(x).max(dim=2)[0]
        identity = torch.eye(self.channels).view(1, -1).repeat(x.shape[0], 1)
        return (self.dense(cloud) + identity).view(-1, self.channels, self.channels)


class _PointNet(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.align = _Alignment(3, width)
        self.low = _shared((3, 64))
        self.align_features = _Alignment(64, width)
        self.high = _shared((64, 128, width))
        self.head = nn.Sequential(*_dense((width, 512, 256)), nn.Linear(256, classes))

    def forward(self, points: Tensor) -> Tensor:
        x = torch.bmm(points.transpose(2, 1), self.align(points)).transpose(2, 1)
        x = self.low(x)
        x = torch.bmm(x.transpose(2, 1), self.align_features(x)).transpose(2, 1)
        cloud = torch.max(self.high(x), 2, keepdim=True)[0]
        return torch.log_softmax(self.head(cloud.view(-1, cloud.shape[1])), dim=-1)


def pointnet(points: int = 1024, width: int = 1024) -> Example:
    """PointNet (Qi et al., CVPR 2017): points f32 (1, 3, 1024) -> log likelihoods (1, 40)."""
    return Example(_PointNet(width, 40), {"points": torch.zeros(1, 3, points)})


class _Recommender(nn.Module):
    def __init__(self, rows: tuple[int, ...], width: int, top: tuple[int, ...]) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(count, width) for count in rows)
        self.bottom = self._layers((13, 512, 256, width))
        features = len(rows) + 1
        pairs = [(i, j) for i in range(features) for j in range(i)]
        self.register_buffer("first", torch.tensor([i for i, _ in pairs]))
        self.register_buffer("second", torch.tensor([j for _, j in pairs]))
        self.top = self._layers((width + len(pairs), *top))
        self.last = nn.Linear(top[-1], 1)

    @staticmethod
    def _layers(widths: tuple[int, ...]) -> nn.Sequential:
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        x = self.bottom(dense)
        rows = [table(categories[:, number]) for number, table in enumerate(self.tables)]
        features = torch.stack([x, *rows], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        crossed = products[:, self.first, self.second]
        return torch.sigmoid(self.last(self.top(torch.cat((x, crossed), dim=1))))


def dlrm(
    batch: int = 64, tables: int = 26, rows: int = 20000, width: int = 64, top: int = 512
) -> Example:
    """A recommender (Naumov et al., "Deep learning recommendation model", 2019) with the features
    of Criteo's data, for 64 candidates: dense f32 (64, 13), categories i64 (64, 26) -> (64, 1).
    """
    module = _Recommender((rows,) * tables, width, (top, top // 2))
    categories = torch.zeros(batch, tables, dtype=torch.int64)
    return Example(module, {"dense": torch.zeros(batch, 13), "categories": categories})


class _Tagger(nn.Module):
    def __init__(self, words: int, width: int, hidden: int, layers: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, input_ids: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(input_ids))
        return torch.log_softmax(self.head(states), dim=-1)


def lstm_tagger(
    length: int = 48, words: int = 20000, width: int = 100, hidden: int = 200, layers: int = 2
) -> Example:
    """A tagger of words by a bidirectional LSTM (Huang et al., 2015): input_ids i64 (1, 48) -> log
    likelihoods (1, 48, 17).
    """
    module = _Tagger(words, width, hidden, layers, 17)
    return Example(module, {"input_ids": torch.zeros(1, length, dtype=torch.int64)})


class _Crnn(nn.Module):
    def __init__(self, widths: tuple[int, ...], hidden: int, symbols: int) -> None:
        super().__init__()
        pools = ((2, 2), (2, 2), (2, 1), (2, 1))
        layers: list[nn.Module] = []
        channels = 1
        for width, pool in zip(widths, pools, strict=True):
            layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(pool, pool)]
            channels = width
        self.features = nn.Sequential(*layers)
        self.gru = nn.GRU(2 * channels, hidden, 2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, symbols)

    def forward(self, image: Tensor) -> Tensor:
        x = self.features(image)
        states, _ = self.gru(x.permute(3, 0, 1, 2).flatten(2))
        return self.head(states)


def crnn_gru(
    columns: int = 192, widths: tuple[int, ...] = (64, 128, 256, 512), hidden: int = 256
) -> Example:
    """A reader of printed lines (Shi et al., "An end-to-end trainable neural network for
    image-based sequence recognition", 2015) with gated recurrent units: image f32 (1, 1, 32, 192)
    -> scores (48, 1, 96).
    """
    return Example(_Crnn(widths, hidden, 96), {"image": torch.zeros(1, 1, 32, columns)})
