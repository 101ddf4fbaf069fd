"""A graph that grows by drawn layers, and the draws that all families share."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.ops import AttributeValue

_WEIGHTS = 1 << 16  # numbers that are drawn; larger constants repeat them
_SIZES = (7, 8, 10, 12, 13, 14, 16, 20, 24, 26, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 224)
_LENGTHS = (1, 2, 8, 10, 16, 24, 32, 49, 50, 64, 77, 100, 128, 144, 196, 197, 256, 300, 400, 512)
_WIDTHS = (32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 400, 512, 640, 768, 1024)
_DRAWS = 100
_NEAR = 8.0  # multiply-adds within such a factor of what a layer may have
_ODD_CHANNELS = (1, 2, 3, 4, 5, 6, 10, 12, 18, 20, 21, 25, 27, 36, 50, 52, 68, 76, 84, 100, 116)

Extents = TypeVar("Extents", bound=tuple[int, ...])


class Drawer:
    """Grows one graph; mutable, used inside one function.

    Layers take and return names of tensors. `work` is how many multiply-adds one layer may have,
    about: extents are drawn until they keep to it.
    """

    def __init__(self, name: str, seed: str, work: float) -> None:
        self.random = random.Random(seed)
        self.work = work
        self.builder = GraphBuilder(name)
        self._numbers = (
            np.random.default_rng(list(seed.encode()))
            .uniform(-1.0, 1.0, _WEIGHTS)
            .astype(np.float32)
        )

    # Draws

    def chance(self, share: float) -> bool:
        """True in so large a share of draws."""
        return self.random.random() < share

    def pick(self, *values: int) -> int:
        """One of some numbers."""
        return self.random.choice(values)

    def channels(self, most: int = 768, least: int = 1) -> int:
        """A number of channels: mostly of 8, 16 or 32, at times an odd one."""
        if self.chance(0.12):
            return max(least, min(most, self.random.choice(_ODD_CHANNELS)))
        step = self.pick(8, 8, 16, 16, 32, 64)
        drawn: float = 2.0 ** self.random.uniform(3.0, math.log2(max(most, 8)))
        return max(least, min(most, max(1, round(drawn / step)) * step))

    def size(self, most: int = 224, least: int = 7) -> int:
        """An extent of an image."""
        return self.random.choice([size for size in _SIZES if least <= size <= most])

    def image(self, most: int = 224, least: int = 7) -> tuple[int, int]:
        """Height and width, mostly the same."""
        height = self.size(most, least)
        return (height, height) if self.chance(0.75) else (height, self.size(most, least))

    def length(self, most: int = 512) -> int:
        """A number of tokens or time steps."""
        return self.random.choice([length for length in _LENGTHS if length <= most])

    def width(self, most: int = 1024) -> int:
        """How many features a token has."""
        return self.random.choice([width for width in _WIDTHS if width <= most])

    def batch(self) -> int:
        """Mostly 1."""
        return self.random.choice((1, 1, 1, 1, 1, 1, 2, 4, 8))

    def fitting(self, draw: Callable[[], Extents], work: Callable[..., float]) -> Extents:
        """The first result of `draw` whose multiply-adds are near those that a layer may have. If
        none is near, the largest one below is taken.
        """
        best, most = draw(), -1.0
        for _ in range(_DRAWS):
            drawn = draw()
            amount = work(*drawn)
            if most < amount <= self.work:
                best, most = drawn, amount
            if most * _NEAR >= self.work:
                break
        return best

    # Layers

    def input(self, shape: Sequence[int], dtype: DType = DType.F32) -> str:
        """An input of the network."""
        return self.builder.input(self.builder.fresh("x"), shape, dtype)

    def shape(self, x: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.builder.shape_of(x)

    def add(self, operator: str, *inputs: str, **attributes: AttributeValue) -> str:
        """Any operator."""
        return self.builder.apply(operator, inputs, **attributes)[0]

    def constant(self, *shape: int, low: float = -1.0, high: float = 1.0) -> str:
        """Numbers between two bounds."""
        values = np.resize(self._numbers, shape)
        return self.builder.constant(
            (values + 1.0) * np.float32((high - low) / 2) + np.float32(low)
        )

    def weight(self, *shape: int, inputs: int) -> str:
        """A weight whose products with `inputs` inputs each keep their size."""
        bound = math.sqrt(3.0 / max(1, inputs))
        return self.constant(*shape, low=-bound, high=bound)

    def scalar(self, value: float) -> str:
        """A constant that is one number."""
        return self.builder.constant(np.float32(value))

    def integers(self, *shape: int, high: int) -> str:
        """Positions 0..high-1."""
        values = self.random.choices(range(high), k=math.prod(shape))
        return self.builder.constant(np.array(values, np.int64).reshape(shape))

    def finish(self, *outputs: str) -> Graph:
        """The network with these outputs."""
        return self.builder.finish(outputs)

    def activation(self, x: str, none: float = 0.15) -> str:
        """A drawn activation, at times as the primitives that exporters write; maybe none."""
        if self.chance(none):
            return x
        return self.random.choice(_ACTIVATIONS)(self, x)

    def linear(self, x: str, outputs: int, *, bias: bool = True) -> str:
        """x (..., k) times weights (k, outputs)."""
        inputs = self.shape(x)[-1]
        y = self.add("matmul", x, self.weight(inputs, outputs, inputs=inputs))
        return self.add("add", y, self.constant(outputs)) if bias else y

    def conv(
        self,
        x: str,
        channels: int,
        kernel: Sequence[int],
        *,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        dilation: int = 1,
        bias: bool = True,
    ) -> str:
        """A convolution; padded to keep the size where `pad` is None."""
        inputs = self.shape(x)[1] // groups
        weight = self.weight(channels, inputs, *kernel, inputs=inputs * math.prod(kernel))
        pads = [dilation * (k - 1) // 2 if pad is None else pad for k in kernel]
        operands = [x, weight, self.constant(channels)] if bias else [x, weight]
        return self.add(
            "conv",
            *operands,
            strides=(stride,) * len(kernel),
            pads=(*pads, *pads),
            dilations=(dilation,) * len(kernel),
            groups=groups,
        )

    def channel_norm(self, x: str) -> str:
        """Batch normalisation, as a node or as a product and a sum per channel."""
        count = self.shape(x)[1]
        if self.chance(0.7):
            operands = (self.constant(count, low=0.5, high=1.5), self.constant(count))
            rest = (self.constant(count), self.constant(count, low=0.5, high=1.5))
            return self.add("batch_norm", x, *operands, *rest)
        ones = (1,) * (len(self.shape(x)) - 2)
        scaled = self.add("mul", x, self.constant(1, count, *ones, low=0.5, high=1.5))
        return self.add("add", scaled, self.constant(1, count, *ones))

    def row_norm(self, x: str) -> str:
        """Layer or RMS normalisation of the last dimension, as a node or as primitives."""
        count = self.shape(x)[-1]
        scale = self.constant(count, low=0.5, high=1.5)
        if self.chance(0.3):
            return self._rms_norm(x, scale)
        bias = self.constant(count)
        if self.chance(0.6):
            return self.add("layer_norm", x, scale, bias)
        mean = self.add("reduce_mean", x, axes=(-1,))
        centred = self.add("sub", x, mean)
        square = (
            self.add("pow", centred, self.scalar(2.0))
            if self.chance(0.5)
            else self.add("mul", centred, centred)
        )
        variance = self.add("add", self.add("reduce_mean", square, axes=(-1,)), self.scalar(1e-5))
        normed = self.add("div", centred, self.add("sqrt", variance))
        return self.add("add", self.add("mul", normed, scale), bias)

    def _rms_norm(self, x: str, scale: str) -> str:
        if self.chance(0.4):
            return self.add("rms_norm", x, scale)
        mean = self.add("reduce_mean", self.add("mul", x, x), axes=(-1,))
        mean = self.add("add", mean, self.scalar(1e-6))
        normed = (
            self.add("mul", x, self.add("rsqrt", mean))
            if self.chance(0.5)
            else self.add("div", x, self.add("sqrt", mean))
        )
        return self.add("mul", normed, scale)


def _plain(operator: str, **attributes: AttributeValue) -> Callable[[Drawer, str], str]:
    return lambda net, x: net.add(operator, x, **attributes)


def gelu_by_erf(net: Drawer, x: str) -> str:
    """x/2 * (1 + erf(x / sqrt 2)), as exporters write it."""
    wide = net.add("erf", net.add("div", x, net.scalar(math.sqrt(2.0))))
    product = net.add("mul", x, net.add("add", wide, net.scalar(1.0)))
    return net.add("mul", product, net.scalar(0.5))


def _gelu_by_tanh(net: Drawer, x: str) -> str:
    cube = net.add("mul", net.add("pow", x, net.scalar(3.0)), net.scalar(0.044715))
    inner = net.add("mul", net.add("add", x, cube), net.scalar(math.sqrt(2.0 / math.pi)))
    one = net.add("add", net.add("tanh", inner), net.scalar(1.0))
    return net.add("mul", net.add("mul", x, net.scalar(0.5)), one)


def _silu(net: Drawer, x: str) -> str:
    return net.add("mul", x, net.add("sigmoid", x))


def _mish(net: Drawer, x: str) -> str:
    return net.add("mul", x, net.add("tanh", net.add("softplus", x)))


_ACTIVATIONS: tuple[Callable[[Drawer, str], str], ...] = (
    _plain("relu"),
    _plain("relu"),
    _plain("relu"),
    _plain("clip", min=0.0, max=6.0),
    _plain("leaky_relu", alpha=0.1),
    _plain("hard_swish"),
    _plain("gelu"),
    _plain("sigmoid"),
    _plain("tanh"),
    _plain("elu"),
    _silu,
    _silu,
    _mish,
    gelu_by_erf,
    _gelu_by_tanh,
)
