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


class Decoder(nn.Module):
    """Causal attention within texts that are packed in one row, as language models of today mask.

    A position that does not follow the one before it begins a new text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.heads = nn.Linear(16, 48)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        count = ids.shape[1]
        first = positions[:, :1] - 1
        text = (positions.diff(prepend=first, dim=1) != 1).cumsum(-1)
        is_same = text[:, :, None] == text[:, None, :]
        is_before = torch.ones(count, count, dtype=torch.bool).tril()
        mask = torch.zeros(count, count).masked_fill(~(is_same & is_before), -float("inf"))
        query, key, value = self.heads(self.embedding(ids)).view(-1, count, 3, 2, 8).unbind(2)
        mixed = nn.functional.scaled_dot_product_attention(
            *(each.transpose(1, 2) for each in (query, key, value)), attn_mask=mask[:, None]
        )
        return mixed.transpose(1, 2).flatten(2)


class Speech(nn.Module):
    """A convolution over a signal whose weight is given by directions and lengths."""

    def __init__(self) -> None:
        super().__init__()
        convolution = nn.Conv1d(8, 8, 4, padding=2, groups=2)
        self.position = nn.utils.parametrizations.weight_norm(convolution, dim=2)
        self.features = nn.utils.parametrizations.weight_norm(nn.Linear(8, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.features(nn.functional.gelu(self.position(x)[:, :, :-1] + x).transpose(1, 2))


class Scan(nn.Module):
    """A recurrence whose steps depend on the input, as in Mamba."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(8, 4))
        self.inward = nn.Linear(8, 16)
        self.mixing = nn.Conv1d(8, 8, 3, groups=8, padding=2)
        self.choice = nn.Linear(8, 16)

    def forward(self, x: Tensor) -> Tensor:
        inner, gate = self.inward(x).chunk(2, -1)
        inner = nn.functional.silu(self.mixing(inner.transpose(1, 2))[..., : x.shape[1]])
        delta, b, c = self.choice(inner.transpose(1, 2)).split([8, 4, 4], -1)
        return selective_scan(inner.transpose(1, 2), delta, self.a, b, c) * gate


def selective_scan(x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The recurrence of Mamba (Gu and Dao 2023, section 3.2).

    Shapes:  x, delta (batch, steps, width); a (width, states); b, c (batch, steps, states)
    """
    step = nn.functional.softplus(delta)[..., None]
    kept, added = torch.exp(-step * a.exp()), step * b[:, :, None] * x[..., None]
    state, rows = torch.zeros_like(kept[:, 0]), []
    for at in range(x.shape[1]):
        state = kept[:, at] * state + added[:, at]
        rows.append((state @ c[:, at, :, None])[..., 0])
    return torch.stack(rows, dim=1)


SMALL: dict[str, tuple[type[nn.Module], tuple[Tensor, ...]]] = {
    "decoder": (
        Decoder,
        (
            torch.arange(14).view(2, 7) % 11,
            torch.tensor([[0, 1, 2, 0, 1, 0, 1], [3, 4, 5, 6, 0, 1, 2]]),
        ),
    ),
    "speech": (Speech, (torch.linspace(-2, 2, 160).view(2, 8, 10).sin(),)),
    "scan": (Scan, (torch.linspace(-3, 3, 96).view(2, 6, 8).cos(),)),
}
"""Networks with what language and speech models need, and their inputs."""


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
