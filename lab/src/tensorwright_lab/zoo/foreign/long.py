"""Long graphs of open sizes, one of each kind: a layer after another until there are enough nodes.

They show how the time of compiling grows.  Each layer asks for sizes as exporters write that: a
Shape, a Gather, a Concat, a Reshape.  Weights are small, and no two layers share any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tensorwright.base import Array


@dataclass(slots=True)
class _Writer:
    """A graph that grows."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    kept: dict[str, Array] = field(default_factory=dict)
    inputs: dict[str, tuple[int, tuple[int | str, ...]]] = field(default_factory=dict)

    def given(self, name: str, *shape: int | str, dtype: int = onnx.TensorProto.FLOAT) -> str:
        """An input."""
        self.inputs[name] = dtype, shape
        return name

    def weight(self, *shape: int) -> str:
        """Small random numbers."""
        drawn = np.random.default_rng(len(self.kept)).standard_normal(shape)
        return self.of(0.2 * drawn.astype(np.float32))

    def of(self, value: object) -> str:
        """A constant."""
        name = f"c{len(self.kept)}"
        self.kept[name] = np.asarray(value)
        return name

    def add(self, operator: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """A node; its result, or a tuple of them."""
        names = tuple(f"n{len(self.nodes)}_{k}" for k in range(results))
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if results == 1 else names

    def size(self, tensor: str, axis: int) -> str:
        """An extent of a tensor, as exporters ask for it."""
        return str(self.add("Gather", self.add("Shape", tensor), self.of([axis])))

    def reshape(self, tensor: str, *extents: int | str) -> str:
        """A tensor in another shape, of numbers and extents."""
        parts = [self.of([each]) if isinstance(each, int) else each for each in extents]
        return str(self.add("Reshape", tensor, self.add("Concat", *parts, axis=0)))

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The file."""
        infos = [helper.make_tensor_value_info(k, t, s) for k, (t, s) in self.inputs.items()]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        kept = [numpy_helper.from_array(value, name) for name, value in self.kept.items()]
        graph = helper.make_graph(self.nodes, "long", infos, results, kept)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _layers(w: _Writer, nodes: int, x: str, layer: Callable[[str], str]) -> str:
    """Layers until there are so many nodes."""
    while len(w.nodes) < nodes:
        x = layer(x)
    return x


def _detector(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Convolutions down three levels, up again with sums, and heads in one row of boxes."""
    image = w.given("image", "batch", 3, "rows", "columns")

    def convolved(x: str, inner: int, outer: int, stride: int = 1) -> str:
        weights = w.weight(outer, inner, 3, 3)
        y = w.add("Conv", x, weights, w.weight(outer), strides=[stride] * 2, pads=[1] * 4)
        return str(w.add("Mul", y, w.add("Sigmoid", y)))

    levels, x, inner = [], image, 3
    for level in range(4):
        outer = 8 + 4 * level
        x = convolved(x, inner, outer, 2)
        while len(w.nodes) < (nodes - 70) * (level + 1) // 4:
            x = w.add("Add", x, convolved(convolved(x, outer, outer), outer, outer))
        levels.append(w.add("Conv", x, w.weight(8, outer, 1, 1)))
        inner = outer
    top, boxes = levels[-1], []
    for level in reversed(levels):
        if level != top:
            to = w.add("Concat", *(w.size(level, axis) for axis in range(4)), axis=0)
            up = w.add("Resize", top, "", "", to, mode="nearest", nearest_mode="floor")
            top = w.add("Add", level, up)
        head = w.add("Transpose", convolved(top, 8, 12), perm=[0, 2, 3, 1])
        boxes.append(w.reshape(head, w.size(top, 0), -1, 6))
    joined = w.add("Concat", *boxes, axis=1)
    return (w.add("Softmax", joined, axis=-1),)


def _words(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Convolutions over words, with sums and norms."""
    ids = w.given("words", "batch", "time", dtype=onnx.TensorProto.INT64)
    x = w.add("Transpose", w.add("Gather", w.weight(50, 24), ids), perm=[0, 2, 1])

    def layer(x: str) -> str:
        y = w.add("Relu", w.add("Conv", x, w.weight(24, 24, 3), w.weight(24), pads=[1, 1]))
        y = w.add("Add", x, w.add("Conv", y, w.weight(24, 24, 5), w.weight(24), pads=[2, 2]))
        y = w.add("Transpose", y, perm=[0, 2, 1])
        y = w.add("LayerNormalization", y, w.weight(24), w.weight(24))
        return str(w.add("Transpose", y, perm=[0, 2, 1]))

    return (_layers(w, nodes, x, layer),)


def _windows(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Convolutions without padding, each of which shortens the signal, and a last pool."""
    x = w.add("Conv", w.given("signal", "batch", 1, "samples"), w.weight(16, 1, 16), strides=[4])

    def layer(x: str) -> str:
        y = w.add("Conv", x, w.weight(32, 16, 3), w.weight(32))
        left, right = w.add("Split", y, results=2, axis=1)
        return str(w.add("Mul", w.add("Tanh", left), w.add("Sigmoid", right)))

    return (w.add("MaxPool", _layers(w, nodes, x, layer), kernel_shape=[2], strides=[2]),)


def _decoder(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Attention with a cache in front of each layer, and a triangle as the mask."""
    words = w.given("words", "batch", "time", dtype=onnx.TensorProto.INT64)
    x = w.add("Gather", w.weight(60, 32), words)
    caches: list[str] = []

    def layer(x: str) -> str:
        past = w.given(f"past{len(caches)}", "batch", 4, "past", 8)
        batch, time = w.size(x, 0), w.size(x, 1)
        normed = w.add("LayerNormalization", x, w.weight(32), w.weight(32))
        q, k, v = (
            w.add(
                "Transpose",
                w.reshape(w.add("MatMul", normed, w.weight(32, 32)), batch, time, 4, 8),
                perm=[0, 2, 1, 3],
            )
            for _ in range(3)
        )
        k = w.add("Concat", past, k, axis=2)
        caches.append(k)
        v = w.add("Concat", past, v, axis=2)
        scores = w.add("MatMul", q, w.add("Transpose", k, perm=[0, 1, 3, 2]))
        total = w.size(k, 2)
        ones = w.add("Expand", w.of(np.ones((), bool)), w.add("Concat", time, total, axis=0))
        seen = w.add("Trilu", ones, w.add("Sub", total, time), upper=0)
        scores = w.add("Where", seen, scores, w.of(np.float32(-1e9)))
        mixed = w.add("MatMul", w.add("Softmax", scores, axis=-1), v)
        mixed = w.reshape(w.add("Transpose", mixed, perm=[0, 2, 1, 3]), batch, time, 32)
        x = w.add("Add", x, w.add("MatMul", mixed, w.weight(32, 32)))
        return str(w.add("Add", x, w.add("Relu", w.add("MatMul", x, w.weight(32, 32)))))

    last = _layers(w, nodes, x, layer)
    return (last, *caches)


def _recurrent(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Recurrent layers of both directions with first states of zeros, and norms between them."""
    frames = w.given("frames", "time", "batch", 16)

    def layer(x: str) -> str:
        shape = w.add("Concat", w.of([2]), w.size(x, 1), w.of([8]), axis=0)
        zeros = w.add("ConstantOfShape", shape)
        operator, gates = (("GRU", 3), ("LSTM", 4))[len(w.nodes) % 2]
        states = (zeros,) * (1 if operator == "GRU" else 2)
        weights = (w.weight(2, 8 * gates, 16), w.weight(2, 8 * gates, 8), w.weight(2, 16 * gates))
        both = w.add(operator, x, *weights, "", *states, hidden_size=8, direction="bidirectional")
        joined = w.add("Transpose", both, perm=[0, 2, 1, 3])
        joined = w.reshape(joined, w.size(x, 0), w.size(x, 1), 16)
        return str(w.add("LayerNormalization", joined, w.weight(16), w.weight(16)))

    return (_layers(w, nodes, frames, layer),)


def _graph_network(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Messages along edges: gathers of both ends, a product, sums at the receivers."""
    x = w.given("nodes", "nodes", 16)
    edges = w.given("edges", 2, "edges", dtype=onnx.TensorProto.INT64)

    def layer(x: str) -> str:
        source, target = (w.add("Gather", edges, w.of(k), axis=0) for k in range(2))
        ends = [w.add("Gather", x, end, axis=0) for end in (source, target)]
        message = w.add("MatMul", w.add("Concat", *ends, axis=1), w.weight(32, 16))
        message = w.add("Relu", message)
        zeros = w.add("ConstantOfShape", w.add("Shape", x))
        at = w.add("Unsqueeze", target, w.of([1]))
        at = w.add("Expand", at, w.add("Shape", message))
        total = w.add("ScatterElements", zeros, at, message, axis=0, reduction="add")
        return str(w.add("Add", x, w.add("MatMul", total, w.weight(16, 16))))

    return (_layers(w, nodes, x, layer),)


def _gathers(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Rows chosen by numbers that were themselves chosen."""
    x = w.given("rows", "rows", 8)
    order = w.given("order", "count", dtype=onnx.TensorProto.INT64)

    def layer(x: str) -> str:
        y = w.add("Gather", x, order, axis=0)
        return str(w.add("Mul", w.add("Add", y, w.weight(8)), w.of(np.float32(0.5))))

    return (_layers(w, nodes, x, layer),)


def _u_nets(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Down by pools, up by transposed convolutions or by resizing, joined with what was there."""
    image = w.given("image", "batch", 4, "rows", "columns")

    def convolved(x: str, inner: int, outer: int) -> str:
        y = w.add("Conv", x, w.weight(outer, inner, 3, 3), w.weight(outer), pads=[1] * 4)
        return str(w.add("Relu", y))

    def layer(x: str) -> str:
        high = convolved(x, 4, 8)
        low = convolved(w.add("MaxPool", high, kernel_shape=[2, 2], strides=[2, 2]), 8, 8)
        up = w.add("ConvTranspose", low, w.weight(8, 8, 2, 2), strides=[2, 2])
        below, right = (w.add("Sub", w.size(high, k), w.size(up, k)) for k in (2, 3))
        pads = w.add("Concat", w.of([0, 0, 0, 0, 0, 0]), below, right, axis=0)
        joined = w.add("Concat", high, w.add("Pad", up, pads), axis=1)
        to = w.add("Concat", *(w.size(high, k) for k in range(4)), axis=0)
        resized = w.add("Resize", low, "", "", to, mode="linear")
        return convolved(w.add("Concat", joined, resized, axis=1), 24, 4)

    return (_layers(w, nodes, image, layer),)


def _spectra(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Frames of a signal, their powers, and convolutions over time with a skip."""
    signal = w.given("signal", "batch", "samples", 1)
    window = w.of(np.hanning(32).astype(np.float32))
    parts = w.add("STFT", signal, w.of(16), window, onesided=1)
    power = w.add("ReduceSumSquare", parts, axes=[3], keepdims=0)
    x = w.add("Transpose", w.add("Log", w.add("Add", power, w.of(np.float32(1)))), perm=[0, 2, 1])

    def layer(x: str) -> str:
        y = w.add("Conv", x, w.weight(17, 1, 5), pads=[2, 2], group=17)
        y = w.add("Sigmoid", w.add("Conv", y, w.weight(17, 17, 1)))
        mean = w.add("ReduceMean", x, axes=[2])
        return str(w.add("Add", x, w.add("Mul", y, w.add("Sub", x, mean))))

    return (_layers(w, nodes, x, layer),)


def _patches(w: _Writer, nodes: int) -> tuple[str, ...]:
    """Windows of an image that is padded to whole windows, with attention inside of each."""
    x = w.given("image", "batch", "rows", "columns", 16)

    def layer(x: str) -> str:
        batch, rows, columns = (w.size(x, k) for k in range(3))
        four = w.of([4])
        more = [w.add("Mod", w.add("Neg", each), four) for each in (rows, columns)]
        pads = w.add("Concat", w.of([0] * 5), *more, w.of([0]), axis=0)
        y = w.add("Pad", x, pads)
        high, wide = (w.add("Div", w.size(y, k), four) for k in (1, 2))
        y = w.reshape(y, batch, high, 4, wide, 4, 16)
        y = w.reshape(w.add("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), -1, 16, 16)
        q, k, v = (w.add("MatMul", y, w.weight(16, 16)) for _ in range(3))
        scores = w.add("MatMul", q, w.add("Transpose", k, perm=[0, 2, 1]))
        y = w.add("MatMul", w.add("Softmax", scores, axis=-1), v)
        y = w.add("Transpose", w.reshape(y, batch, high, wide, 4, 4, 16), perm=[0, 1, 3, 2, 4, 5])
        y = w.reshape(y, batch, w.add("Mul", high, four), w.add("Mul", wide, four), 16)
        ends = w.add("Concat", rows, columns, axis=0)
        return str(w.add("Add", x, w.add("Slice", y, w.of([0, 0]), ends, w.of([1, 2]))))

    return (_layers(w, nodes, x, layer),)


@dataclass(frozen=True, slots=True)
class Long:
    """A kind of long graph: how it is written, and numbers for its open sizes."""

    write: Callable[[_Writer, int], tuple[str, ...]]
    sizes: Mapping[str, int]

    def build(self, nodes: int) -> onnx.ModelProto:
        """The file, with about so many nodes."""
        writer = _Writer()
        return writer.model(*self.write(writer, nodes))


_IMAGE = {"batch": 2, "rows": 64, "columns": 96}
LONG = {
    "detector": Long(_detector, _IMAGE),
    "words": Long(_words, {"batch": 2, "time": 40}),
    "windows": Long(_windows, {"batch": 2, "samples": 2000}),
    "decoder": Long(_decoder, {"batch": 2, "time": 5, "past": 20}),
    "recurrent": Long(_recurrent, {"time": 20, "batch": 2}),
    "graph network": Long(_graph_network, {"nodes": 50, "edges": 120}),
    "gathers": Long(_gathers, {"rows": 50, "count": 50}),
    "u-nets": Long(_u_nets, _IMAGE),
    "spectra": Long(_spectra, {"batch": 2, "samples": 2000}),
    "patches": Long(_patches, {"batch": 2, "rows": 22, "columns": 30}),
}
"""By name; each takes any number of nodes."""
