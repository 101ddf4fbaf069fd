"""The decoders of GGUF files in NumPy, from the files alone, in f64: what import is judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class NumpyDecoder:
    """Reads a file with the package gguf, and all its tensors as numbers."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self.tensors: dict[str, Numbers] = {}
        for each in reader.tensors:
            numbers = gguf.quants.dequantize(each.data, each.tensor_type)
            self.tensors[each.name] = numbers.astype(np.float64)
        self.facts = {key: field.contents() for key, field in reader.fields.items()}
        self.name = self.facts["general.architecture"]

    def fact(self, key: str) -> Any:
        """A number of the metadata."""
        return self.facts[f"{self.name}.{key}"]

    def logits(self, ids: list[int]) -> Numbers:
        """The scores of the token after each of some ids."""
        x = self.tensors["token_embd.weight"][ids]
        if self.name == "gemma":
            x = x * x.shape[-1] ** 0.5
        for layer in range(self.fact("block_count")):
            x = x + self._attention(self._norm(x, f"blk.{layer}.attn_norm"), f"blk.{layer}")
            y = self._norm(x, f"blk.{layer}.ffn_norm")
            gate = self._product(y, f"blk.{layer}.ffn_gate")
            if self.name == "gemma":
                cube = gate + 0.044715 * gate**3
                active = gate * 0.5 * (1 + np.tanh((2 / np.pi) ** 0.5 * cube))
            else:
                active = gate / (1 + np.exp(-gate))
            y = active * self._product(y, f"blk.{layer}.ffn_up")
            x = x + self._product(y, f"blk.{layer}.ffn_down")
        is_tied = "output.weight" not in self.tensors
        head = "token_embd" if is_tied else "output"
        return self._product(self._norm(x, "output_norm"), head)

    def _norm(self, x: Numbers, name: str) -> Numbers:
        epsilon = self.fact("attention.layer_norm_rms_epsilon")
        scaled = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
        return scaled * self.tensors[f"{name}.weight"]

    def _product(self, x: Numbers, name: str) -> Numbers:
        bias = self.tensors.get(f"{name}.bias", np.zeros(()))
        return x @ self.tensors[f"{name}.weight"].T + bias

    def _attention(self, x: Numbers, stem: str) -> Numbers:
        heads, groups = self.fact("attention.head_count"), self.fact("attention.head_count_kv")
        q, k, v = (
            self._product(x, f"{stem}.attn_{part}").reshape(len(x), count, -1)
            for part, count in (("q", heads), ("k", groups), ("v", groups))
        )
        if f"{stem}.attn_q_norm.weight" in self.tensors:
            q, k = self._norm(q, f"{stem}.attn_q_norm"), self._norm(k, f"{stem}.attn_k_norm")
        q, k = self._turned(q), self._turned(k)
        mixed = np.zeros_like(q)
        later = np.triu(np.full((len(x), len(x)), -np.inf), 1)
        for head in range(heads):
            own = head // (heads // groups)
            scores = q[:, head] @ k[:, own].T / q.shape[-1] ** 0.5 + later
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, head] = shares / shares.sum(-1, keepdims=True) @ v[:, own]
        return self._product(mixed.reshape(len(x), -1), f"{stem}.attn_output")

    def _turned(self, x: Numbers) -> Numbers:
        """Each pair turned by its angle, as complex numbers."""
        size = self.fact("rope.dimension_count")
        rates = self.fact("rope.freq_base") ** (-np.arange(0, size, 2) / size)
        rates = rates / self.tensors.get("rope_freqs.weight", np.ones(()))
        turns = np.exp(1j * np.arange(len(x))[:, None] * rates)[:, None]
        turned, rest = x[..., :size], x[..., size:]
        if self.name == "llama":
            pairs = (turned[..., ::2] + 1j * turned[..., 1::2]) * turns
            both = np.stack((pairs.real, pairs.imag), -1).reshape(turned.shape)
        else:
            pairs = (turned[..., : size // 2] + 1j * turned[..., size // 2 :]) * turns
            both = np.concatenate((pairs.real, pairs.imag), -1)
        return np.concatenate((both, rest), -1)
