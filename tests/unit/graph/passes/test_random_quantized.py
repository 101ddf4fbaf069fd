"""Random quantised networks: on each kind of processor they compute what their sums of codes mean.

Scales are powers of two, and sums are floats exactly, so every way to compute a network gives the
same numbers.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.draws import random_source
from tests.targets import AVX2, AVX512, NEON

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder, interpret, simplify, verify
from tensorwright.graph.passes.quantized import lower_quantized

KINDS = (
    AVX2,
    replace(AVX512, features=(*AVX512.features, "avx512vnni")),
    replace(NEON, features=(*NEON.features, "dotprod")),
)
GRAPHS = 10
"""Daily; a drill draws again and again."""


class Drawing:
    """A network that grows layer by layer, between codes and codes."""

    def __init__(self, source: Random) -> None:
        self.source, self.builder = source, GraphBuilder()
        self.numbers = np.random.default_rng(source.randrange(1 << 30))
        self.channels, self.size = source.choice((8, 16, 32)), source.choice((5, 8))
        self.steps = 0

    def rounded(self, x: str) -> str:
        """Numbers as codes with a random scale and zero point, and back."""
        b, source = self.builder, self.source
        kind = source.choice((np.uint8, np.int8))
        at = source.choice((0, 0, 128 if kind is np.uint8 else -7, 3))
        scale = b.constant(np.array(2.0 ** source.choice((-4, -5, -3)), np.float32))
        zero = b.constant(np.array(at, kind))
        codes = b.add("quantize_linear", x, scale, zero)
        return b.add("dequantize_linear", codes, scale, zero)

    def weights(self, *shape: int, axis: int = 0) -> str:
        """Constant codes, with a scale for each of an extent or for all."""
        b = self.builder
        codes = b.constant(self.numbers.integers(-127, 128, shape).astype(np.int8))
        is_one = self.source.random() < 0.5
        powers = self.numbers.integers(-11, -8, () if is_one else shape[axis])
        scales = b.constant(np.exp2(powers).astype(np.float32))
        return b.add("dequantize_linear", codes, scales, axis=axis)

    def layer(self, x: str) -> str:
        """One more layer, whose results are codes again."""
        b, source, channels = self.builder, self.source, self.channels
        kind = source.choice(("conv", "conv", "window", "depthwise", "clip", "pool", "concat"))
        if kind in ("conv", "window", "depthwise"):
            taps = 1 if kind == "conv" else 3
            groups = channels if kind == "depthwise" else source.choice((1, 1, 2))
            made = channels if kind == "depthwise" else source.choice((8, 16, 24, 32))
            w = self.weights(made, channels // groups, taps, taps)
            bias = b.constant(self.numbers.integers(-64, 64, made).astype(np.float32) / 32)
            y = b.add("conv", x, w, bias, groups=groups, pads=(taps // 2,) * 4)
            if made == channels and source.random() < 0.5:
                y = b.add("add", y, x)
            self.channels = made
        elif kind == "clip":
            y = b.add("clip", x, min=0.0, max=source.choice((1.0, 6.0, 100.0)))
        elif kind == "pool":
            y = b.add("max_pool", x, kernel=(3, 3), pads=(1, 1, 1, 1))
        else:
            y = b.add("concat", x, self.rounded(b.add("neg", x)), axis=1)
            self.channels *= 2
        return self.rounded(y)

    def graph(self) -> Graph:
        """Some layers, then rows times a matrix."""
        b = self.builder
        x = self.rounded(b.input("x", (1, self.channels, self.size, self.size)))
        for _ in range(self.source.randint(2, 4)):
            x = self.layer(x)
        rows = b.add("reshape", x, shape=(self.channels, self.size * self.size))
        rows = self.rounded(b.add("transpose", rows, perm=(1, 0)))
        return b.finish([b.add("matmul", rows, self.weights(self.channels, 16, axis=1))])


def drawn(source: Random) -> tuple[Graph, dict[str, np.ndarray]]:
    graph = verify(Drawing(source).graph())
    shape = graph.types["x"].extents
    x = np.random.default_rng(source.randrange(1 << 30)).standard_normal(shape)
    return graph, {"x": (8 * x).astype(np.float32)}


@pytest.mark.drawn
def test_each_kind_of_processor_computes_the_same() -> None:
    source, multiplied = random_source(0), set[DType]()
    for _ in range(GRAPHS):
        graph, x = drawn(source)
        (expected,) = interpret(graph, x).values()
        for target in KINDS:
            lowered = verify(simplify(lower_quantized(simplify(graph), target)))
            (found,) = interpret(lowered, x).values()
            np.testing.assert_array_equal(found, expected, err_msg=f"{target.name}\n{graph}")
            multiplied |= {
                lowered.types[node.inputs[0]].dtype
                for node in lowered.nodes
                if node.operator in ("conv_integer", "matmul_integer")
            }
    assert multiplied == {DType.U8, DType.I8, DType.I16}
