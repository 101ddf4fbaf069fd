"""Small networks whose extents are named sizes: what real ones leave open."""

from __future__ import annotations

import math

import numpy as np
from tests.unit.graph.small_networks import Maker

from tensorwright.base import DType
from tensorwright.expr import Index, named_size
from tensorwright.graph import Graph

n = named_size("n", greatest=16)
s = named_size("s", greatest=512)
past = named_size("past")
h = named_size("h", least=32, greatest=512, divisor=32)
w = named_size("w", least=32, greatest=512, divisor=32)


def perceptron() -> Graph:
    """An open batch."""
    m = Maker("perceptron")
    x = m.add("gemm", m.builder.input("x", (n, 16)), m.weight(16, 32), m.weight(32))
    x = m.add("layer_norm", m.add("relu", x), m.weight(32), m.weight(32))
    return m.finish(m.add("softmax", m.add("matmul", x, m.weight(32, 10)), axis=1))


def _image_network(batch: Index, height: Index, width: Index) -> Graph:
    m = Maker("image_network")
    x = m.builder.input("x", (batch, 3, height, width))
    bias = m.weight(16)
    x = m.add("conv", x, m.weight(16, 3, 3, 3), bias, pads=(1,) * 4, strides=(2, 2))
    x = m.add("max_pool", m.add("relu", x), kernel=(3, 3), strides=(2, 2), pads=(1,) * 4)
    y = m.add("conv", x, m.weight(32, 16, 3, 3), pads=(1,) * 4, strides=(2, 2))
    y = m.add("conv", m.add("relu", y), m.weight(32, 1, 3, 3), pads=(1,) * 4, groups=32)
    rows, columns = m.builder.type_of(x).shape[2:]
    y = m.add("resize", y, sizes=(batch, 32, rows, columns), mode="linear")
    x = m.add("concat", m.add("clip", y, min=0.0, max=6.0), x, axis=1)
    x = m.add("conv_transpose", x, m.weight(48, 16, 2, 2), strides=(2, 2))
    x = m.add("average_pool", x, kernel=(3, 3), strides=(2, 2), pads=(1,) * 4)
    statistics = (m.weight(16), m.weight(16), m.weight(16), m.builder.constant(np.ones(16, "f4")))
    x = m.add("relu", m.add("batch_norm", x, *statistics))
    flat = m.add("reshape", m.add("global_average_pool", x), shape=(batch, 16))
    return m.finish(m.add("gemm", flat, m.weight(16, 10), m.weight(10)), x)


def images_of_a_batch() -> Graph:
    """An open batch of images."""
    return _image_network(n, 64, 64)


def images_of_any_size() -> Graph:
    """Open height and width."""
    return _image_network(2, h, w)


def any_images() -> Graph:
    """Open batch, height and width."""
    return _image_network(n, h, w)


def _dense(m: Maker, x: str, inputs: int, outputs: int) -> str:
    return m.add("add", m.add("matmul", x, m.weight(inputs, outputs)), m.weight(outputs))


def encoder() -> Graph:
    """A layer of BERT: open batch and sequence, a mask, positions from a table."""
    m = Maker("open_encoder")
    width, heads = 32, 4
    part = width // heads
    words = m.builder.input("words", (n, s), DType.I64)
    mask = m.builder.input("mask", (n, s), DType.I64)
    x = m.add("gather", m.weight(50, width), words, axis=0)
    x = m.add("add", x, m.add("slice", m.weight(512, width), starts=(0,), ends=(s,), axes=(0,)))
    allowed = m.add("cast", m.add("reshape", mask, shape=(n, 1, 1, s)), to=DType.F32)
    shut = m.add("sub", m.builder.constant(np.float32(1)), allowed)
    shut = m.add("mul", shut, m.builder.constant(np.float32(-1e4)))

    def split(at: str, perm: tuple[int, ...]) -> str:
        return m.add("transpose", m.add("reshape", at, shape=(n, s, heads, part)), perm=perm)

    q, v = (split(_dense(m, x, width, width), (0, 2, 1, 3)) for _ in range(2))
    k = split(_dense(m, x, width, width), (0, 2, 3, 1))
    scores = m.add("div", m.add("matmul", q, k), m.builder.constant(np.float32(math.sqrt(part))))
    weights = m.add("softmax", m.add("add", scores, shut), axis=-1)
    mixed = m.add("transpose", m.add("matmul", weights, v), perm=(0, 2, 1, 3))
    y = _dense(m, m.add("reshape", mixed, shape=(n, s, width)), width, width)
    x = m.add("layer_norm", m.add("add", x, y), m.weight(width), m.weight(width))
    y = _dense(m, m.add("relu", _dense(m, x, width, 64)), 64, width)
    x = m.add("layer_norm", m.add("add", x, y), m.weight(width), m.weight(width))
    last = m.add("gather", x, m.builder.constant(np.int64(-1)), axis=1)
    return m.finish(x, last, m.add("reduce_mean", x, axes=(1,), keepdims=False))


def _decoder(batch: Index, tokens: Index) -> Graph:
    """A layer of Llama: rotated heads, groups of them, a cache that grows, a causal mask."""
    m = Maker("decoder")
    heads, groups, part = 4, 2, 8
    width = heads * part
    x = m.builder.input("x", (batch, tokens, width))
    keys, values = (m.builder.input(i, (batch, groups, past, part)) for i in ("keys", "values"))
    cosines, sines = (m.builder.input(i, (tokens, part)) for i in ("cosines", "sines"))
    total = past + tokens

    def split(at: str, count: int) -> str:
        made = m.add("matmul", at, m.weight(width, count * part))
        made = m.add("reshape", made, shape=(batch, tokens, count, part))
        return m.add("transpose", made, perm=(0, 2, 1, 3))

    def rotated(at: str) -> str:
        low = m.add("slice", at, starts=(0,), ends=(part // 2,), axes=(3,))
        high = m.add("slice", at, starts=(part // 2,), ends=(part,), axes=(3,))
        turned = m.add("concat", m.add("neg", high), low, axis=-1)
        return m.add("add", m.add("mul", at, cosines), m.add("mul", turned, sines))

    def repeated(at: str) -> str:
        shape = (batch, groups, heads // groups, total, part)
        at = m.add("expand", m.add("unsqueeze", at, axes=(2,)), shape=shape)
        return m.add("reshape", at, shape=(batch, heads, total, part))

    y = m.add("rms_norm", x, m.weight(width))
    q, k, v = rotated(split(y, heads)), rotated(split(y, groups)), split(y, groups)
    k, v = m.add("concat", keys, k, axis=2), m.add("concat", values, v, axis=2)
    scores = m.add("matmul", q, m.add("transpose", repeated(k), perm=(0, 1, 3, 2)))
    scores = m.add("mul", scores, m.builder.constant(np.float32(part**-0.5)))
    rows = m.add("reshape", m.add("range", size=tokens, start=past), shape=(tokens, 1))
    columns = m.add("reshape", m.add("range", size=total), shape=(1, total))
    seen = m.add("not", m.add("less", rows, columns))
    scores = m.add("where", seen, scores, m.builder.constant(np.float32(-1e9)))
    y = m.add("matmul", m.add("softmax", scores), repeated(v))
    y = m.add("transpose", y, perm=(0, 2, 1, 3))
    y = m.add("reshape", y, shape=(batch, tokens, width))
    x = m.add("add", x, m.add("matmul", y, m.weight(width, width)))
    y = m.add("rms_norm", x, m.weight(width))
    gate = m.add("matmul", y, m.weight(width, 64))
    gate = m.add("mul", gate, m.add("sigmoid", gate))
    y = m.add("mul", gate, m.add("matmul", y, m.weight(width, 64)))
    return m.finish(m.add("add", x, m.add("matmul", y, m.weight(64, width))), k, v)


def decoder_step() -> Graph:
    """One token behind an open cache."""
    return _decoder(1, 1)


def decoder() -> Graph:
    """Open batch, tokens and cache."""
    return _decoder(n, s)


def attention() -> Graph:
    """Causal attention as one node; the best of each row by a host operator."""
    m = Maker("open_attention")
    q, k, v = (m.builder.input(name, (n, 4, s, 8)) for name in "qkv")
    x = m.add("attention", q, k, v, causal=True)
    best, _ = m.builder.apply("topk", (m.add("relu", x),), k=3, axis=-1)
    return m.finish(m.add("neg", best))


NETWORKS = (
    perceptron,
    images_of_a_batch,
    images_of_any_size,
    any_images,
    encoder,
    decoder_step,
    decoder,
    attention,
)
