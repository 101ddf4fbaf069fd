"""Tensors of rounded numbers that products read: stored in bf16, if that is predicted to be faster.

    t = f32(bf16(x)); y = reshape(t); p = product(y, w)
        ->    s = bf16(x); y = reshape(s); p = product(f32(y), w)

The kernel of a product then widens what it reads, or multiplies bf16 as they are. The numbers are
the same. Others that read such a tensor keep it in f32: they would widen it, and gain nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

from tensorwright.base import DType, dump
from tensorwright.graph.graph import Graph, Node, free_name
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition.by_price import Alternative, Decisions, Price
from tensorwright.graph.workload import Workload, build_workload
from tensorwright.ops import Movement, TensorType

_ORDERS = (Movement.RESHAPE, Movement.REORDER)


def store_short(graph: Graph, price: Price | None) -> tuple[Graph, frozenset[str]]:
    """A graph whose products read bf16 where that is faster by a margin, and what they widen:
    tensors that are computed by those who read them.
    """
    if price is None or all(each.dtype is not DType.BF16 for each in graph.types.values()):
        return graph, frozenset()
    decide = Decisions(price)
    widened: set[str] = set()
    for node in graph.nodes:
        readers = _Readers.of(graph, node) if _is_rounded(graph, node) else None
        if readers is None:
            continue
        short, names = readers.shortened(graph)
        inside = widened | names
        kept, other = (readers.workloads(each, inside) for each in (graph, short))
        question = f"{node.outputs[0]}, read by {len(readers.products)} products"
        decision = decide(question, Alternative("f32", kept), Alternative("bf16", other))
        if decision is not None and decision.is_changed:
            graph, widened = short, inside
    dump("partition", "short", lambda: decide.describe("tensors of rounded numbers"))
    return graph, frozenset(widened)


def _is_rounded(graph: Graph, node: Node) -> bool:
    """Whether a node widens numbers that were just rounded, and that only it reads."""
    if node.operator != "cast" or graph.types[node.outputs[0]].dtype is not DType.F32:
        return False
    (source,) = node.inputs
    readers = [each for each in graph.nodes if source in each.inputs]
    is_made = any(source in each.outputs for each in graph.nodes)
    is_short = graph.types[source].dtype is DType.BF16
    return is_short and is_made and len(readers) == 1 and source not in graph.outputs


@dataclass(frozen=True, slots=True)
class _Readers:
    """What reads the numbers that a node widens.

    moving     nodes that bring them into another order, in the order of the graph
    products   nodes that multiply them
    """

    widening: Node
    moving: tuple[Node, ...]
    products: tuple[Node, ...]

    @classmethod
    def of(cls, graph: Graph, widening: Node) -> _Readers | None:
        """Those of a node; None if others than products read the numbers."""
        names = set(widening.outputs)
        moving: list[Node] = []
        products: list[Node] = []
        for node in graph.nodes:
            if names.isdisjoint(node.inputs):
                continue
            own = operator_of(node)
            if own.multiplied and names.isdisjoint(node.inputs[own.multiplied :]):
                products.append(node)
            elif node.operator == "split" or own.movement in _ORDERS:
                moving.append(node)
                names.update(node.outputs)
            else:
                return None
        is_whole = products and names.isdisjoint(graph.outputs)
        return cls(widening, tuple(moving), tuple(products)) if is_whole else None

    def shortened(self, graph: Graph) -> tuple[Graph, frozenset[str]]:
        """The graph in which products widen what they read, and the tensors that they widen."""
        types, layouts = dict(graph.types), dict(graph.layouts)
        (source,), (wide,) = self.widening.inputs, self.widening.outputs
        short = {wide: source}
        for node in self.moving:
            for name in node.outputs:
                short[name] = name
                types[name] = TensorType(DType.BF16, types[name].shape)
        made: set[str] = set()
        nodes: list[Node] = []
        for node in graph.nodes:
            if node == self.widening:
                continue
            new: dict[str, str] = {}
            for name in dict.fromkeys(node.inputs) if node in self.products else ():
                if name in short:
                    new[name] = copy = free_name(f"{name}.wide", types, 1, ".")
                    types[copy] = TensorType(DType.F32, types[name].shape)
                    if name in layouts:
                        layouts[copy] = layouts[name]
                    made.add(copy)
                    nodes.append(replace(self.widening, inputs=(short[name],), outputs=(copy,)))
            renamed = {**short, **new}
            inputs = tuple(renamed.get(name, name) for name in node.inputs)
            nodes.append(replace(node, inputs=inputs))
        if wide in layouts:
            layouts[source] = layouts[wide]
        types.pop(wide)
        layouts.pop(wide, None)
        changed = replace(
            graph,
            nodes=tuple(nodes),
            types=MappingProxyType(types),
            layouts=MappingProxyType(layouts),
        )
        return changed, frozenset(made)

    def workloads(self, graph: Graph, widened: Collection[str]) -> Iterator[Workload]:
        """The products, each with the constants and the other tensors that it widens."""
        results = {node.outputs[0] for node in self.products}
        makers = {name: node for node in graph.nodes for name in node.outputs}
        for node in graph.nodes:
            if node.outputs[0] in results:
                before = (makers[name] for name in dict.fromkeys(node.inputs) if name in makers)
                wide = [
                    each
                    for each in before
                    if each.outputs[0] in widened or graph.constants.keys() >= {*each.inputs}
                ]
                yield build_workload(graph, (*wide, node)).workload
