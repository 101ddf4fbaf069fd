"""ONNX operators as calls of PyTorch: what `torch_network` makes a network of.

Each entry of OPERATORS takes an `Operation` and returns the function that computes its output from
the input tensors, in order. Attributes and shapes are read once, so that a call does nothing else.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from tensorwright_lab.competitors.torch_patterns import ATTENTION

Call = Callable[..., Any]
"""From tensors to a tensor. The types of PyTorch are not checked."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A node of an ONNX graph.

    constants  the value of each input that is one, else None; in the order of the inputs
    version    of the operator set
    """

    kind: str
    attributes: Mapping[str, Any]
    constants: tuple[np.ndarray[Any, Any] | None, ...]
    version: int

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or what ONNX takes for it."""
        return self.attributes.get(name, default)

    def integers(self, index: int, name: str) -> tuple[int, ...] | None:
        """Integers that are a constant input, or in older models an attribute; None for none.

        Raises:  ValueError for an input that is computed.
        """
        if name in self.attributes:
            return tuple(int(each) for each in self.attributes[name])
        if index >= len(self.constants):
            return None
        value = self.constants[index]
        if value is None:
            raise ValueError(f"{self.kind}: {name} is computed")
        return tuple(int(each) for each in value.reshape(-1))

    def number(self, index: int, name: str, default: float | None = None) -> float | None:
        """A number that is a constant input or an attribute."""
        if name in self.attributes:
            return float(self.attributes[name])
        value = self.constants[index] if index < len(self.constants) else None
        return default if value is None else float(value)


Maker = Callable[[Operation], Call]


@dataclass(frozen=True, slots=True)
class _Windows:
    """Sliding windows as PyTorch takes them.

    both  pads that both sides have, in the order of dimensions
    rest  what is left, as `pad` takes it: last dimension first; empty where it is nothing
    """

    strides: tuple[int, ...]
    both: tuple[int, ...]
    rest: list[int]
    dilations: list[int]


def _windows(node: Operation, rank: int) -> _Windows:
    if node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise ValueError(f"{node.kind}: auto_pad {node.get('auto_pad')}")
    strides = tuple(node.get("strides", (1,) * rank))
    pads = list(node.get("pads", (0,) * (2 * rank)))
    pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    both = tuple(min(pair) for pair in pairs)
    rest = [side - min(pair) for pair in reversed(pairs) for side in pair]
    dilations = list(node.get("dilations", (1,) * rank))
    return _Windows(strides, both, rest if any(rest) else [], dilations)


def _convolution(node: Operation) -> Call:
    weight = node.constants[1]
    rank = len(node.get("kernel_shape", ())) or (weight.ndim - 2 if weight is not None else 2)
    of = _windows(node, rank)
    groups = int(node.get("group", 1))
    convolve: Call = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]

    def call(x: Any, w: Any, bias: Any = None) -> Any:
        padded = F.pad(x, of.rest) if of.rest else x
        return convolve(padded, w, bias, of.strides, of.both, of.dilations, groups)

    return call


def _transposed_convolution(node: Operation) -> Call:
    weight = node.constants[1]
    if weight is None or "output_shape" in node.attributes:
        raise ValueError("ConvTranspose: its shape is computed")
    rank = weight.ndim - 2
    of = _windows(node, rank)
    more = tuple(node.get("output_padding", (0,) * rank))
    groups = int(node.get("group", 1))
    convolve: Call = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    cut = [-side for side in of.rest]

    def call(x: Any, w: Any, bias: Any = None) -> Any:
        y = convolve(x, w, bias, of.strides, of.both, more, groups, of.dilations)
        return F.pad(y, cut) if cut else y

    return call


def _pool(node: Operation) -> Call:
    kernel = tuple(node.get("kernel_shape"))
    of = _windows(node, len(kernel))
    is_ceil = bool(node.get("ceil_mode", 0))
    counts_pads = bool(node.get("count_include_pad", 0))
    more: tuple[Any, ...] = (of.dilations, is_ceil)
    fill = -math.inf
    pools: tuple[Call, ...] = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
    if node.kind == "AveragePool":
        more = (is_ceil, counts_pads)
        fill, pools = 0.0, (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
        if of.rest and not counts_pads:
            raise ValueError("AveragePool: pads that differ, and do not count")
    pool: Call = pools[len(kernel) - 1]

    def call(x: Any) -> Any:
        padded = F.pad(x, of.rest, value=fill) if of.rest else x
        return pool(padded, kernel, of.strides, of.both, *more)

    return call


def _global_average(node: Operation) -> Call:
    return lambda x: x.mean(dim=tuple(range(2, x.dim())), keepdim=True)


def _batch_norm(node: Operation) -> Call:
    epsilon = float(node.get("epsilon", 1e-5))
    return lambda x, scale, bias, mean, var: F.batch_norm(x, mean, var, scale, bias, eps=epsilon)


def _layer_norm(node: Operation) -> Call:
    epsilon, axis = float(node.get("epsilon", 1e-5)), int(node.get("axis", -1))

    def call(x: Any, scale: Any, bias: Any = None) -> Any:
        return F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)

    return call


def _local_norm(node: Operation) -> Call:
    size, alpha = int(node.get("size")), float(node.get("alpha", 1e-4))
    beta, bias = float(node.get("beta", 0.75)), float(node.get("bias", 1.0))
    return lambda x: F.local_response_norm(x, size, alpha, beta, bias)


def _gemm(node: Operation) -> Call:
    alpha, beta = float(node.get("alpha", 1.0)), float(node.get("beta", 1.0))
    turns_a, turns_b = bool(node.get("transA", 0)), bool(node.get("transB", 0))

    def call(a: Any, b: Any, c: Any = None) -> Any:
        left, right = a.t() if turns_a else a, b.t() if turns_b else b
        if c is None:
            return alpha * (left @ right)
        return torch.addmm(c, left, right, beta=beta, alpha=alpha)

    return call


def _softmax(node: Operation) -> Call:
    axis = int(node.get("axis", -1 if node.version >= 13 else 1))
    if node.version >= 13:
        return lambda x: torch.softmax(x, axis)
    return lambda x: torch.softmax(x.flatten(axis), axis).reshape(x.shape)


def _clip(node: Operation) -> Call:
    low, high = node.number(1, "min"), node.number(2, "max")
    return lambda x, *_: torch.clamp(x, low, high)


def _gelu(node: Operation) -> Call:
    approximate = node.get("approximate", "none")
    return lambda x: F.gelu(x, approximate=approximate)


def _reshape(node: Operation) -> Call:
    shape = node.integers(1, "shape") or ()
    keeps = not node.get("allowzero", 0)

    def call(x: Any, *_: Any) -> Any:
        return x.reshape([x.shape[i] if not n and keeps else n for i, n in enumerate(shape)])

    return call


def _expand(node: Operation) -> Call:
    shape = node.integers(1, "shape") or ()
    return lambda x, *_: x.broadcast_to(torch.broadcast_shapes(x.shape, tuple(shape)))


def _triangle(node: Operation) -> Call:
    (diagonal,) = node.integers(1, "k") or (0,)
    part = torch.triu if node.get("upper", 1) else torch.tril
    return lambda x, *_: part(x, diagonal)


def _flatten(node: Operation) -> Call:
    axis = int(node.get("axis", 1))
    return lambda x: x.reshape(math.prod(x.shape[:axis]), -1)


def _transpose(node: Operation) -> Call:
    perm = node.get("perm")
    return lambda x: x.permute(tuple(perm) if perm else tuple(reversed(range(x.dim()))))


def _unsqueeze(node: Operation) -> Call:
    axes = node.integers(1, "axes") or ()

    def call(x: Any, *_: Any) -> Any:
        rank = x.dim() + len(axes)
        for axis in sorted(axis % rank for axis in axes):
            x = x.unsqueeze(axis)
        return x

    return call


def _squeeze(node: Operation) -> Call:
    axes = node.integers(1, "axes")
    return lambda x, *_: x.squeeze() if axes is None else x.squeeze(axes)


def _concat(node: Operation) -> Call:
    axis = int(node.get("axis"))
    return lambda *parts: torch.cat(parts, axis)


def _slice(node: Operation) -> Call:
    starts, ends = node.integers(1, "starts") or (), node.integers(2, "ends") or ()
    axes = node.integers(3, "axes") or tuple(range(len(starts)))
    steps = node.integers(4, "steps") or (1,) * len(starts)
    if min(steps) < 1:
        raise ValueError("Slice: backwards")

    def call(x: Any, *_: Any) -> Any:
        places = [slice(None)] * x.dim()
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            places[axis] = slice(start, end, step)
        return x[tuple(places)]

    return call


def _gather(node: Operation) -> Call:
    axis = int(node.get("axis", 0))

    def call(table: Any, places: Any) -> Any:
        if axis == 0 and table.dim() == 2:
            return F.embedding(places, table)
        flat = torch.index_select(table, axis, places.reshape(-1))
        return flat.reshape(table.shape[:axis] + places.shape + table.shape[axis + 1 :])

    return call


def _attention(node: Operation) -> Call:
    scale = float(node.get("scale"))

    def call(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k.transpose(-2, -1), v, scale=scale)

    return call


def _fold(function: Callable[..., Any]) -> Maker:
    """A fold over axes that are constant: `function(x, axes, keepdim)`."""

    def make(node: Operation) -> Call:
        axes = node.integers(1, "axes")
        keeps = bool(node.get("keepdims", 1))
        if not axes and node.get("noop_with_empty_axes", 0):
            return lambda x, *_: x
        return lambda x, *_: function(x, axes or tuple(range(x.dim())), keeps)

    return make


def _with(name: str, default: float, function: Callable[..., Any]) -> Maker:
    """An activation with one number as its attribute: `function(x, number)`."""

    def make(node: Operation) -> Call:
        number = float(node.get(name, default))
        return lambda x: function(x, number)

    return make


def _hard_sigmoid(node: Operation) -> Call:
    alpha, beta = float(node.get("alpha", 0.2)), float(node.get("beta", 0.5))
    return lambda x: torch.clamp(x * alpha + beta, 0.0, 1.0)


def _instance_norm(node: Operation) -> Call:
    epsilon = float(node.get("epsilon", 1e-5))
    return lambda x, scale, bias: F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)


def _pad(node: Operation) -> Call:
    """Padding with a constant; pads of ONNX are all begins, then all ends."""
    if node.get("mode", "constant") != "constant" or len(node.constants) > 3:
        raise ValueError(f"Pad: mode {node.get('mode', 'constant')} or axes of its own")
    pads = node.integers(1, "pads") or ()
    rank = len(pads) // 2
    pairs = [side for axis in reversed(range(rank)) for side in (pads[axis], pads[axis + rank])]
    value = node.number(2, "value", 0.0)
    return lambda x, *_: F.pad(x, pairs, value=value)


def _same(function: Call) -> Maker:
    return lambda _: function


OPERATORS: Mapping[str, Maker] = MappingProxyType(
    {
        "Abs": _same(torch.abs),
        "Add": _same(lambda a, b: a + b),
        "AveragePool": _pool,
        "BatchNormalization": _batch_norm,
        "Ceil": _same(torch.ceil),
        "Clip": _clip,
        "Concat": _concat,
        "Conv": _convolution,
        "ConvTranspose": _transposed_convolution,
        "Cos": _same(torch.cos),
        "Div": _same(lambda a, b: a / b),
        "Dropout": _same(lambda x, *_: x),
        "Elu": _with("alpha", 1.0, F.elu),
        "Erf": _same(torch.erf),
        "Exp": _same(torch.exp),
        "Expand": _expand,
        "Flatten": _flatten,
        "Floor": _same(torch.floor),
        "Gather": _gather,
        "Gelu": _gelu,
        "Gemm": _gemm,
        "GlobalAveragePool": _global_average,
        "HardSigmoid": _hard_sigmoid,
        "HardSwish": _same(F.hardswish),
        "Identity": _same(lambda x: x),
        "InstanceNormalization": _instance_norm,
        "LayerNormalization": _layer_norm,
        "LeakyRelu": _with("alpha", 0.01, F.leaky_relu),
        "Log": _same(torch.log),
        "LRN": _local_norm,
        "MatMul": _same(torch.matmul),
        "Max": _same(
            lambda a, *more: torch.amax(torch.stack(torch.broadcast_tensors(a, *more)), 0)
        ),
        "MaxPool": _pool,
        "Min": _same(
            lambda a, *more: torch.amin(torch.stack(torch.broadcast_tensors(a, *more)), 0)
        ),
        "Mish": _same(F.mish),
        "Mul": _same(lambda a, b: a * b),
        "Neg": _same(torch.neg),
        "Pad": _pad,
        "Pow": _same(lambda a, b: a**b),
        "PRelu": _same(lambda x, slope: torch.where(x < 0, x * slope, x)),
        "Reciprocal": _same(torch.reciprocal),
        "ReduceMax": _fold(torch.amax),
        "ReduceMean": _fold(torch.mean),
        "ReduceMin": _fold(torch.amin),
        "ReduceSum": _fold(torch.sum),
        "Relu": _same(torch.relu),
        "Reshape": _reshape,
        ATTENTION: _attention,
        "Sigmoid": _same(torch.sigmoid),
        "Sin": _same(torch.sin),
        "Slice": _slice,
        "Softmax": _softmax,
        "Softplus": _same(F.softplus),
        "Sqrt": _same(torch.sqrt),
        "Squeeze": _squeeze,
        "Sub": _same(lambda a, b: a - b),
        "Sum": _same(lambda *parts: reduce(operator.add, parts)),
        "Tanh": _same(torch.tanh),
        "Transpose": _transpose,
        "Trilu": _triangle,
        "Unsqueeze": _unsqueeze,
        "Where": _same(torch.where),
    }
)
"""The operators of the networks that are compared."""
