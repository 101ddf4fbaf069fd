"""The decoder of Whisper with seeded weights, as two ONNX models.

One turns what the encoder gives into keys and values, once for a recording.  The other reads ids,
those keys and values, and its own cache.

Source:  Radford et al. 2022, Robust Speech Recognition via Large-Scale Weak Supervision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

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
