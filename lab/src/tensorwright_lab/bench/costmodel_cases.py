"""The workloads on which cost models are judged: ten, of seven families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.base import CpuTarget, override
from tensorwright.graph import Graph, GraphBuilder, Workload
from tensorwright.pipeline import prepare


@dataclass(frozen=True, slots=True)
class Case:
    """A workload and its family: what is left out together in leave-one-operator-out."""

    name: str
    family: str
    workload: Workload


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Channels in and out, height and width, kernel, stride, groups; ReLU follows."""

    channels: int
    outputs: int
    size: int
    kernel: int
    stride: int = 1
    groups: int = 1

    def graph(self) -> Graph:
        """The convolution with constant weights."""
        builder = GraphBuilder("convolution")
        x = builder.input("x", (1, self.channels, self.size, self.size))
        shape = (self.outputs, self.channels // self.groups, self.kernel, self.kernel)
        weight = builder.constant(np.zeros(shape, np.float32))
        pads = (self.kernel // 2,) * 4
        strides = (self.stride, self.stride)
        conv = builder.add("conv", x, weight, pads=pads, strides=strides, groups=self.groups)
        return builder.finish([builder.add("relu", conv)])


def _matmul(left: Sequence[int], right: Sequence[int]) -> Graph:
    builder = GraphBuilder("matmul")
    out = builder.add("matmul", builder.input("a", left), builder.input("b", right))
    return builder.finish([out])


def _transposed(channels: int, outputs: int, size: int) -> Graph:
    builder = GraphBuilder("transposed")
    x = builder.input("x", (1, channels, size, size))
    weight = builder.constant(np.zeros((channels, outputs, 4, 4), np.float32))
    out = builder.add("conv_transpose", x, weight, strides=(2, 2), pads=(1, 1, 1, 1))
    return builder.finish([builder.add("relu", out)])


def _pool(shape: Sequence[int]) -> Graph:
    builder = GraphBuilder("pool")
    x = builder.input("x", shape)
    out = builder.add("max_pool", x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    return builder.finish([out])


_CASES: tuple[tuple[str, str, Callable[[], Graph]], ...] = (
    ("conv 3x3 64 56x56", "conv", _Convolution(64, 64, 56, 3).graph),
    ("conv 3x3 256 14x14", "conv", _Convolution(256, 256, 14, 3).graph),
    ("conv 1x1 256-64 56x56", "conv", _Convolution(256, 64, 56, 1).graph),
    ("conv 7x7/2 3-64 224x224", "conv", _Convolution(3, 64, 224, 7, 2).graph),
    ("depthwise 3x3 96 56x56", "depthwise", _Convolution(96, 96, 56, 3, groups=96).graph),
    ("grouped 3x3 128/4 28x28", "grouped", _Convolution(128, 128, 28, 3, groups=4).graph),
    ("matmul 512x512x512", "matmul", lambda: _matmul((512, 512), (512, 512))),
    ("batched matmul 12x128x64x128", "batched", lambda: _matmul((12, 128, 64), (12, 64, 128))),
    ("transposed 4x4/2 256-128 8x8", "transposed", lambda: _transposed(256, 128, 8)),
    ("max pool 3x3/2 64 112x112", "pool", lambda: _pool((1, 64, 112, 112))),
)


def cases(target: CpuTarget) -> tuple[Case, ...]:
    """The ten, as they appear in networks that are compiled for a target."""
    listed = []
    for name, family, make in _CASES:
        with override(default_schedule="rule"):  # the same workloads, whatever a model thinks
            (workload,) = prepare(make(), target).workloads
        listed.append(Case(name, family, workload))
    return tuple(listed)
