"""Estimate the cost of a node under the layouts of its tensors; only the order of costs matters.

Unit: cycles of one core (`machine.NOMINAL`).

    convolution   multiply-adds / (vectors per cycle * lanes) / efficiency, each tensor moved once
    other nodes   each tensor moved once; a read in another order than the output's costs more

A convolution is efficient if its output is blocked by whole vectors: its lanes are then output
channels, and its input is broadcast in any layout.  If its output is plain, its lanes lie along the
last dimension, which means strided inputs, short rows and unaligned windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import Any

from tensorwright import ops
from tensorwright.expr import Index
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition import usual_groups
from tensorwright.graph.physical import memory_order
from tensorwright.machine import NOMINAL

_APART_EFFICIENCY = 0.2  # of short numbers: instructions take those that lie side by side
_BLOCK_EFFICIENCY = {1: 1.0, 2: 0.55, 4: 0.3}  # by lanes / block
_PLAIN_EFFICIENCY = 0.35
_CROSSING_EFFICIENCY = 0.1  # a vector of output channels reads the channels of several groups
_PLAIN_INPUT_EFFICIENCY = 0.95  # blocked output from a plain input that is not a graph input
_GATHERED_EFFICIENCY = 0.1  # plain output and windows that step by more than one
_GATHERED_IN_GROUPS = 0.5  # the same, if all channels of a group use each vector
_STRIDED_EFFICIENCY = 0.5  # plain output from a blocked input
_OTHER_ORDER = 5  # by how much more a strided read costs
_OTHER_ORDER_WINDOWS = 12  # the same, if windows read elements several times
_FUSED = 50  # the same within a kernel, whose loops fit only one of the two orders
_UNSUITED = 6  # an operator that divides and permutes dimensions, on a blocked tensor
_UNSUITED_ANCHOR = 16  # the same, if each element is read many times

_DOUBT = 1.5  # costs within this factor may be in the wrong order

Layouts = Mapping[str, Layout]


class LayoutBias(Enum):
    """The layouts of convolutions' outputs that a model prefers, by the factor `_DOUBT`.

    The layouts that a biased model chooses are a proposal.
    """

    NONE = "none"
    PLAIN = "plain"
    PARTS = "parts"  # blocks that are not whole vectors


@dataclass(frozen=True, slots=True)
class CostModel:
    """The model for one graph, whose extents are numbers; it remembers costs.

    lanes    f32 elements of a vector
    fused    tensors that never leave the kernel that computes them, if all layouts are plain
    """

    graph: Graph
    lanes: int
    fused: frozenset[str]
    _costs: dict[tuple[Any, ...], float] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, graph: Graph, lanes: int) -> CostModel:
        """The model for a graph and a vector length."""
        plain = replace(graph, layouts=MappingProxyType({}))
        inner = (
            name for nodes in usual_groups(plain) for node in nodes[:-1] for name in node.outputs
        )
        return cls(graph, lanes, frozenset(inner))

    def cost(self, node: Node, layouts: Layouts, bias: LayoutBias = LayoutBias.NONE) -> float:
        """The cost of one node in cycles; tensors that are not in `layouts` are plain."""
        key = (node.outputs[0], *map(layouts.get, (*node.inputs, *node.outputs)))
        cost = self._costs.get(key)
        if cost is None:
            cost = self._costs[key] = _cost(
                _Node(self.graph, node, layouts, self.fused), self.lanes
            )
        return cost / _DOUBT if self._is_favoured(node, layouts, bias) else cost

    def _is_favoured(self, node: Node, layouts: Layouts, bias: LayoutBias) -> bool:
        if bias is LayoutBias.NONE or not operator_of(node).is_convolution:
            return False
        block = layouts.get(node.outputs[0], PLAIN).block
        if bias is LayoutBias.PLAIN:
            return block == 1
        return block > 1 and block % self.lanes != 0


def _cost(data: _Node, lanes: int) -> float:
    node = data.node
    operator = operator_of(node)
    if operator.is_convolution:
        return _convolution(data, lanes)
    if operator.movement is ops.Movement.JOIN:
        return _concat(data)
    if operator.pattern is ops.Pattern.ELEMENTWISE or operator.layout is ops.LayoutPreference.ANY:
        return data.moved(_OTHER_ORDER, _FUSED)
    if operator.layout is not ops.LayoutPreference.PLAIN:
        return _pooling(data)
    if operator.movement in ops.BY_DIMENSION:
        return data.moved(_OTHER_ORDER if data.keeps_blocks() else _UNSUITED)
    if operator.fold is ops.Fold.AXES:
        axes = node.attribute_map["axes"]
        if isinstance(axes, tuple) and axes and not {1, 1 - data.rank} & set(axes):
            return data.moved(_OTHER_ORDER)
    is_anchor = operator.pattern is ops.Pattern.ANCHOR
    return data.moved_plain(_UNSUITED_ANCHOR if is_anchor else _UNSUITED)


class _Node:
    """A node with the types and layouts of its tensors."""

    def __init__(self, graph: Graph, node: Node, layouts: Layouts, fused: frozenset[str]) -> None:
        self.graph = graph
        self.types = graph.types
        self.fused = fused
        self.node = node
        self.layouts = layouts
        self.output = node.outputs[0]
        self.rank = len(self.types[node.inputs[0]].shape) if node.inputs else 0

    def layout(self, name: str) -> Layout:
        return self.layouts.get(name, PLAIN)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.types[name].extents

    def cycles(self, name: str) -> float:
        return self.types[name].size_bytes / NOMINAL.copied_bytes_per_cycle

    def is_alike(self, name: str) -> bool:
        """Whether a tensor has the memory order of the output."""
        return lie_alike(self.graph, self.layouts, name, self.output)

    def fits(self, name: str, layout: Layout) -> bool:
        return _fits(self.shape(name), layout)

    def keeps_blocks(self) -> bool:
        """Whether the blocks of all tensors divide the channels of all others."""
        names = [*self.node.inputs[:1], *self.node.outputs]
        ranks = {len(self.shape(name)) for name in names}
        blocks = [self.layout(name) for name in names]
        return len(ranks) == 1 and all(self.fits(n, block) for n in names for block in blocks)

    def moved(self, factor: float, fused: float = 0) -> float:
        """Cycles to move each tensor once, operands in another order `factor` or `fused` times."""
        total = sum(self.cycles(name) for name in self.node.outputs)
        for name in dict.fromkeys(self.node.inputs):
            is_fused = fused and name in self.fused and self.shape(name) == self.shape(self.output)
            unlike = fused if is_fused else factor
            total += self.cycles(name) * (1 if self.is_alike(name) else unlike)
        return total

    def moved_plain(self, factor: float) -> float:
        """Cycles to move each tensor once, those not in row-major order `factor` times."""
        total = 0.0
        for name in dict.fromkeys((*self.node.inputs, *self.node.outputs)):
            layout, shape = self.layout(name), self.shape(name)
            is_plain = memory_order(shape, layout) == memory_order(shape, PLAIN)
            unlike = _FUSED if name in self.fused else factor
            total += self.cycles(name) * (1 if is_plain else unlike)
        return total


def lie_alike(graph: Graph, layouts: Layouts, name: str, output: str) -> bool:
    """Whether one pass through both tensors, index by index, is sequential in both.

    A tensor of another rank than the output is broadcast, and counts as alike.
    """
    own, wanted = layouts.get(name, PLAIN), layouts.get(output, PLAIN)
    shapes = ops.sizes_of(graph.types[name]), ops.sizes_of(graph.types[output])
    if own == wanted or len(shapes[0]) != len(shapes[1]):
        return True
    orders = ((_order_in(shape, own), _order_in(shape, wanted)) for shape in shapes)
    return any(first == second and first is not None for first, second in orders)


def _order_in(shape: tuple[Index, ...], layout: Layout) -> tuple[tuple[int, Index], ...] | None:
    """The memory order of a shape; None if the block does not divide it."""
    if _fits(shape, layout):
        return memory_order(shape, layout)
    return memory_order(shape, PLAIN) if shape[layout.axis] == 1 else None


def _fits(shape: tuple[Index, ...], layout: Layout) -> bool:
    return layout.block == 1 or shape[layout.axis] % layout.block == 0


def _convolution(data: _Node, lanes: int) -> float:
    x, w = data.node.inputs[:2]
    out = data.shape(data.output)
    kernel = data.shape(w)
    products = prod(out) * prod(kernel[1:])
    moved = sum(data.cycles(name) for name in (x, w, data.output))
    groups = data.node.attribute_map.get("groups", 1)
    per_group = out[1] // groups if isinstance(groups, int) and groups else out[1]
    block = data.layout(data.output).block
    if is_channelwise(data.graph, data.node):
        efficiency = _vector_efficiency(block, lanes)
        if not data.is_alike(x):
            efficiency /= _OTHER_ORDER
    elif block > 1:
        efficiency = _vector_efficiency(block, lanes)
        if groups != 1 and per_group % block:
            efficiency = min(efficiency, _CROSSING_EFFICIENCY)
        elif data.layout(x).is_plain and x in data.layouts:
            efficiency *= _PLAIN_INPUT_EFFICIENCY
    elif prod(out[2:]) == 1:
        efficiency = 1.0  # it is a product with a matrix in any layout
    else:
        efficiency = _PLAIN_EFFICIENCY
        if not data.is_alike(x):
            efficiency *= _STRIDED_EFFICIENCY
    if block == 1 and prod(out[2:]) != 1 and _steps_inside(data.node):
        is_shared = groups != 1 and not is_channelwise(data.graph, data.node)
        efficiency *= _GATHERED_IN_GROUPS if is_shared else _GATHERED_EFFICIENCY
    if data.node.operator == "conv_integer" and 1 in (block, data.layout(x).block):
        efficiency *= _APART_EFFICIENCY
    return products / (NOMINAL.vectors_per_cycle * lanes) / efficiency + moved


def is_channelwise(graph: Graph, node: Node) -> bool:
    """Whether a convolution has as many groups as input and output channels (depthwise)."""
    groups = node.attribute_map.get("groups", 1)
    channels = graph.types[node.inputs[0]].shape[1]
    return groups == channels == graph.types[node.outputs[0]].shape[1] and groups != 1


def _pooling(data: _Node) -> float:
    """The cost of windows, which read a plain input with strides if they step by more than one."""
    cost = data.moved(_OTHER_ORDER_WINDOWS)
    if _steps_inside(data.node) and data.layout(data.output).is_plain:
        cost += (_OTHER_ORDER - 1) * data.cycles(data.node.inputs[0])
    return cost


def _steps_inside(node: Node) -> bool:
    """Whether the windows of neighbours along the last dimension begin more than one apart."""
    strides = node.attribute_map.get("strides", ())
    is_forward = node.operator != "conv_transpose"
    return is_forward and isinstance(strides, tuple) and bool(strides) and strides[-1] != 1


def _vector_efficiency(block: int, lanes: int) -> float:
    if block == 1:
        return _PLAIN_EFFICIENCY
    if block > lanes:
        return block / (-(-block // lanes) * lanes)
    return _BLOCK_EFFICIENCY.get(lanes // block, block / lanes)


def _concat(data: _Node) -> float:
    axis = data.node.attribute_map["axis"]
    shape = data.shape(data.output)
    dimension = axis % len(shape) if isinstance(axis, int) else 0
    parts = data.node.inputs
    own = data.layout(data.output)
    is_uniform = all(data.layout(name) == own for name in parts)
    if is_uniform and prod(shape[:dimension]) == 1 and own.axis in (-1, dimension):
        return 0.0  # the parts are written in place
    if any(not data.fits(name, own) for name in parts):
        return data.moved(1) * _UNSUITED
    return data.moved(_OTHER_ORDER)
