"""Merge scales and shifts by constants.

Filters that are a constant times computed numbers per channel: scale the data instead.

A convolution whose filters are a constant is much faster: they are packed when the program is
built.  StyleGAN networks scale their filters in every run.

Source:  Karras et al., "Analyzing and improving the image quality of StyleGAN", CVPR 2020, section
2.2 and appendix B: modulation scales the input of a convolution, demodulation its output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import ops
from tensorwright.base import Shape
from tensorwright.graph.graph import Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.rebuild import Copy, channel_vector, constant_operand, rewriting
from tensorwright.graph.sizes import typical_shape


def _combined(fn: np.ufunc, a: ops.Array, b: ops.Array) -> ops.Array:
    wide = fn(a.astype(np.float64), b.astype(np.float64))
    return np.asarray(wide).astype(a.dtype)


@rewriting("mul", "add")
def merge_affine(copy: Copy, node: Node) -> Sequence[str] | None:
    """One multiplication and one addition for a chain of both, floats only.

    Rewrite:  (x * a) * b    ->    x * (a * b)
              (x + a) + b    ->    x + (a + b)
              (x + a) * b    ->    x * b + (a * b)
    Requires: a and b are constants; no other node reads the inner value; the shapes do not grow.
    """
    outer = constant_operand(copy, node)
    if outer is None or not copy.result(node).dtype.is_float:
        return None
    before = copy.producer(outer[0])
    if before is None or before.operator not in ("mul", "add") or not copy.only_use(outer[0]):
        return None
    inner = constant_operand(copy, before)
    kinds = (before.operator, node.operator)
    if inner is None or kinds == ("mul", "add"):
        return None
    if not copy.type_of(inner[0]) == copy.type_of(outer[0]) == copy.result(node):
        return None
    (output,) = node.outputs
    if kinds == ("add", "mul"):
        shift = copy.hold(_combined(np.multiply, inner[1], outer[1]), f"{output}.shift")
        factor = copy.hold(outer[1], f"{output}.scale")
        scaled = copy.new("mul", (inner[0], factor), f"{output}.scaled")
        return copy.emit("add", (scaled, shift), node.outputs)
    fn = np.multiply if node.operator == "mul" else np.add
    merged = copy.hold(_combined(fn, inner[1], outer[1]), f"{output}.constant")
    return copy.emit(node.operator, (inner[0], merged), node.outputs)


Vector: TypeAlias = NDArray[np.float64]


def _bias(copy: Copy, anchor: Node, channels: int) -> Vector | None:
    """The bias per output channel that the anchor adds, zeros where it has none.

    None if it is not known, or is not one number per channel.
    """
    if len(anchor.inputs) < 3:
        return np.zeros(channels)
    held = copy.constant(anchor.inputs[2])
    if held is None or held.size != math.prod(held.shape[-1:]) or held.size not in (1, channels):
        return None
    beta = anchor.number("beta") if "beta" in anchor.attribute_map else 1.0
    flat: Vector = np.broadcast_to(held.reshape(-1), (channels,)).astype(np.float64)
    return flat * beta


def _match(copy: Copy, node: Node) -> tuple[Node, ops.ChannelScale, Vector] | None:
    """The anchor before a `mul` or `add`, its only reader, and the numbers per channel."""
    operand = constant_operand(copy, node)
    if operand is None:
        return None
    source, array = operand
    anchor = copy.producer(source)
    if anchor is None or not copy.only_use(source):
        return None
    scale = operator_of(anchor).channel_scale
    type_ = copy.result(node)
    if scale is None or not type_.dtype.is_float or type_ != copy.type_of(source):
        return None
    vector = channel_vector(array, type_.shape)
    return None if vector is None else (anchor, scale, vector.astype(np.float64))


@rewriting("mul")
def absorb_scale(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  conv(x, w, b) * s    ->    conv(x, w * s, b * s)

    Requires: s is constant and one number per channel; w and b are constants; no other node reads
    the conv.
    """
    matched = _match(copy, node)
    if matched is None:
        return None
    anchor, scale, factor = matched
    weights = copy.constant(anchor.inputs[1])
    bias = _bias(copy, anchor, factor.size)
    if weights is None or bias is None:
        return None
    (output,) = node.outputs
    scaled = scale(weights.astype(np.float64), factor, anchor.attribute_map)
    held = copy.hold(scaled.astype(weights.dtype), f"{anchor.inputs[1]}.scaled")
    inputs = [anchor.inputs[0], held]
    if len(anchor.inputs) > 2:
        inputs.append(copy.hold((bias * factor).astype(weights.dtype), f"{output}.bias"))
    return _emit(copy, anchor, inputs, output)


@rewriting("add")
def absorb_shift(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  conv(x, w, b) + s    ->    conv(x, w, b + s)

    Requires: s is constant and one number per channel; b is constant or absent; no other node reads
    the conv.
    """
    matched = _match(copy, node)
    if matched is None:
        return None
    anchor, _, shift = matched
    bias = _bias(copy, anchor, shift.size)
    if bias is None:
        return None
    (output,) = node.outputs
    dtype = copy.result(node).dtype.numpy
    moved = copy.hold((bias + shift).astype(dtype), f"{output}.bias")
    return _emit(copy, anchor, [*anchor.inputs[:2], moved], output)


def _emit(copy: Copy, anchor: Node, inputs: list[str], output: str) -> Sequence[str]:
    attributes = anchor.attribute_map
    if "beta" in attributes:
        attributes["beta"] = 1.0  # it is in the bias now
    return copy.emit(anchor.operator, inputs, (output,), **attributes)


_CHANNELS = {"conv": (1, 0), "conv_transpose": (0, 1)}  # input's, output's dimension of a filter
_COPIES = 5  # of a filter: read, scaled and written, read again, written in another order
_PASSES = 2  # over the data: read, written
_MUCH_WORK = 128  # multiply-adds for each datum, beside which another pass over the data is little


@dataclass(frozen=True, slots=True)
class _Factor:
    """`operator` (mul, div) by a tensor that varies along one dimension of a filter; -1 is none."""

    operator: str
    name: str
    dimension: int


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter on the way from the convolution back to its constant.

    name        the tensor, which is the filter without the factors, in another shape and order
    dimensions  of the filter, for each of the tensor that is not 1 long
    """

    name: str
    dimensions: tuple[int, ...]
    factors: tuple[_Factor, ...] = ()


@rewriting(*_CHANNELS)
def scale_data_for_filters(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  conv(x, w * s * d, b)    ->    conv(x * s, w) * d + b

    Requires: w is constant; s and d are computed, s a number per channel of x, d one per channel of
              the result; no groups; a pass over x costs less than computing filters in each run.
    """
    if node.integer("groups") != 1:
        return None
    matched = _follow(copy, node.inputs[1])
    if matched is None or not _pays(copy, node, matched):
        return None
    return _emit_filtered(copy, node, matched)


def _follow(copy: Copy, name: str) -> _Filter | None:
    """The constant and the factors of a filter; None for another filter."""
    shape = copy.type_of(name).shape
    filter_ = _Filter(name, tuple(n for n, extent in enumerate(shape) if extent != 1))
    while copy.constant(filter_.name) is None:
        node = copy.producer(filter_.name)
        before = _before(copy, node, filter_) if node is not None else None
        if before is None:
            return None
        filter_ = before
    return filter_ if filter_.factors else None


def _before(copy: Copy, node: Node, filter_: _Filter) -> _Filter | None:
    """One step from a filter towards its constant."""
    shape = copy.type_of(filter_.name).shape
    own = dict(zip(_long(shape), filter_.dimensions, strict=True))
    if operator_of(node).movement is ops.Movement.RESHAPE:
        source = copy.type_of(node.inputs[0]).shape
        same = [shape[n] for n in _long(shape)] == [source[n] for n in _long(source)]
        return replace(filter_, name=node.inputs[0]) if same else None
    if node.operator == "transpose":
        order = node.ints("perm") or tuple(reversed(range(len(shape))))
        moved = {source: own[n] for n, source in enumerate(order) if n in own}
        return replace(
            filter_, name=node.inputs[0], dimensions=tuple(moved[n] for n in sorted(moved))
        )
    if node.operator not in ("mul", "div"):
        return None
    left, right = node.inputs
    if node.operator == "mul" and copy.type_of(left).shape != shape:
        left, right = right, left
    factor = copy.type_of(right).shape
    if copy.type_of(left).shape != shape or len(_long(factor)) > 1:
        return None
    along = [own[n + len(shape) - len(factor)] for n in _long(factor)]
    step = _Factor(node.operator, right, along[0] if along else -1)
    return replace(filter_, name=left, factors=(*filter_.factors, step))


def _long(shape: Shape) -> list[int]:
    """The dimensions that are not 1 long."""
    return [n for n, extent in enumerate(shape) if extent != 1]


def _pays(copy: Copy, node: Node, filter_: _Filter) -> bool:
    """Whether each factor is a number per channel, and scaling the data is less work."""
    of_input, of_output = _CHANNELS[node.operator]
    along = {factor.dimension for factor in filter_.factors}
    type_ = copy.result(node)
    if not along <= {of_input, of_output, -1} or not type_.dtype.is_float:
        return False
    filters = copy.type_of(node.inputs[1]).extents
    data = prod(typical_shape(copy.type_of(node.inputs[0])))
    if of_input not in along:
        return True
    multiply_adds = prod(typical_shape(type_)) * prod(filters) // filters[of_output]
    if node.operator == "conv_transpose":
        multiply_adds = data * prod(filters) // filters[of_input]
    return _PASSES * data <= _COPIES * prod(filters) or multiply_adds >= _MUCH_WORK * data


def _emit_filtered(copy: Copy, node: Node, filter_: _Filter) -> Sequence[str]:
    of_input, _ = _CHANNELS[node.operator]
    (output,) = node.outputs
    array = copy.constant(filter_.name)
    assert array is not None, "a filter is followed up to a constant"
    shape = copy.type_of(node.inputs[1]).extents
    weights = copy.hold(_in_order(array, filter_.dimensions, shape), f"{filter_.name}.filter")
    (data,) = node.inputs[:1]
    after: list[_Factor] = []
    for factor in filter_.factors:
        if factor.dimension == of_input:
            data = _scaled(copy, factor, data, f"{output}.input")
        else:
            after.append(factor)
    added = len(node.inputs) > 2
    names = [copy.free(f"{output}.product") for _ in after] + [output]
    if added:
        names.insert(0, copy.free(f"{output}.product"))
    result = copy.emit(node.operator, (data, weights), names[:1], **node.attribute_map)
    for factor, name in zip(after, names[1:], strict=False):
        result = (_scaled(copy, factor, result[0], name),)
    if added:
        column = _column(copy, node.inputs[2], len(copy.result(node).shape))
        result = copy.emit("add", (*result, column), node.outputs)
    return result


def _in_order(array: ops.Array, dimensions: tuple[int, ...], shape: tuple[int, ...]) -> ops.Array:
    """The constant with the shape and the order of dimensions of the filter."""
    flat = array.reshape([extent for extent in array.shape if extent != 1])
    order = sorted(range(len(dimensions)), key=lambda n: dimensions[n])
    return np.ascontiguousarray(flat.transpose(order).reshape(shape))


def _scaled(copy: Copy, factor: _Factor, name: str, output: str) -> str:
    column = _column(copy, factor.name, len(copy.type_of(name).shape))
    (scaled,) = copy.emit(factor.operator, (name, column), (copy.builder.fresh(output),))
    return scaled


def _column(copy: Copy, name: str, rank: int) -> str:
    """A vector, whatever its shape, along the channels of a tensor."""
    shape = (1, ops.product_of(ops.sizes_of(copy.type_of(name))), *(1,) * (rank - 2))
    if copy.type_of(name).shape == shape:
        return name
    return copy.new("reshape", (name,), f"{name}.column", shape=shape)


_MOST_POWER = 4  # of higher ones a factor alone may overflow


@rewriting("reduce_sum")
def sum_constants(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  sum over c, k of (w[o, c, k] * s[c])^p    ->    sum over c of v[o, c] * s[c]^p
              where v[o, c] = sum over k of w[o, c, k]^p
    Requires: w is constant; p is a whole number from 1 to 4; the sum is shorter then.  v is
              computed in f64.
    """
    if not copy.result(node).dtype.is_float:
        return None
    base, power = _power(copy, node.inputs[0])
    product = copy.producer(base)
    if product is None or product.operator != "mul" or not power:
        return None
    operand = constant_operand(copy, product)
    if operand is None:
        return None
    computed, constant = operand
    rank = len(copy.type_of(base).shape)
    axes = {axis % rank for axis in node.ints("axes")} or set(range(rank))
    varying = _long_dimensions(copy.type_of(computed).shape, rank)
    first = axes - varying
    if not first & _long_dimensions(constant.shape, rank):
        return None
    own = tuple(axis - rank + constant.ndim for axis in first if axis >= rank - constant.ndim)
    wide = np.sum(constant.astype(np.float64) ** power, axis=own, keepdims=True)
    (output,) = node.outputs
    held = copy.hold(wide.astype(constant.dtype), f"{output}.constant")
    type_ = copy.result(node)
    if power > 1:
        exponent = copy.hold(np.asarray(power, type_.dtype.numpy), f"{output}.power")
        computed = copy.new("pow", (computed, exponent), f"{output}.factor")
    result = copy.new("mul", (held, computed), f"{output}.terms")
    if axes - first:
        rest = tuple(sorted(axes - first))
        result = copy.new("reduce_sum", (result,), f"{output}.sum", axes=rest, keepdims=True)
    return copy.emit("reshape", (result,), node.outputs, shape=type_.shape)


def _power(copy: Copy, name: str) -> tuple[str, int]:
    """The base and the exponent of a power; exponent 1 for other tensors, 0 for other exponents."""
    node = copy.producer(name)
    if node is not None and node.operator == "mul" and node.inputs[0] == node.inputs[1]:
        return node.inputs[0], 2
    if node is None or node.operator != "pow":
        return name, 1
    exponent = copy.constant(node.inputs[1])
    if exponent is None or exponent.size != 1:
        return name, 1
    value = float(exponent.reshape(()))
    is_whole = value in range(1, _MOST_POWER + 1)
    return node.inputs[0], int(value) if is_whole else 0


def _long_dimensions(shape: Shape, rank: int) -> set[int]:
    """The dimensions longer than 1, of a shape that is read as one of more dimensions."""
    return {n + rank - len(shape) for n, extent in enumerate(shape) if extent != 1}
