"""The decoder of Whisper with seeded weights, as two ONNX models.

One turns what the encoder gives into keys and values, once for a recording.  The other reads ids,
those keys and values, and its own cache.

Source:  Radford et al. 2022, Robust Speech Recognition via Large-Scale Weak Supervision.

A decoder of the laboratory as a module of PyTorch, with the numbers of its GGUF file in f32.

A call reads ids and the caches of all layers, and gives the logits of the last id and the caches
with the new rows.  `torch.compile` and `torch.export` take it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, TensorProto, helper, numpy_helper
from torch import nn

from tensorwright.base import MachineError

_FLOAT = TensorProto.FLOAT


@dataclass(frozen=True, slots=True)
class Whisper:
    """The sizes of a decoder; `frames` of the encoder, `longest` in ids."""

    words: int
    width: int
    heads: int
    depth: int
    frames: int = 1500
    longest: int = 448


WHISPERS = MappingProxyType(
    {"whisper_tiny": Whisper(51865, 384, 6, 4), "whisper_base": Whisper(51865, 512, 8, 6)}
)


class _Model:
    """Nodes and weights of a model under construction."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.held: list[Any] = []

    def add(self, operator: str, inputs: Sequence[str], *outputs: str, **how: Any) -> str:
        """A node, and its first output."""
        made = outputs or (f"{operator}_{len(self.nodes)}",)
        self.nodes.append(helper.make_node(operator, inputs, made, **how))
        return made[0]

    def weight(self, *shape: int, is_scale: bool = False) -> str:
        """Seeded numbers."""
        name = f"w{len(self.held)}"
        numbers = self.draw.standard_normal(shape) * shape[-1] ** -0.5 + is_scale
        self.held.append(numpy_helper.from_array(numbers.astype(np.float32), name))
        return name

    def product(self, x: str, rows: int, columns: int, *outputs: str) -> str:
        """A product with weights, and a bias."""
        y = self.add("MatMul", [x, self.weight(rows, columns)])
        return self.add("Add", [y, self.weight(columns)], *outputs)

    def normed(self, x: str, width: int) -> str:
        """Layer normalisation."""
        scale = self.weight(width, is_scale=True)
        return self.add("LayerNormalization", [x, scale, self.weight(width)])

    def model(self, name: str, inputs: Sequence[Any], outputs: Sequence[str]) -> ModelProto:
        """The model, whose outputs are floats."""
        made = [helper.make_tensor_value_info(each, _FLOAT, None) for each in outputs]
        graph = helper.make_graph(self.nodes, name, inputs, made, self.held)
        opsets = [helper.make_opsetid("", 23)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=11)


def whisper_models(sizes: Whisper, seed: int = 0) -> tuple[ModelProto, ModelProto]:
    """From `encoder_hidden_states` to `cross.N.key` and `.value`, and the decoder, which reads them
    beside `input_ids`, `position_ids` and `past_key_values.N.key` and `.value`.
    """
    width, value = sizes.width, helper.make_tensor_value_info
    cross_names = [f"cross.{n}.{part}" for n in range(sizes.depth) for part in ("key", "value")]
    frames = 1, sizes.frames, width
    first = _Model(seed)
    for name in cross_names:
        first.product("encoder_hidden_states", width, width, name)
    whole = value("encoder_hidden_states", _FLOAT, frames)
    cross = first.model("whisper cross", [whole], cross_names)
    model = _Model(seed + 1)
    table = model.weight(sizes.words, width)
    words = model.add("Gather", [table, "input_ids"])
    places = model.add("Gather", [model.weight(sizes.longest, width), "position_ids"])
    x = model.add("Add", [words, places])
    heads = {"q_num_heads": sizes.heads, "kv_num_heads": sizes.heads}
    for layer in range(sizes.depth):
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        made = [f"present.{layer}.{part}" for part in ("key", "value")]
        y = model.normed(x, width)
        q, k, v = (model.product(y, width, width) for _ in range(3))
        inner = ["", *past]
        y = model.add("Attention", [q, k, v, *inner], f"own.{layer}", *made, is_causal=1, **heads)
        x = model.add("Add", [x, model.product(y, width, width)])
        q = model.product(model.normed(x, width), width, width)
        y = model.add("Attention", [q, *cross_names[2 * layer : 2 * layer + 2]], **heads)
        x = model.add("Add", [x, model.product(y, width, width)])
        y = model.add("Gelu", [model.product(model.normed(x, width), width, 4 * width)])
        x = model.add("Add", [x, model.product(y, 4 * width, width)])
    turned = model.add("Transpose", [table], perm=[1, 0])
    model.add("MatMul", [model.normed(x, width), turned], "logits")
    inputs = [value(n, TensorProto.INT64, (1, "rows")) for n in ("input_ids", "position_ids")]
    inputs += [value(name, _FLOAT, frames) for name in cross_names]
    states = [f"{n}.{part}" for n in range(sizes.depth) for part in ("key", "value")]
    shape = 1, sizes.heads, "past", width // sizes.heads
    inputs += [value(f"past_key_values.{each}", _FLOAT, shape) for each in states]
    return cross, model.model("whisper", inputs, ["logits", *(f"present.{n}" for n in states)])


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
