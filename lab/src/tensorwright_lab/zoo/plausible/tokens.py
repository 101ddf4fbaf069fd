"""Families of networks over tokens: attention, feed-forward parts, mixers, windows."""

from __future__ import annotations

import math

import numpy as np

from tensorwright.graph import Graph
from tensorwright_lab.zoo.plausible.drawer import Drawer

_HEADS = (16, 20, 32, 40, 48, 64, 64, 64, 80, 96, 128)


def feed_forward(net: Drawer) -> Graph:
    """Normalise, widen, activate (or gate), narrow, add."""
    length, width = net.fitting(lambda: (net.length(), net.width()), lambda n, d: 4.0 * n * d * d)
    x = net.input((net.batch() if length * width < 16384 else 1, length, width))
    y = net.row_norm(x) if net.chance(0.7) else x
    inner = width * net.pick(2, 3, 4, 4)
    if net.chance(0.35):
        gate = net.linear(y, inner, bias=net.chance(0.3))
        gate = net.add("mul", gate, net.add("sigmoid", gate))
        y = net.add("mul", gate, net.linear(y, inner, bias=False))
        y = net.linear(y, width, bias=False)
    else:
        y = net.linear(net.activation(net.linear(y, inner), none=0.0), width)
    return net.finish(net.add("add", x, y) if net.chance(0.8) else y)


def attention(net: Drawer) -> Graph:
    """Attention of tokens to tokens, with what comes before and after."""
    part = net.random.choice(_HEADS)
    length, seen, heads = net.fitting(
        lambda: (net.length(), net.length(), net.pick(1, 2, 3, 4, 6, 8, 12, 16)),
        lambda n, m, h: 4.0 * n * (h * part) ** 2 + 2.0 * n * m * h * part,
    )
    width = heads * part
    x = net.input((1, length, width))
    y = net.row_norm(x) if net.chance(0.6) else x
    is_self = net.chance(0.75)
    source = y if is_self else net.input((1, seen, width))
    seen = length if is_self else seen
    if is_self and net.chance(0.4):
        q, k, v = _packed_heads(net, y, heads)
    else:
        kind = net.chance(0.5)
        q, k, v = (_heads(net, each, heads, bias=kind) for each in (y, source, source))
    if net.chance(0.25):
        q, k = (rotated(net, each) for each in (q, k))
    y = _attended(net, q, k, v, is_square=length == seen)
    y = net.add("transpose", y, perm=(0, 2, 1, 3))
    y = net.linear(net.add("reshape", y, shape=(1, length, width)), width)
    return net.finish(net.add("add", x, y) if net.chance(0.8) else y)


def _heads(net: Drawer, x: str, heads: int, *, bias: bool) -> str:
    _, length, width = net.shape(x)
    y = net.linear(x, width, bias=bias)
    y = net.add("reshape", y, shape=(1, length, heads, width // heads))
    return net.add("transpose", y, perm=(0, 2, 1, 3))


def _packed_heads(net: Drawer, x: str, heads: int) -> tuple[str, str, str]:
    """Queries, keys and values from one product."""
    _, length, width = net.shape(x)
    y = net.linear(x, 3 * width)
    part = width // heads
    if net.chance(0.5):
        y = net.add("reshape", y, shape=(1, length, 3, heads, part))
        y = net.add("transpose", y, perm=(2, 0, 3, 1, 4))
        q, k, v = (
            net.add("squeeze", net.add("slice", y, starts=(n,), ends=(n + 1,)), axes=(0,))
            for n in range(3)
        )
        return q, k, v
    pieces = net.builder.apply("split", (y,), sizes=(width,) * 3, axis=-1)
    q, k, v = (
        net.add(
            "transpose",
            net.add("reshape", piece, shape=(1, length, heads, part)),
            perm=(0, 2, 1, 3),
        )
        for piece in pieces
    )
    return q, k, v


def rotated(net: Drawer, x: str) -> str:
    """Rotary embedding of (1, heads, tokens, part)."""
    _, _, length, part = net.shape(x)
    half = part // 2
    low = net.add("slice", x, starts=(0,), ends=(half,), axes=(3,))
    high = net.add("slice", x, starts=(half,), ends=(part,), axes=(3,))
    turned = net.add("concat", net.add("neg", high), low, axis=-1)
    left = net.add("mul", x, net.constant(length, part))
    return net.add("add", left, net.add("mul", turned, net.constant(length, part)))


def _attended(net: Drawer, q: str, k: str, v: str, *, is_square: bool) -> str:
    part = net.shape(q)[-1]
    scale = net.scalar(1 / math.sqrt(part))
    if net.chance(0.25):
        q = net.add("mul", q, scale)
    scores = net.add("matmul", q, net.add("transpose", k, perm=(0, 1, 3, 2)))
    if net.chance(0.6):
        scores = net.add("mul", scores, scale)
    length, seen = net.shape(scores)[-2:]
    kind = net.random.random()
    if kind < 0.25:
        mask = np.triu(np.full((length, seen), -1e4, np.float32), 1 + seen - length)
        scores = net.add("add", scores, net.builder.constant(mask.reshape(1, 1, length, seen)))
    elif kind < 0.4:
        scores = net.add("add", scores, net.input((1, 1, 1, seen)))
    elif kind < 0.5 and is_square:
        allowed = np.tril(np.ones((1, 1, length, seen), np.bool_))
        lowest = net.scalar(-1e9)
        scores = net.add("where", net.builder.constant(allowed), scores, lowest)
    return net.add("matmul", net.add("softmax", scores), v)


def window_attention(net: Drawer) -> Graph:
    """Tokens of an image rolled, cut into windows, attended, and put back."""
    window = net.pick(4, 7, 7, 8)
    count, heads, part = net.fitting(
        lambda: (net.pick(1, 2, 4, 8), net.pick(1, 2, 3, 4, 6), net.pick(16, 32, 32, 64)),
        lambda n, h, p: 4.0 * (n * window) ** 2 * (h * p) ** 2,
    )
    width, size = heads * part, window * count
    x = net.input((1, size, size, width))
    y = net.row_norm(x)
    shift = window // 2 if count > 1 and net.chance(0.5) else 0
    y = _rolled(net, y, shift) if shift else y
    y = net.add("reshape", y, shape=(1, count, window, count, window, width))
    y = net.add("transpose", y, perm=(0, 1, 3, 2, 4, 5))
    tokens = window * window
    y = net.add("reshape", y, shape=(count * count, tokens, width))
    packed = net.add(
        "reshape", net.linear(y, 3 * width), shape=(count * count, tokens, 3, heads, part)
    )
    packed = net.add("transpose", packed, perm=(2, 0, 3, 1, 4))
    q, k, v = (
        net.add("squeeze", net.add("slice", packed, starts=(n,), ends=(n + 1,)), axes=(0,))
        for n in range(3)
    )
    scores = net.add(
        "matmul", net.add("mul", q, net.scalar(0.2)), net.add("transpose", k, perm=(0, 1, 3, 2))
    )
    scores = net.add("add", scores, net.constant(1, heads, tokens, tokens))
    if shift:
        scores = net.add("add", scores, net.constant(count * count, 1, tokens, tokens))
    y = net.add("matmul", net.add("softmax", scores), v)
    y = net.add("transpose", y, perm=(0, 2, 1, 3))
    y = net.linear(net.add("reshape", y, shape=(count * count, tokens, width)), width)
    y = net.add("reshape", y, shape=(1, count, count, window, window, width))
    y = net.add("transpose", y, perm=(0, 1, 3, 2, 4, 5))
    y = net.add("reshape", y, shape=(1, size, size, width))
    y = _rolled(net, y, size - shift) if shift else y
    return net.finish(net.add("add", x, y))


def _rolled(net: Drawer, x: str, shift: int) -> str:
    for axis in (1, 2):
        size = net.shape(x)[axis]
        tail = net.add("slice", x, starts=(shift,), ends=(size,), axes=(axis,))
        head = net.add("slice", x, starts=(0,), ends=(shift,), axes=(axis,))
        x = net.add("concat", tail, head, axis=axis)
    return x


def linear_attention(net: Drawer) -> Graph:
    """Attention without scores of pairs: keys times values first."""
    part = net.pick(16, 32, 64)
    length, heads = net.fitting(
        lambda: (net.length(), net.pick(1, 2, 4, 8)),
        lambda n, h: 4.0 * n * (h * part) ** 2,
    )
    x = net.input((1, length, heads * part))
    q, k, v = (_heads(net, x, heads, bias=True) for _ in range(3))
    if net.chance(0.5):
        q, k = net.add("softmax", q, axis=-1), net.add("softmax", k, axis=-2)
    else:
        q, k = (net.add("add", net.add("elu", each), net.scalar(1.0)) for each in (q, k))
    context = net.add("matmul", net.add("transpose", k, perm=(0, 1, 3, 2)), v)
    y = net.add("transpose", net.add("matmul", q, context), perm=(0, 2, 1, 3))
    return net.finish(net.add("reshape", y, shape=net.shape(x)))


def mixer(net: Drawer) -> Graph:
    """A network over tokens for each feature: transposed, mixed, transposed back."""
    length, width, inner = net.fitting(
        lambda: (net.length(), net.width(768), net.width(1024)),
        lambda n, d, i: 2.0 * n * d * i,
    )
    x = net.input((1, length, width))
    y = net.add("transpose", net.row_norm(x), perm=(0, 2, 1))
    y = net.linear(net.activation(net.linear(y, inner), none=0.0), length)
    return net.finish(net.add("add", x, net.add("transpose", y, perm=(0, 2, 1))))


def embeddings(net: Drawer) -> Graph:
    """Rows of tables, summed or joined, then normalised or fed to a product."""
    length, width = net.length(), net.width(512)
    rows = net.pick(50, 500, 5000)
    words = net.integers(1, length, high=rows)
    x = net.add("gather", net.constant(rows, width), words)
    x = net.add("add", x, net.constant(length, width)) if net.chance(0.7) else x
    y = net.add("add", x, net.input((1, length, width)))
    y = net.row_norm(y) if net.chance(0.6) else y
    return net.finish(net.linear(y, net.pick(8, 32, 128)) if net.chance(0.4) else y)


def heads(net: Drawer) -> Graph:
    """The last layers: dense layers of few rows, means, softmax."""
    rows, inputs, outputs = net.fitting(
        lambda: (net.pick(1, 1, 1, 2, 4, 8, 16, 32, 64), net.channels(4096), net.channels(4096)),
        lambda m, k, n: 4.0 * m * k * n,
    )
    x = net.input((rows, inputs))
    weight = net.weight(outputs, inputs, inputs=inputs)
    if net.chance(0.6):
        y = net.add("gemm", x, weight, net.constant(outputs), trans_b=True)
    else:
        y = net.linear(x, outputs)
    y = net.activation(y)
    if net.chance(0.4):
        y = net.add("softmax" if net.chance(0.7) else "log_softmax", y)
    elif net.chance(0.3):
        y = net.linear(y, net.channels(512))
    return net.finish(y)
