"""Small networks with the structures that partitions and layouts must handle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder


class Maker:
    """A graph builder with seeded weights and the usual layers."""

    def __init__(self, name: str) -> None:
        self.builder = GraphBuilder(name)
        self.add = self.builder.add
        self.generator = np.random.default_rng(1)

    def weight(self, *shape: int, scale: float = 0.3) -> str:
        values = self.generator.normal(size=shape) * scale
        return self.builder.constant(values.astype(np.float32))

    def image(self, channels: int = 16, size: int = 6) -> str:
        return self.builder.input("x", (1, channels, size, size))

    def channels(self, x: str) -> int:
        return self.builder.shape_of(x)[1]

    def conv(self, x: str, channels: int, kernel: int = 3, groups: int = 1, stride: int = 1) -> str:
        inputs = self.channels(x) // groups
        w = self.weight(channels, inputs, kernel, kernel, scale=1 / math.sqrt(inputs * kernel**2))
        pads = (kernel // 2,) * 4
        bias = self.weight(channels)
        return self.add("conv", x, w, bias, pads=pads, groups=groups, strides=(stride, stride))

    def norm(self, x: str) -> str:
        """A scale and a shift per channel."""
        shape = (self.channels(x), 1, 1)
        return self.add("add", self.add("mul", x, self.weight(*shape)), self.weight(*shape))

    def finish(self, *outputs: str) -> Graph:
        return self.builder.finish(outputs)


def chain() -> Graph:
    """Three convolutions in a row, each with what usually follows it."""
    m = Maker("chain")
    x = m.add("relu", m.conv(m.image(3), 16))
    x = m.add("relu", m.norm(m.conv(x, 32)))
    return m.finish(m.conv(x, 24, kernel=1))


def basic_block() -> Graph:
    """A residual block of ResNet-18 without and one with a projection, pooled and classified."""
    m = Maker("basic_block")
    x = m.add("relu", m.conv(m.image(), 16))
    y = m.conv(m.add("relu", m.conv(x, 16)), 16)
    x = m.add("relu", m.add("add", y, x))
    y = m.conv(m.add("relu", m.conv(x, 32, stride=2)), 32)
    x = m.add("relu", m.add("add", y, m.conv(x, 32, kernel=1, stride=2)))
    x = m.add("reshape", m.add("global_average_pool", x), shape=(1, 32))
    return m.finish(m.add("gemm", x, m.weight(32, 10), m.weight(10)))


def depthwise() -> Graph:
    """An inverted residual of MobileNet-V2, with a clipped activation, and a swish."""
    m = Maker("depthwise")
    x = m.conv(m.image(), 16, kernel=1)
    y = m.add("clip", m.conv(x, 96, kernel=1), min=0.0, max=6.0)
    y = m.add("clip", m.conv(y, 96, groups=96), min=0.0, max=6.0)
    x = m.add("add", x, m.conv(y, 16, kernel=1))
    x = m.conv(x, 32, kernel=1)
    return m.finish(m.add("mul", x, m.add("sigmoid", x)))


def dense_block() -> Graph:
    """DenseNet: normalisation and activation before convolutions, nested concatenations."""
    m = Maker("dense_block")
    x = m.add("relu", m.conv(m.image(), 32))
    for _ in range(3):
        y = m.add("relu", m.norm(x))
        x = m.add("concat", x, m.conv(m.add("relu", m.conv(y, 64, kernel=1)), 16), axis=1)
    x = m.conv(m.add("relu", m.norm(x)), 32, kernel=1)
    return m.finish(m.add("average_pool", x, kernel=(2, 2), strides=(2, 2)))


def fire() -> Graph:
    """A fire module of SqueezeNet; its concatenation is pooled."""
    m = Maker("fire")
    x = m.add("relu", m.conv(m.image(), 16, kernel=1))
    wide = m.add("relu", m.conv(x, 32))
    narrow = m.add("relu", m.conv(x, 32, kernel=1))
    x = m.add("concat", narrow, wide, axis=1)
    x = m.add("max_pool", x, kernel=(3, 3), strides=(2, 2))
    return m.finish(m.add("global_average_pool", x))


def grouped() -> Graph:
    """Grouped convolutions, and a shuffle of their channels."""
    m = Maker("grouped")
    x = m.add("relu", m.conv(m.image(), 64, kernel=1))
    x = m.add("relu", m.conv(x, 64, groups=16))
    x = m.conv(x, 32, groups=2, kernel=1)
    x = m.add("reshape", x, shape=(1, 4, 8, 6, 6))
    x = m.add("transpose", x, perm=(0, 2, 1, 3, 4))
    x = m.add("reshape", x, shape=(1, 32, 6, 6))
    return m.finish(m.conv(x, 16, groups=2))


def softmax() -> Graph:
    """Softmax written as primitives over the last dimension."""
    m = Maker("softmax")
    x = m.builder.input("x", (4, 12))
    x = m.add("mul", x, m.builder.constant(np.float32(0.5)))
    top = m.add("reduce_max", x, axes=(-1,))
    powers = m.add("exp", m.add("sub", x, top))
    return m.finish(m.add("div", powers, m.add("reduce_sum", powers, axes=(-1,))))


def _layer_norm(m: Maker, x: str) -> str:
    two, epsilon = m.builder.constant(np.float32(2)), m.builder.constant(np.float32(1e-5))
    mean = m.add("reduce_mean", x, axes=(-1,))
    centred = m.add("sub", x, mean)
    variance = m.add("reduce_mean", m.add("pow", centred, two), axes=(-1,))
    deviation = m.add("sqrt", m.add("add", variance, epsilon))
    width = m.builder.shape_of(x)[-1]
    scaled = m.add("mul", m.add("div", centred, deviation), m.weight(width))
    return m.add("add", scaled, m.weight(width))


def layer_norm() -> Graph:
    """Layer normalisation of a sum, written as primitives."""
    m = Maker("layer_norm")
    x = m.builder.input("x", (2, 5, 16))
    y = m.builder.input("y", (2, 5, 16))
    return m.finish(_layer_norm(m, m.add("add", x, y)))


def _gelu(m: Maker, x: str) -> str:
    root, one, half = (m.builder.constant(np.float32(v)) for v in (math.sqrt(2), 1, 0.5))
    inner = m.add("add", m.add("erf", m.add("div", x, root)), one)
    return m.add("mul", m.add("mul", x, inner), half)


def encoder() -> Graph:
    """One layer of BERT: two heads of 8 on 6 positions, everything as ONNX models spell it."""
    m = Maker("encoder")
    x = m.builder.input("x", (1, 6, 16))
    mask = m.builder.input("mask", (1, 1, 1, 6))

    def dense(at: str, width: int) -> str:
        inner = m.builder.shape_of(at)[-1]
        return m.add("add", m.add("matmul", at, m.weight(inner, width)), m.weight(width))

    def heads(at: str, perm: tuple[int, ...]) -> str:
        return m.add("transpose", m.add("reshape", at, shape=(1, 6, 2, 8)), perm=perm)

    q, v = (heads(dense(x, 16), (0, 2, 1, 3)) for _ in range(2))
    k = heads(dense(x, 16), (0, 2, 3, 1))
    scores = m.add("div", m.add("matmul", q, k), m.builder.constant(np.float32(math.sqrt(8))))
    weights = m.add("softmax", m.add("add", scores, mask), axis=-1)
    mixed = m.add("transpose", m.add("matmul", weights, v), perm=(0, 2, 1, 3))
    attended = dense(m.add("reshape", mixed, shape=(1, 6, 16)), 16)
    x = _layer_norm(m, m.add("add", attended, x))
    y = dense(_gelu(m, dense(x, 32)), 16)
    return m.finish(_layer_norm(m, m.add("add", y, x)))


def pieces() -> Graph:
    """Splits, slices and views of many kinds, and a host operator."""
    m = Maker("pieces")
    x = m.builder.input("x", (1, 32, 4, 4))
    left, right = m.builder.apply("split", (m.add("relu", x),), sizes=(16, 16), axis=1)
    x = m.add("add", m.add("exp", left), right)
    x = m.add("slice", x, starts=(8,), ends=(16,), axes=(1,))
    x = m.add("reshape", m.add("tanh", x), shape=(8, 16))
    values, places = m.builder.apply("topk", (x,), k=3)
    moved = m.add("transpose", m.add("unsqueeze", values, axes=(0,)), perm=(1, 0, 2))
    return m.finish(m.add("neg", moved), places)


def integers() -> Graph:
    """Integers and booleans: they compile like floats."""
    m = Maker("integers")
    x = m.builder.input("x", (3, 4), DType.I64)
    y = m.builder.input("y", (3, 4), DType.I64)
    total = m.add("reduce_sum", m.add("mul", x, y), axes=(1,), keepdims=False)
    return m.finish(total, m.add("and", m.add("less", x, y), m.add("equal", x, x)))


NETWORKS: tuple[Callable[[], Graph], ...] = (
    chain,
    basic_block,
    depthwise,
    dense_block,
    fire,
    grouped,
    softmax,
    layer_norm,
    encoder,
    pieces,
    integers,
)
