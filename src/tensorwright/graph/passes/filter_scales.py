"""Filters that are a constant times computed numbers per channel: scale the data instead.

A convolution whose filters are a constant is much faster: they are packed when the program is
built.  StyleGAN networks scale their filters in every run.

Source:  Karras et al., "Analyzing and improving the image quality of StyleGAN", CVPR 2020, section
2.2 and appendix B: modulation scales the input of a convolution, demodulation its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tensorwright.base import Shape
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.graph.sizes import typical_shape
from tensorwright.ops import Array, Movement, product_of, sizes_of

_CHANNELS = {"conv": (1, 0), "conv_transpose": (0, 1)}  # input's, output's dimension of a filter
_COPIES = 5  # of a filter: read, scaled and written, read again, written in another order
_PASSES = 2  # over the data: read, written
_MUCH_WORK = 128  # multiply-adds for each datum, beside which another pass over the data is little


@dataclass(frozen=True, slots=True)
class _Factor:
    """`operator` (mul, div) by a tensor that varies along one dimension of a filter, -1: along
    none.
    """

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


def scale_data_for_filters(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  conv(x, w * s * d, b)    ->    conv(x * s, w) * d + b

    Requires: w is constant; s and d are computed, s a number per channel of x, d one per channel of
              the result; no groups; a pass over x costs less than computing filters in each run.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator not in _CHANNELS or node.integer("groups") != 1:
            return None
        matched = _follow(copy, node.inputs[1])
        if matched is None or not _pays(copy, graph, node, matched):
            return None
        return _emit(copy, graph, node, matched)

    return rewrite(graph, rule)


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
    if operator_of(node).movement is Movement.RESHAPE:
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


def _pays(copy: Copy, graph: Graph, node: Node, filter_: _Filter) -> bool:
    """Whether each factor is a number per channel, and scaling the data is less work."""
    of_input, of_output = _CHANNELS[node.operator]
    along = {factor.dimension for factor in filter_.factors}
    type_ = graph.types[node.outputs[0]]
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


def _emit(copy: Copy, graph: Graph, node: Node, filter_: _Filter) -> Sequence[str]:
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
        column = _column(copy, node.inputs[2], len(graph.types[output].shape))
        result = copy.emit("add", (*result, column), node.outputs)
    return result


def _in_order(array: Array, dimensions: tuple[int, ...], shape: tuple[int, ...]) -> Array:
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
    shape = (1, product_of(sizes_of(copy.type_of(name))), *(1,) * (rank - 2))
    if copy.type_of(name).shape == shape:
        return name
    return copy.emit("reshape", (name,), (copy.free(f"{name}.column"),), shape=shape)[0]
