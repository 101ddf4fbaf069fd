"""Layers that several families have."""

from __future__ import annotations

from typing import Any, TypeAlias

from torch import nn
from torch.nn import functional

Tensor: TypeAlias = Any


class Block(nn.Module):
    """Attention, then two layers, each behind a norm and beside a skip.

    PyTorch's own attention, written by the older exporter, holds the sizes of its example.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.products = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """(batch, positions, width) to the same; hidden (batch, positions): who is not seen."""
        batch, length, width = x.shape
        parts = self.products(self.norms[0](x)).reshape(batch, length, 3, self.heads, -1)
        query, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ keys.transpose(2, 3) / (width // self.heads) ** 0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None, None], -1e9)
        mixed = (scores.softmax(-1) @ values).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))
