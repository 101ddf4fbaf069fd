"""The layers that the networks are made of, with weights drawn from one seeded generator.

Weights have the scale of He et al. (2015), variances of batch normalisation lie around 1 and the
branches of residual sums are damped, so that values keep their size through any depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.ops import Array, AttributeValue

BRANCH = 0.3  # the mean scale of the last normalisation in a branch that is summed

_CLASSES = 1000  # of ImageNet


class Layers:
    """Grows a graph layer by layer; mutable, used inside one function.

    Layers take and return names of tensors. Extents along spatial dimensions are given per
    dimension: `(3, 3)` is a kernel of an image, `(3, 3, 3)` one of a video.
    """

    def __init__(self, name: str, seed: int, epsilon: float = 1e-5) -> None:
        self.builder = GraphBuilder(name)
        self._generator = np.random.default_rng(seed)
        self._epsilon = epsilon
        self._counts: dict[str, int] = {}

    def input(self, name: str, shape: Sequence[int], dtype: DType = DType.F32) -> str:
        """An input of the network."""
        return self.builder.input(name, shape, dtype)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.builder.shape_of(name)

    def add(self, operator: str, *inputs: str, **attributes: AttributeValue) -> str:
        """Any operator without weights."""
        return self.builder.apply(operator, inputs, **attributes)[0]

    def finish(self, *outputs: str) -> Graph:
        """The network with these outputs."""
        return self.builder.finish(outputs)

    def weight(self, layer: str, role: str, shape: Sequence[int], deviation: float) -> str:
        """A constant of normal numbers with mean 0."""
        drawn = self._generator.standard_normal(tuple(shape), np.float32)
        drawn *= np.float32(deviation)  # in place: one of VGG-19's takes 400 MB
        return self._hold(layer, role, drawn)

    def uniform(self, layer: str, role: str, count: int, low: float, high: float) -> str:
        """A constant of `count` numbers between two bounds."""
        return self._hold(layer, role, self._generator.uniform(low, high, count))

    def scalar(self, name: str, value: float) -> str:
        """A constant that is one number."""
        return self.builder.constant(np.float32(value), name)

    def conv(
        self,
        x: str,
        channels: int,
        kernel: Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        pad: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = False,
        gain: float = 2.0,
    ) -> str:
        """A convolution; `gain` 2 makes up for a ReLU before it."""
        layer = self._next("conv")
        shape = (channels, self.shape_of(x)[1] // groups, *kernel)
        deviation = math.sqrt(gain / math.prod(shape[1:]))
        operands = [x, self.weight(layer, "weight", shape, deviation)]
        if bias:
            operands.append(self.weight(layer, "bias", (channels,), 0.1))
        return self.builder.add(
            "conv",
            *operands,
            output=layer,
            strides=_each(stride, len(kernel)),
            pads=_each(pad, len(kernel)) * 2,
            groups=groups,
        )

    def norm(self, x: str, scale: float = 1.0) -> str:
        """Batch normalisation with given statistics."""
        layer = self._next("norm")
        count = self.shape_of(x)[1]
        operands = (
            self.uniform(layer, "scale", count, 0.5 * scale, 1.5 * scale),
            self.weight(layer, "bias", (count,), 0.1),
            self.weight(layer, "mean", (count,), 0.1),
            self.uniform(layer, "var", count, 0.5, 1.5),
        )
        return self.builder.add("batch_norm", x, *operands, output=layer, epsilon=self._epsilon)

    def conv_norm_relu(
        self,
        x: str,
        channels: int,
        kernel: Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        pad: int | Sequence[int] = 0,
        groups: int = 1,
    ) -> str:
        """A convolution without bias, batch normalisation and ReLU."""
        y = self.conv(x, channels, kernel, stride=stride, pad=pad, groups=groups)
        return self.add("relu", self.norm(y))

    def max_pool(
        self, x: str, kernel: int, stride: int, pad: int = 0, *, ceil_mode: bool = False
    ) -> str:
        """The greatest element of each window."""
        return self._pool("max_pool", x, kernel, stride, pad, ceil_mode=ceil_mode)

    def average_pool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        """The mean of each window; padding counts, as in PyTorch."""
        return self._pool("average_pool", x, kernel, stride, pad, count_include_pad=True)

    def _pool(
        self, operator: str, x: str, kernel: int, stride: int, pad: int, **more: AttributeValue
    ) -> str:
        count = len(self.shape_of(x)) - 2
        window = {"kernel": (kernel,) * count, "strides": (stride,) * count}
        return self.add(operator, x, **window, pads=(pad,) * (2 * count), **more)

    def linear(self, x: str, outputs: int, gain: float = 1.0) -> str:
        """x (n, k) times weights (outputs, k), transposed, plus a bias."""
        layer = self._next("linear")
        inputs = self.shape_of(x)[1]
        weight = self.weight(layer, "weight", (outputs, inputs), math.sqrt(gain / inputs))
        bias = self.weight(layer, "bias", (outputs,), 0.1)
        return self.builder.add("gemm", x, weight, bias, output=layer, trans_b=True)

    def flatten(self, x: str) -> str:
        """(n, ...) as (n, elements)."""
        batch, *rest = self.shape_of(x)
        return self.add("reshape", x, shape=(batch, math.prod(rest)))

    def classify(self, x: str) -> str:
        """Global mean of each channel, then a linear layer: one score per class."""
        return self.linear(self.flatten(self.add("global_average_pool", x)), _CLASSES)

    def _hold(self, layer: str, role: str, values: Array) -> str:
        return self.builder.constant(values.astype(np.float32, copy=False), f"{layer}.{role}")

    def _next(self, kind: str) -> str:
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        return f"{kind}_{number}"


def _each(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)
