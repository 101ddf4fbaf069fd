"""The fixed programs whose decisions for graphics processors are kept.

Operators of the suite in `f32`, and small networks in `f32` and `f16`; cards take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from tests.grids import OPENCL_GENERIC, SM_80, SM_90A

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder

CARDS = (SM_90A, SM_80, OPENCL_GENERIC)
OPERATORS = (
    *("C1D.2 batch 1", "C2D.1 batch 1", "C2D.4 batch 16", "C3D.2 batch 1", "GMM.1 batch 16"),
    *("GMM.2 batch 1", "GRP.2 batch 1", "DIL.3 batch 1", "DEP.1 batch 1", "T2D.1 batch 1"),
    *("CAP.4 batch 1", "NRM.2 batch 1", "ConvLayer.2 batch 1", "TBS.2 batch 1"),
)


class _Builder(GraphBuilder):
    """A builder of networks in one type of numbers."""

    def __init__(self, name: str, dtype: DType) -> None:
        super().__init__(name)
        self.dtype = dtype

    def given(self, *shape: int, name: str = "x") -> str:
        """An input."""
        return self.input(name, shape, self.dtype)

    def weights(self, *shape: int) -> str:
        """A constant, of zeros: no decision depends on what it holds."""
        return self.constant(np.zeros(shape, self.dtype.numpy))


def _dense(rows: int, terms: int, columns: int) -> Callable[[_Builder], str]:
    def network(b: _Builder) -> str:
        product = b.add("matmul", b.given(rows, terms), b.weights(terms, columns))
        return b.add("relu", b.add("add", product, b.weights(columns)))

    return network


def _products(batch: int, rows: int, terms: int, columns: int) -> Callable[[_Builder], str]:
    def network(b: _Builder) -> str:
        left, right = b.given(batch, rows, terms), b.given(batch, terms, columns, name="y")
        return b.add("matmul", left, right)

    return network


def _convolution(
    channels: int, filters: int, size: int, taps: int, stride: int = 1, groups: int = 1
) -> Callable[[_Builder], str]:
    def network(b: _Builder) -> str:
        kernel = b.weights(filters, channels // groups, taps, taps)
        pads, strides = (taps // 2,) * 4, (stride, stride)
        x = b.given(1, channels, size, size)
        y = b.add("conv", x, kernel, b.weights(filters), pads=pads, strides=strides, groups=groups)
        return b.add("relu", y)

    return network


def _attention(b: _Builder) -> str:
    query, key, value = (b.given(8, 128, 64, name=name) for name in ("q", "k", "v"))
    scores = b.add("matmul", query, b.add("transpose", key, perm=(0, 2, 1)))
    return b.add("matmul", b.add("softmax", scores, axis=-1), value)


def _layer_norm(b: _Builder) -> str:
    return b.add("layer_norm", b.given(128, 768), b.weights(768), b.weights(768), axis=-1)


NETWORKS: Mapping[str, Callable[[_Builder], str]] = {
    "row": _dense(1, 1024, 1000),
    "product": _dense(512, 512, 512),
    "products": _products(12, 128, 64, 128),
    "pointwise": _convolution(256, 64, 28, 1),
    "winograd": _convolution(64, 64, 28, 3),
    "strided": _convolution(32, 64, 56, 3, stride=2),
    "depthwise": _convolution(96, 96, 28, 5, groups=96),
    "attention": _attention,
    "layer_norm": _layer_norm,
    "softmax": lambda b: b.add("softmax", b.given(64, 1000), axis=-1),
    "pool": lambda b: b.add(
        "max_pool", b.given(1, 64, 56, 56), kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)
    ),
}

IN_HALVES = ("product", "products", "winograd", "depthwise", "attention", "layer_norm")


def network(name: str, dtype: DType) -> Graph:
    """The network of that name."""
    b = _Builder(name, dtype)
    return b.finish([NETWORKS[name](b)])
