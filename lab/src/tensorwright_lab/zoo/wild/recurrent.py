"""Networks with PyTorch's own recurrent layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tensorwright_lab.zoo.wild.example import Example


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
