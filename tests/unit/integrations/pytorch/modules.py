"""Small modules of PyTorch, as people write them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Cnn(nn.Module):
    """A convolution with batch normalisation, an activation in place, and a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn, self.act = nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.bn(self.conv1(x)))
        y = y + torch.sigmoid(y)
        return self.fc(torch.flatten(functional.adaptive_avg_pool2d(y, 1), 1))


class Transformer(nn.Module):
    """An embedding, a block of attention and a head tied to the embedding."""

    def __init__(self, width: int = 16, heads: int = 2, words: int = 11) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(32, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        batch, length = ids.shape
        x = self.words(ids) + self.places(torch.arange(length))
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return self.head(x + self.mlp(self.norm2(x)))


def alike(left: Any, right: Any, tolerance: float = 1e-4) -> bool:
    """Whether results are equal: tensors in shape, element type and values, others exactly."""
    if isinstance(left, Tensor):
        same_type = left.shape == right.shape and left.dtype == right.dtype
        return same_type and torch.allclose(
            left.double(), right.double(), tolerance, tolerance, equal_nan=True
        )
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(alike, left, right))
    return bool(left == right)
