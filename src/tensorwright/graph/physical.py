"""Shapes, arrays and tensor expressions in the order of memory, under a `Layout`.

Rewrite:  x[n, c, h, w]    ->    x[n, c//16, h, w, c%16]                     for NCHW16c
          t[n, c, h, w]    ->    t[n, c_o, h, w, c_i] with c := c_o*16 + c_i
Every index is simplified under the ranges of all axes, so that (c_o*16 + c_i)//16 is c_o again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tensorwright import expr
from tensorwright.graph.graph import PLAIN, Layout
from tensorwright.ops import Array, product_of


def _order(layout: Layout, rank: int) -> tuple[int, ...]:
    return layout.order or tuple(range(rank))


def physical_shape(shape: Sequence[expr.Index], layout: Layout) -> tuple[expr.Index, ...]:
    """The extents in memory: NCHW16c of (1, 64, 7, 7) is (1, 4, 7, 7, 16)."""
    extents = [
        shape[at] // layout.block if at == layout.axis else shape[at]
        for at in _order(layout, len(shape))
    ]
    return (*extents, layout.block) if layout.block > 1 else tuple(extents)


def to_physical(array: Array, layout: Layout) -> Array:
    """A plain array in the order in which the layout puts it into memory, contiguous."""
    if layout.is_plain:
        return np.ascontiguousarray(array)
    order = _order(layout, array.ndim)
    moved = array.transpose(order)
    if layout.block > 1:
        at = order.index(layout.axis)
        shape = moved.shape
        split = (shape[at] // layout.block, layout.block)
        moved = moved.reshape(*shape[:at], *split, *shape[at + 1 :])
        moved = np.moveaxis(moved, at + 1, -1)
    return np.ascontiguousarray(moved)


def memory_order(shape: Sequence[expr.Index], layout: Layout) -> tuple[tuple[int, expr.Index], ...]:
    """(dimension, extent) from the outermost to the innermost, without what has extent 1.

    Neighbouring parts of one dimension count as one: blocked and plain are the same order where
    nothing lies between block and lanes.
    """
    return _memory_order(tuple(shape), layout)


@lru_cache(maxsize=1 << 14)
def _memory_order(
    shape: tuple[expr.Index, ...], layout: Layout
) -> tuple[tuple[int, expr.Index], ...]:
    order = _order(layout, len(shape))
    dimensions = (*order, layout.axis) if layout.block > 1 else order
    spans: list[tuple[int, expr.Index]] = []
    for at, extent in zip(dimensions, physical_shape(shape, layout), strict=True):
        if extent == 1:
            continue
        if spans and spans[-1][0] == at:
            spans[-1] = (at, spans[-1][1] * extent)
        else:
            spans.append((at, extent))
    return tuple(spans)


def is_row_major(shape: Sequence[expr.Index], layout: Layout) -> bool:
    """Whether the elements lie in memory as in the plain layout."""
    return memory_order(shape, layout) == memory_order(shape, PLAIN)


def outer_extent(shape: Sequence[expr.Index], layout: Layout, axis: int) -> expr.Index:
    """The product of the physical extents outside dimension `axis` (outside its blocks)."""
    order = _order(layout, len(shape))
    return product_of(physical_shape(shape, layout)[: order.index(axis)])


def physical_compute(
    tensor: expr.Compute,
    layouts: Mapping[expr.Tensor, Layout],
    sources: Mapping[expr.Tensor, expr.Tensor | expr.Const],
) -> expr.Compute:
    """The tensor with its own axes, and its reads, in the order of memory.

    layouts  of the tensor and of all that it reads (plain tensors); missing ones are plain
    sources  what stands for each tensor that it reads; a number for one that holds one element
    """
    substitution: dict[expr.Var, expr.Index] = {}
    axes = _physical_axes(tensor, layouts.get(tensor, PLAIN), substitution)
    every = (*axes, *tensor.reduce_axes)
    bounds = {axis.var: expr.Range.of_extent(axis.extent) for axis in every}

    def in_memory(source: expr.Tensor, indices: tuple[expr.Index, ...]) -> tuple[expr.Index, ...]:
        physical = physical_indices(indices, layouts.get(source, PLAIN))
        return tuple(expr.simplify(index, bounds) for index in physical)

    def on_element(element: expr.Element) -> expr.Index:
        source = sources[element.source]
        if isinstance(source, expr.Const):
            return int(source.value)
        return expr.Element(source, in_memory(element.source, element.indices))

    def on_index(index: expr.Index) -> expr.Index:
        return expr.map_elements(
            expr.simplify(expr.substitute(index, substitution), bounds), on_element
        )

    def on_load(load: expr.Load) -> expr.Value:
        source = sources[load.source]
        if isinstance(source, expr.Const):
            return source
        return expr.Load(source, in_memory(load.source, load.indices))

    def on_condition(condition: expr.Condition) -> expr.Condition:
        decided = expr.simplify_condition(
            expr.substitute_condition(condition, substitution), bounds
        )
        return expr.map_condition(decided, lambda side: expr.map_elements(side, on_element))

    body = expr.rebuild(tensor.body, on_load, on_index, on_condition)
    return replace(tensor, axes=axes, body=body)


def physical_indices(indices: tuple[expr.Index, ...], layout: Layout) -> tuple[expr.Index, ...]:
    """Indices into the plain tensor as indices into memory."""
    physical = [
        expr.floor_div(indices[at], layout.block) if at == layout.axis else indices[at]
        for at in _order(layout, len(indices))
    ]
    return (
        (*physical, expr.mod(indices[layout.axis], layout.block))
        if layout.block > 1
        else tuple(physical)
    )


def _physical_axes(
    tensor: expr.Compute, layout: Layout, substitution: dict[expr.Var, expr.Index]
) -> tuple[expr.Axis, ...]:
    if layout.is_plain:
        return tensor.axes
    axes = [tensor.axes[at] for at in _order(layout, len(tensor.axes))]
    if layout.block == 1:
        return tuple(axes)
    split = tensor.axes[layout.axis]
    outer = expr.Axis(expr.Var(f"{split.name}_o"), expr.floor_div(split.extent, layout.block))
    inner = expr.Axis(expr.Var(f"{split.name}_i"), layout.block)
    substitution[split.var] = outer.var * layout.block + inner.var
    return (*(outer if axis is split else axis for axis in axes), inner)
