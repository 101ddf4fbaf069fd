"""Programs of all sorts of operators, whose schedules are described."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.targets import AVX512

from tensorwright.graph import Graph, GraphBuilder, Workload
from tensorwright.pipeline import prepare

TARGET = AVX512
ZEROS = np.zeros


def _conv(channels: int, outputs: int, size: int, kernel: int, **attributes: object) -> Graph:
    """A convolution among others, so that its tensors are blocked, and ReLU."""
    b = GraphBuilder("conv")
    x = b.input("x", (1, channels, size, size))
    groups = attributes.get("groups", 1)
    assert isinstance(groups, int)
    shape = (outputs, channels // groups, kernel, kernel)
    x = b.add("conv", x, b.constant(ZEROS(shape, np.float32)), **attributes)
    return b.finish([b.add("relu", x)])


def _chain() -> Graph:
    b = GraphBuilder("chain")
    x = b.input("x", (1, 32, 14, 14))
    for _ in range(3):
        weight = b.constant(ZEROS((32, 32, 3, 3), np.float32))
        x = b.add("relu", b.add("conv", x, weight, pads=(1, 1, 1, 1)))
    return b.finish([x])


def _matmul(rows: int, inner: int, columns: int) -> Graph:
    b = GraphBuilder("matmul")
    x = b.add("matmul", b.input("x", (rows, inner)), b.input("y", (inner, columns)))
    return b.finish([b.add("relu", x)])


def _softmax() -> Graph:
    b = GraphBuilder("softmax")
    return b.finish([b.add("softmax", b.input("x", (48, 100)))])


def _pool() -> Graph:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 5, 39, 39))
    return b.finish([b.add("max_pool", x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))])


def _elementwise() -> Graph:
    b = GraphBuilder("elementwise")
    x = b.input("x", (64, 300))
    return b.finish([b.add("add", x, b.add("relu", x))])


GRAPHS: dict[str, Callable[[], Graph]] = {
    "blocked convolutions": _chain,
    "depthwise": lambda: _conv(32, 32, 28, 3, pads=(1, 1, 1, 1), groups=32),
    "strided": lambda: _conv(3, 16, 33, 7, strides=(2, 2), pads=(3, 3, 3, 3)),
    "grouped": lambda: _conv(32, 32, 14, 3, pads=(1, 1, 1, 1), groups=4),
    "matmul": lambda: _matmul(64, 96, 128),
    "odd matmul": lambda: _matmul(37, 100, 75),
    "softmax": _softmax,
    "pool": _pool,
    "elementwise": _elementwise,
}
BLOCKS_INSIDE = {"grouped", "strided"}
"""Stored in plain layout from a product in blocks: how many of them a tile of channels touches is
bounded where the tile is open, and counted where it is taken."""


def is_too_large(name: str, decisions: dict[str, int]) -> bool:
    """Whether a band is larger than its axis: lowered, it is computed whole in every band."""
    return name == "pool" and decisions.get("band", 1) * decisions.get("more_rows", 1) > 5


def workload_of(name: str) -> Workload:
    """The one workload, or that in the middle, whose neighbours are blocked as it is."""
    found = prepare(GRAPHS[name](), TARGET).workloads
    return found[len(found) // 2]
