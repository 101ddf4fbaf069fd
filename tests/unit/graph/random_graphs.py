"""Random small graphs for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder, Layout

NAMES = st.text(min_size=1, max_size=6)
UNARY = ("relu", "neg", "abs", "identity", "transpose", "clip", "cast", "reduce", "reshape", "pad")
BINARY = ("add", "sub", "mul", "max", "concat")


def _unary(b: GraphBuilder, kind: str, x: str, draw: st.DrawFn) -> str:
    shape = b.shape_of(x)
    match kind:
        case "transpose":
            perm = tuple(draw(st.permutations(range(len(shape)))))
            return b.add("transpose", x, perm=perm)
        case "clip":
            low = draw(st.floats(-2, 0))
            return b.add("clip", x, min=low, max=draw(st.sampled_from((0.5, 1e30, float("inf")))))
        case "cast":
            return b.add("cast", x, to=DType.F32)
        case "reduce":
            axis = draw(st.integers(0, len(shape) - 1))
            return b.add("reduce_mean", x, axes=(axis,), keepdims=True)
        case "reshape":
            return b.add("reshape", x, shape=(*shape[:-2], shape[-2] * shape[-1], 1))
        case "pad":
            pads = tuple(draw(st.integers(0, 1)) for _ in range(2 * len(shape)))
            return b.add("pad", x, pads=pads, value=draw(st.sampled_from((0.0, -1.5))))
        case _:
            return b.add(kind, x)


def _binary(b: GraphBuilder, kind: str, x: str, y: str) -> str:
    if b.shape_of(x) != b.shape_of(y):
        return b.add("relu", x)
    if kind == "concat":
        return b.add("concat", x, y, axis=0)
    return b.add(kind, x, y)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph over one input and one constant of the same shape, with one to ten nodes."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=2, max_size=3)))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    b = GraphBuilder(draw(NAMES))
    tensors = [b.input(draw(NAMES), shape)]
    constant = generator.normal(size=shape).astype(np.float32)
    tensors.append(b.constant(constant, b.fresh(draw(NAMES))))
    for _ in range(draw(st.integers(1, 10))):
        x, y = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
        kind = draw(st.sampled_from(UNARY + BINARY))
        if kind in UNARY:
            tensors.append(_unary(b, kind, x, draw))
        else:
            tensors.append(_binary(b, kind, x, y))
    outputs = draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=3, unique=True))
    if draw(st.booleans()):
        last = tensors[-1]
        rank = len(b.shape_of(last))
        order = tuple(draw(st.permutations(range(rank))))
        b.set_layout(last, Layout(order=order))
    return b.finish(outputs)
