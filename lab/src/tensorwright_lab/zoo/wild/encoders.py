"""Encoders of text: relative positions in two ways, and attention in linear time."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tensorwright_lab.zoo.wild.decoders import RmsNorm
from tensorwright_lab.zoo.wild.export import Example
from tensorwright_lab.zoo.wild.vision_transformers import Mlp


class _DisentangledAttention(nn.Module):
    """Scores of contents, of contents with positions, and of positions with contents."""

    def __init__(self, width: int, heads: int, span: int) -> None:
        super().__init__()
        self.heads, self.span, self.channels = heads, span, width // heads
        self.query_proj = nn.Linear(width, width)
        self.key_proj = nn.Linear(width, width)
        self.value_proj = nn.Linear(width, width)
        self.dense = nn.Linear(width, width)

    def _split(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.view(batch, length, self.heads, self.channels).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor, distances: Tensor, table: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            self._split(project(x)) for project in (self.query_proj, self.key_proj, self.value_proj)
        )
        table_q = self._split(self.query_proj(table).unsqueeze(0))
        table_k = self._split(self.key_proj(table).unsqueeze(0))
        scale = math.sqrt(3 * self.channels)
        index = torch.clamp(distances + self.span, 0, 2 * self.span - 1)
        index = index.expand(batch, self.heads, length, length)
        to_position = torch.gather(q @ table_k.transpose(-1, -2), -1, index)
        from_position = torch.gather(k @ table_q.transpose(-1, -2), -1, index).transpose(-1, -2)
        scores = (q @ k.transpose(-1, -2) + to_position + from_position) / scale
        scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.dense(mixed.transpose(1, 2).reshape(batch, length, width))


class _DebertaLayer(nn.Module):
    def __init__(self, width: int, heads: int, span: int) -> None:
        super().__init__()
        self.attention = _DisentangledAttention(width, heads, span)
        self.norm1 = nn.LayerNorm(width, eps=1e-7)
        self.mlp = Mlp(width, 4 * width)
        self.norm2 = nn.LayerNorm(width, eps=1e-7)

    def forward(self, x: Tensor, mask: Tensor, distances: Tensor, table: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, mask, distances, table))
        return self.norm2(x + self.mlp(x))


class _Deberta(nn.Module):
    def __init__(self, words: int, width: int, depth: int, heads: int, span: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width, eps=1e-7)
        self.distances = nn.Embedding(2 * span, width)
        self.distance_norm = nn.LayerNorm(width, eps=1e-7)
        self.layers = nn.ModuleList(_DebertaLayer(width, heads, span) for _ in range(depth))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        length = input_ids.shape[1]
        positions = torch.arange(length, device=input_ids.device)
        distances = positions[:, None] - positions[None, :]
        mask = attention_mask[:, None, None, :] * attention_mask[:, None, :, None]
        x = self.norm(self.words(input_ids)) * attention_mask.unsqueeze(-1).float()
        table = self.distance_norm(self.distances.weight)
        for layer in self.layers:
            x = layer(x, mask, distances, table)
        return x


def deberta(
    length: int = 128,
    words: int = 30522,
    width: int = 384,
    depth: int = 6,
    heads: int = 6,
    span: int = 128,
) -> Example:
    """DeBERTa (He et al., "Decoding-enhanced BERT with disentangled attention", ICLR 2021) in the
    widths of its extra small form: input_ids, attention_mask i64 (1, 128) -> (1, 128, 384).
    """
    ids = torch.zeros(1, length, dtype=torch.int64)
    module = _Deberta(words, width, depth, heads, span)
    return Example(module, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


class _BiasedAttention(nn.Module):
    """Attention without a scale, with a bias for each bucket of distances."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            project(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for project in (self.q, self.k, self.v)
        )
        scores = torch.matmul(q, k.transpose(3, 2)) + bias
        mixed = torch.softmax(scores.float(), dim=-1) @ v
        return self.o(mixed.transpose(1, 2).reshape(batch, length, width))


class _T5Block(nn.Module):
    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention = _BiasedAttention(width, heads)
        self.wi = nn.Linear(width, inner, bias=False)
        self.wo = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), bias)
        return x + self.wo(torch.relu(self.wi(self.norm2(x))))


def _bucket(distances: Tensor, buckets: int = 32, furthest: int = 128) -> Tensor:
    """Near distances have a bucket each, far ones share them, by their logarithm."""
    half = buckets // 2
    exact = half // 2
    sign = (distances > 0).long() * half
    distances = torch.abs(distances)
    logarithm = torch.log(distances.float() / exact + 1e-6) / math.log(furthest / exact)
    far = exact + (logarithm * (half - exact)).long()
    far = torch.min(far, torch.full_like(far, half - 1))
    return sign + torch.where(distances < exact, distances, far)


class _T5Encoder(nn.Module):
    def __init__(self, words: int, width: int, depth: int, heads: int, inner: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.bias = nn.Embedding(32, heads)
        self.blocks = nn.ModuleList(_T5Block(width, heads, inner) for _ in range(depth))
        self.norm = RmsNorm(width)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        buckets = _bucket(positions[None, :] - positions[:, None])
        bias = self.bias(buckets).permute(2, 0, 1).unsqueeze(0)
        hidden = (1.0 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x, bias + hidden)
        return self.norm(x)


def t5_encoder(
    length: int = 128,
    words: int = 32128,
    width: int = 512,
    depth: int = 6,
    heads: int = 8,
    inner: int = 2048,
) -> Example:
    """The encoder of T5 small (Raffel et al., JMLR 2020): RMS normalisation, biases by buckets of
    distances; input_ids, attention_mask i64 (1, 128) -> (1, 128, 512).
    """
    ids = torch.zeros(1, length, dtype=torch.int64)
    module = _T5Encoder(words, width, depth, heads, inner)
    return Example(module, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


class _FavorAttention(nn.Module):
    """Attention by random features: its cost grows with the length, not with its square."""

    def __init__(self, width: int, heads: int, features: int) -> None:
        super().__init__()
        self.heads, self.channels = heads, width // heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))
        self.to_out = nn.Linear(width, width)
        self.projection = nn.Parameter(torch.zeros(features, self.channels))

    def _features(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        x = x * self.channels**-0.25
        projected = torch.einsum("bhtc,fc->bhtf", x, self.projection)
        norm = x.pow(2).sum(-1, keepdim=True) / 2
        greatest = torch.amax(projected, dim=axes, keepdim=True)
        exponents = torch.exp(projected - norm - greatest) + 1e-4
        return exponents * self.projection.shape[0] ** -0.5

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            project(x).view(batch, length, self.heads, self.channels).permute(0, 2, 1, 3)
            for project in (self.to_q, self.to_k, self.to_v)
        )
        q, k = self._features(q, (-1,)), self._features(k, (-2, -1))
        weight = 1.0 / torch.einsum("bhtf,bhf->bht", q, k.sum(dim=2))
        context = torch.einsum("bhtf,bhtc->bhfc", k, v)
        mixed = torch.einsum("bhfc,bhtf,bht->bhtc", context, q, weight)
        return self.to_out(mixed.permute(0, 2, 1, 3).reshape(batch, length, width))


class _PerformerBlock(nn.Module):
    def __init__(self, width: int, heads: int, features: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _FavorAttention(width, heads, features)
        self.mlp = Mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class _Performer(nn.Module):
    def __init__(
        self, words: int, length: int, width: int, depth: int, heads: int, features: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.zeros(1, length, width))
        self.blocks = nn.Sequential(
            *(_PerformerBlock(width, heads, features) for _ in range(depth))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.blocks(self.words(input_ids) + self.positions)
        return self.head(self.norm(x).mean(dim=1))


def performer(
    length: int = 1024,
    words: int = 256,
    width: int = 256,
    depth: int = 6,
    heads: int = 4,
    features: int = 128,
) -> Example:
    """A classifier of bytes with linear attention (Choromanski et al., "Rethinking attention with
    performers", ICLR 2021): input_ids i64 (1, 1024) -> scores (1, 10).
    """
    module = _Performer(words, length, width, depth, heads, features)
    return Example(module, {"input_ids": torch.zeros(1, length, dtype=torch.int64)})
