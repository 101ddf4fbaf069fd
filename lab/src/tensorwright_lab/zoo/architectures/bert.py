"""BERT base (Devlin et al., "BERT: pre-training of deep bidirectional transformers", NAACL 2019):
the encoder with its embeddings and pooler; every token attends to every other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensorwright.base import DType
from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers


@dataclass(frozen=True, slots=True)
class BertShape:
    """How large a BERT is; the defaults are those of BERT base, uncased."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    inner: int = 3072
    words: int = 30522
    positions: int = 512
    kinds: int = 2


class _Encoder:
    """Mutable working state while the graph is built."""

    def __init__(self, net: Layers, shape: BertShape) -> None:
        self.net = net
        self.shape = shape

    def dense(self, x: str, name: str, outputs: int) -> str:
        """x (..., k) times (k, outputs) plus a bias."""
        inputs = self.net.shape_of(x)[-1]
        weight = self.net.weight(name, "weight", (inputs, outputs), 1 / math.sqrt(inputs))
        product = self.net.add("matmul", x, weight)
        return self.net.add("add", product, self.net.weight(name, "bias", (outputs,), 0.1))

    def norm(self, x: str, name: str) -> str:
        """Layer normalisation over the hidden dimension."""
        count = self.shape.hidden
        scale = self.net.uniform(name, "scale", count, 0.5, 1.5)
        bias = self.net.weight(name, "bias", (count,), 0.1)
        return self.net.add("layer_norm", x, scale, bias, epsilon=1e-12)

    def embed(self, words: str, kinds: str) -> str:
        """The sum of the embeddings of words, positions and kinds of token, normalised."""
        net, shape = self.net, self.shape
        length = net.shape_of(words)[1]
        tables = {
            name: net.weight("embedding", name, (count, shape.hidden), 0.5)
            for name, count in (
                ("words", shape.words),
                ("positions", shape.positions),
                ("kinds", shape.kinds),
            )
        }
        of_words = net.add("gather", tables["words"], words)
        of_kinds = net.add("gather", tables["kinds"], kinds)
        of_positions = net.add("slice", tables["positions"], starts=(0,), ends=(length,))
        total = net.add("add", net.add("add", of_words, of_kinds), of_positions)
        return self.norm(total, "embedding.norm")

    def heads_of(self, x: str, name: str, perm: tuple[int, ...]) -> str:
        """A projection of x, cut into heads, its dimensions (batch, length, head, channel) in
        another order.
        """
        shape = self.shape
        batch, length, _ = self.net.shape_of(x)
        y = self.dense(x, name, shape.hidden)
        parts = (batch, length, shape.heads, shape.hidden // shape.heads)
        return self.net.add("transpose", self.net.add("reshape", y, shape=parts), perm=perm)

    def attend(self, x: str, name: str) -> str:
        """Attention of all tokens to all tokens, in several heads."""
        net, shape = self.net, self.shape
        q = self.heads_of(x, f"{name}.query", (0, 2, 1, 3))
        k = self.heads_of(x, f"{name}.key", (0, 2, 3, 1))
        v = self.heads_of(x, f"{name}.value", (0, 2, 1, 3))
        scale = net.scalar(f"{name}.scale", 1 / math.sqrt(shape.hidden // shape.heads))
        weights = net.add("softmax", net.add("mul", net.add("matmul", q, k), scale))
        mixed = net.add("transpose", net.add("matmul", weights, v), perm=(0, 2, 1, 3))
        joined = net.add("reshape", mixed, shape=net.shape_of(x))
        return self.dense(joined, f"{name}.output", shape.hidden)

    def layer(self, x: str, name: str) -> str:
        """Attention and a two-layer network, each summed with its input and normalised."""
        net = self.net
        x = self.norm(net.add("add", self.attend(x, f"{name}.attention"), x), f"{name}.norm_0")
        inner = net.add("gelu", self.dense(x, f"{name}.inner", self.shape.inner))
        y = self.dense(inner, f"{name}.outer", self.shape.hidden)
        return self.norm(net.add("add", y, x), f"{name}.norm_1")


def bert_base(
    seed: int = 0, batch: int = 1, length: int = 128, shape: BertShape | None = None
) -> Graph:
    """input_ids, token_type_ids i64 (batch, length) -> hidden (batch, length, 768), pooled (batch,
    768); 109.5 million parameters.
    """
    shape = shape or BertShape()
    net = Layers("bert_base", seed)
    encoder = _Encoder(net, shape)
    words = net.input("input_ids", (batch, length), DType.I64)
    kinds = net.input("token_type_ids", (batch, length), DType.I64)
    x = encoder.embed(words, kinds)
    for number in range(shape.layers):
        x = encoder.layer(x, f"layer_{number}")
    first = net.add("slice", x, starts=(0,), ends=(1,), axes=(1,))
    first = net.add("reshape", first, shape=(batch, shape.hidden))
    return net.finish(x, net.add("tanh", encoder.dense(first, "pooler", shape.hidden)))
