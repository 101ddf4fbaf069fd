"""Language models that read from left to right."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tensorwright_lab.zoo.wild.export import Example


class _CausalAttention(nn.Module):
    """Attention to oneself and what came before, by a mask of the upper triangle."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        before = torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        self.register_buffer("bias", before.bool())

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        before = self.bias[:, :, :length, :length]
        scores = torch.where(before, scores, torch.finfo(scores.dtype).min)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class _GptBlock(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = _CausalAttention(width, heads, length)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.act = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(self.act(self.c_fc(self.ln_2(x))))


class _Gpt(nn.Module):
    def __init__(self, words: int, length: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.Sequential(*(_GptBlock(width, heads, length) for _ in range(depth)))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        positions = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        x = self.h(self.wte(input_ids) + self.wpe(positions))
        return self.lm_head(self.ln_f(x))


def distilgpt2(
    length: int = 64, words: int = 50257, width: int = 768, depth: int = 6, heads: int = 12
) -> Example:
    """GPT-2 (Radford et al., 2019) with the six layers of its distilled form, a prompt of 64 words:
    input_ids i64 (1, 64) -> scores (1, 64, 50257).
    """
    module = _Gpt(words, length, width, depth, heads)
    return Example(module, {"input_ids": torch.zeros(1, length, dtype=torch.int64)})


class RmsNorm(nn.Module):
    """Each row over its root mean square, times a weight (Zhang and Sennrich, NeurIPS 2019)."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """X (..., width) -> the same shape."""
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


def _rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class _Rotary(nn.Module):
    """Cosines and sines of each position (Su et al., "RoFormer", 2021)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        frequencies = 10000.0 ** (-torch.arange(0, channels, 2).float() / channels)
        self.register_buffer("frequencies", frequencies)

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions[:, :, None].float() * self.frequencies
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)


class _GroupedAttention(nn.Module):
    """Causal attention whose keys and values are shared by groups of heads."""

    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.heads, self.key_heads, self.channels = heads, key_heads, width // heads
        self.q_proj = nn.Linear(width, heads * self.channels, bias=False)
        self.k_proj = nn.Linear(width, key_heads * self.channels, bias=False)
        self.v_proj = nn.Linear(width, key_heads * self.channels, bias=False)
        self.o_proj = nn.Linear(heads * self.channels, width, bias=False)

    def _repeat(self, x: Tensor) -> Tensor:
        batch, heads, length, channels = x.shape
        times = self.heads // self.key_heads
        x = x[:, :, None].expand(batch, heads, times, length, channels)
        return x.reshape(batch, heads * times, length, channels)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.channels).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.key_heads, self.channels).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.key_heads, self.channels).transpose(1, 2)
        q = q * cos + _rotate_half(q) * sin
        k = k * cos + _rotate_half(k) * sin
        scores = q @ self._repeat(k).transpose(2, 3) * self.channels**-0.5 + mask
        mixed = functional.softmax(scores, dim=-1, dtype=torch.float32) @ self._repeat(v)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class _LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, key_heads: int, inner: int) -> None:
        super().__init__()
        self.input_norm = RmsNorm(width)
        self.attention = _GroupedAttention(width, heads, key_heads)
        self.post_norm = RmsNorm(width)
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.input_norm(x), cos, sin, mask)
        y = self.post_norm(x)
        return x + self.down_proj(functional.silu(self.gate_proj(y)) * self.up_proj(y))


class _Llama(nn.Module):
    def __init__(
        self, words: int, width: int, depth: int, heads: int, key_heads: int, inner: int
    ) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(words, width)
        self.rotary = _Rotary(width // heads)
        self.layers = nn.ModuleList(
            _LlamaBlock(width, heads, key_heads, inner) for _ in range(depth)
        )
        self.norm = RmsNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        length = input_ids.shape[1]
        positions = torch.arange(length, device=input_ids.device).unsqueeze(0)
        cos, sin = self.rotary(positions)
        least = torch.full((length, length), torch.finfo(torch.float32).min)
        mask = torch.triu(least, diagonal=1)[None, None]
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.lm_head(self.norm(x))


def llama_small(
    length: int = 64,
    words: int = 32000,
    width: int = 576,
    depth: int = 12,
    heads: int = 9,
    key_heads: int = 3,
    inner: int = 1536,
) -> Example:
    """A small Llama (Touvron et al., 2023) with the widths of SmolLM-135M (Allal et al., 2024): RMS
    normalisation, rotary embedding, grouped queries, SwiGLU; input_ids i64 (1, 64) -> scores
    (1, 64, 32000).
    """
    module = _Llama(words, width, depth, heads, key_heads, inner)
    return Example(module, {"input_ids": torch.zeros(1, length, dtype=torch.int64)})
