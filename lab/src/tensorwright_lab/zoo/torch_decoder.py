"""A decoder of the laboratory as a module of PyTorch, with the numbers of its GGUF file in f32.

A call reads ids and the caches of all layers, and gives the logits of the last id and the caches
with the new rows.  `torch.compile` and `torch.export` take it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tensorwright.base import MachineError


class TorchDecoder(nn.Module):  # type: ignore[misc]  # the types of PyTorch are not checked
    """The decoder of a file of `write_decoder`: llama, qwen2 or qwen3."""

    def __init__(self, path: Path) -> None:
        """Read the file.  Raises: MachineError without the package gguf."""
        super().__init__()
        try:
            gguf = importlib.import_module("gguf")
        except ImportError:
            raise MachineError(
                stage="zoo",
                where="package gguf",
                reason="it is not installed",
                remedy="pip install 'tensorwright[bench]'",
            ) from None
        reader = gguf.GGUFReader(path)
        facts = {name: field.contents() for name, field in reader.fields.items()}
        self.kind = kind = facts["general.architecture"]
        self.depth: int = facts[f"{kind}.block_count"]
        self.heads: int = facts[f"{kind}.attention.head_count"]
        self.groups: int = facts[f"{kind}.attention.head_count_kv"]
        self.size: int = facts[f"{kind}.attention.key_length"]
        self.epsilon: float = facts[f"{kind}.attention.layer_norm_rms_epsilon"]
        rate: float = facts[f"{kind}.rope.freq_base"]
        self.rates: torch.Tensor
        self.register_buffer("rates", rate ** (-torch.arange(0, self.size, 2) / self.size))
        for tensor in reader.tensors:
            numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            shape = [int(n) for n in reversed(tensor.shape)]
            held = nn.Parameter(torch.from_numpy(numbers.reshape(shape).copy()))
            self.register_parameter(tensor.name.replace(".", "_"), held)

    def forward(self, input_ids: torch.Tensor, state: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The logits of the last id, and the caches; state has keys and values of each layer."""
        past, count = state[0].shape[2], input_ids.shape[1]
        at = torch.arange(past, past + count)
        angles = at[:, None] * self.rates
        key = torch.arange(past + count)
        mask = key <= at[:, None]
        x = nn.functional.embedding(input_ids, self._held("token_embd.weight"))
        made: list[torch.Tensor] = []
        for layer in range(self.depth):
            stem = f"blk.{layer}"
            y = self._normed(x, f"{stem}.attn_norm")
            q, k, v = (self._rows(y, f"{stem}.attn_{part}") for part in "qkv")
            if self.kind == "qwen3":
                q, k = (self._normed(z, f"{stem}.attn_{n}_norm") for z, n in ((q, "q"), (k, "k")))
            q, k = self._turned(q, angles), self._turned(k, angles)
            k = torch.cat([state[2 * layer], k], 2)
            v = torch.cat([state[2 * layer + 1], v], 2)
            made += [k, v]
            y = nn.functional.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
            y = y.transpose(1, 2).reshape(1, count, self.heads * self.size)
            x = x + self._product(y, f"{stem}.attn_output")
            y = self._normed(x, f"{stem}.ffn_norm")
            gate = nn.functional.silu(self._product(y, f"{stem}.ffn_gate"))
            x = x + self._product(gate * self._product(y, f"{stem}.ffn_up"), f"{stem}.ffn_down")
        x = self._normed(x[:, -1:], "output_norm")
        name = "output" if hasattr(self, "output_weight") else "token_embd"
        return self._product(x, name), *made

    def empty_state(self) -> list[torch.Tensor]:
        """Caches without rows."""
        return [torch.zeros(1, self.groups, 0, self.size) for _ in range(2 * self.depth)]

    def _held(self, name: str) -> torch.Tensor:
        held: torch.Tensor = getattr(self, name.replace(".", "_"))
        return held

    def _product(self, x: torch.Tensor, name: str) -> torch.Tensor:
        has_bias = hasattr(self, f"{name}.bias".replace(".", "_"))
        bias = self._held(f"{name}.bias") if has_bias else None
        return nn.functional.linear(x, self._held(f"{name}.weight"), bias)

    def _rows(self, x: torch.Tensor, name: str) -> torch.Tensor:
        y = self._product(x, name)
        return y.reshape(1, x.shape[1], -1, self.size).transpose(1, 2)

    def _normed(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight = self._held(f"{name}.weight")
        return nn.functional.rms_norm(x, weight.shape, weight, self.epsilon)

    def _turned(self, x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        """Pairs of neighbours in the architecture llama, of halves in the others."""
        cosines, sines = angles.cos(), angles.sin()
        if self.kind == "llama":
            first, second = x[..., 0::2], x[..., 1::2]
        else:
            first, second = x.chunk(2, -1)
        parts = first * cosines - second * sines, second * cosines + first * sines
        if self.kind == "llama":
            return torch.stack(parts, -1).reshape(x.shape)
        return torch.cat(parts, -1)
