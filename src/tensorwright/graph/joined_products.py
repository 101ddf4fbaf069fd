"""Products of one tensor with several constants become one product.

    before   q = matmul(x, a)    k = matmul(x, b)
    after    all = matmul(x, [a b])    q, k = slices of all along the last axis

The threads of a step then start and end once, and each has more columns.  Readers take their parts
out of the whole result, which costs more than it saves where a product would have stored them in
their own order: prices decide, once for sets alike.  Products with packed codes have no prices.
They are joined, because each of them rounds all rows again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.base import dump
from tensorwright.graph import partition
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.identities import remove_dead_code
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.graph.workload import Workload
from tensorwright.ops import Array, sizes_of

_ROUNDING = "matmul_blocks"
_PRODUCTS = ("matmul", "matmul_integer", _ROUNDING)
_WIDENING = ("cast", "dequantize_blocks")
_COLUMNS = 1  # the axis of all constants


def join_products(graph: Graph, price: partition.Price | None) -> Graph:
    """The graph with those products as one that are faster so.

    graph   in plain layouts, as it is cut into kernels
    price   decides by a margin; None joins what needs no price
    """
    alike: dict[tuple[object, ...], list[_Products]] = {}
    for each in _candidates(graph):
        alike.setdefault(each.form, []).append(each)
    decide = None if price is None else partition.Decisions(price, stops_early=False)
    chosen: list[_Products] = []
    for same in alike.values():
        is_rounding = same[0].nodes[0].operator == _ROUNDING
        if is_rounding or (decide is not None and _is_faster(graph, same[0], decide)):
            chosen += same
    if decide is not None:
        dump("layouts", "products", lambda: decide.describe("products"))
    return _joined(graph, chosen) if chosen else graph


@dataclass(frozen=True, slots=True)
class _Products:
    """Nodes that multiply one tensor by constants of one kind; `form` is equal for sets alike.

    makers   of the operands of the first one: nodes that widen constants, None for constants
    held     for each node the constants of each operand
    """

    nodes: tuple[Node, ...]
    makers: tuple[Node | None, ...]
    held: tuple[tuple[tuple[str, ...], ...], ...]
    form: tuple[object, ...]


def _candidates(graph: Graph) -> Iterator[_Products]:
    """The sets of products that may be one."""
    producers = graph.producers()
    sets: dict[tuple[object, ...], list[Node]] = {}
    makers: dict[str, tuple[Node | None, ...]] = {}
    for node in graph.nodes:
        if node.operator not in _PRODUCTS or len(graph.types[node.inputs[0]].shape) < 2:
            continue
        made = tuple(producers.get(name) for name in node.inputs[1:])
        held = _held(node, made)
        arrays = [graph.constants.get(name) for names in held for name in names]
        kinds = tuple(
            (array.dtype, array.shape[0], array.shape[_COLUMNS + 1 :])
            for array in arrays
            if array is not None and array.ndim > _COLUMNS
        )
        how = tuple((each.operator, each.attributes) if each else None for each in made)
        is_widened = all(each is None or each.operator in _WIDENING for each in made)
        if is_widened and len(kinds) == len(arrays):
            makers[node.outputs[0]] = made
            key = node.operator, node.inputs[0], node.attributes, how, kinds
            sets.setdefault(key, []).append(node)
    for (operator, x, *others), nodes in sets.items():
        if len(nodes) > 1:
            columns = tuple(sizes_of(graph.types[node.outputs[0]])[-1] for node in nodes)
            held_by_each = tuple(_held(node, makers[node.outputs[0]]) for node in nodes)
            form = operator, graph.types[str(x)], *others, columns
            yield _Products(tuple(nodes), makers[nodes[0].outputs[0]], held_by_each, form)


def _held(node: Node, made: Sequence[Node | None]) -> tuple[tuple[str, ...], ...]:
    """The constants of each operand behind the first one."""
    pairs = zip(node.inputs[1:], made, strict=True)
    return tuple(maker.inputs if maker else (name,) for name, maker in pairs)


def _is_faster(graph: Graph, products: _Products, decide: partition.Decisions) -> bool:
    """Whether the kernels that change are faster with one product."""
    trial = _joined(graph, [products])
    before, after = map(partition.usual_groups, (graph, trial))
    kept = partition.Alternative("apart", _workloads(graph, before, after))
    other = partition.Alternative("one product", _workloads(trial, after, before))
    first, *others = (node.outputs[0] for node in products.nodes)
    decision = decide(f"{first} and {len(others)} more", kept, other)
    return decision is not None and decision.is_changed


def _workloads(
    graph: Graph, groups: Sequence[tuple[Node, ...]], others: Iterable[tuple[Node, ...]]
) -> Iterator[Workload]:
    """The kernels of the groups that are not among the others."""
    same = set(others)
    return partition.kernels_of_groups(graph, (nodes for nodes in groups if nodes not in same))


def _joined(graph: Graph, products: Sequence[_Products]) -> Graph:
    """The graph with each set as one product."""
    first = {each.nodes[0].outputs: each for each in products}
    others = {node.outputs for each in products for node in each.nodes[1:]}

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.outputs in first:
            return _write(copy, node, first[node.outputs])
        return node.outputs if node.outputs in others else None

    return remove_dead_code(rewrite(graph, rule)[0])[0]


def _write(copy: Copy, node: Node, products: _Products) -> Sequence[str]:
    """One product, and a part of it for each; the outputs of the first node."""
    wish = node.outputs[0]
    inputs = [node.inputs[0]]
    for maker, held in zip(products.makers, zip(*products.held, strict=True), strict=True):
        parts: list[str] = []
        for names in zip(*held, strict=True):
            arrays = [array for array in map(copy.constant, names) if array is not None]
            whole: Array = np.concatenate(arrays, _COLUMNS)
            parts.append(copy.hold(whole, f"{wish}.joined"))
        made = maker and copy.new(maker.operator, parts, parts[0], **maker.attribute_map)
        inputs += (made,) if made else parts
    product = copy.new(node.operator, inputs, f"{wish}.all", **node.attribute_map)
    axes, start = (len(copy.type_of(product).shape) - 1,), 0
    for each in products.nodes:
        end = start + int(sizes_of(copy.result(each))[-1])
        where = {"starts": (start,), "ends": (end,), "axes": axes, "steps": (1,)}
        copy.emit("slice", (product,), each.outputs, **where)
        start = end
    return node.outputs
