"""The way in which a pass changes a graph: walk its nodes, and let a rule replace some of them.

    graph, count = rewrite(graph, rule)

`rewriting` makes a pass of a rule.  A rule gets the copy under construction and a node whose inputs
already have their names in the copy.  It returns the tensors that stand for the node's outputs, or
None to keep the node as it is.  Tensors that are kept keep their names, and outputs of the graph do
so in any case.

A rule computes with named sizes as with numbers. Where a size leaves the answer open
(`UndecidedError`), the node stays.

A rule that replaces nothing leaves the graph as it is: nothing is copied until the first change. In
a copy, types are inferred only for emitted nodes and for readers of tensors whose types have
changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeAlias

import numpy as np

from tensorwright.base import Shape, UndecidedError
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph, Node, rename_tensors
from tensorwright.ops import Array, AttributeValue, TensorType

Rule: TypeAlias = "Callable[[Copy, Node], Sequence[str] | None]"
Pass: TypeAlias = Callable[[Graph], tuple[Graph, int]]


class Copy:
    """The walked part of a graph with the rules' replacements; mutable, lives inside `rewrite`."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._kept: list[Node] = []  # the nodes before the first change
        self._changed: GraphBuilder | None = None
        self._producers: dict[str, Node] = {}
        self._uses = Counter(name for node in graph.nodes for name in node.inputs)
        self._uses.update(graph.outputs)

    @property
    def builder(self) -> GraphBuilder:
        """The copy to write to; asking for it is the first change."""
        if self._changed is None:
            builder = GraphBuilder(self._graph.name)
            for name in self._graph.inputs:
                type_ = self._graph.types[name]
                builder.input(name, type_.shape, type_.dtype)
            for name, array in self._graph.constants.items():
                builder.constant(array, name)
            for node in self._kept:
                builder.append(node, self._types_of(node))
            self._changed = builder
        return self._changed

    def producer(self, name: str) -> Node | None:
        """The node of the copy that makes a tensor."""
        return self._producers.get(name)

    def only(self, name: str, operator: str) -> Node | None:
        """The node of an operator that makes a tensor which is read once; else None."""
        made = self._producers.get(name)
        is_it = made is not None and made.operator == operator and self.only_use(name)
        return made if is_it else None

    def only_use(self, name: str) -> bool:
        """Whether a tensor is read once in the whole graph, outputs counted."""
        return self._uses[name] == 1

    def uses(self, name: str) -> int:
        """How often a tensor is read in the whole graph, outputs counted."""
        return self._uses[name]

    def constant(self, name: str) -> Array | None:
        """The array behind a constant of the copy."""
        if self._changed is None:
            return self._graph.constants.get(name)
        return self._changed.constant_value(name)

    def type_of(self, name: str) -> TensorType:
        """The type of a tensor of the copy."""
        return self._graph.types[name] if self._changed is None else self._changed.type_of(name)

    def result(self, node: Node) -> TensorType:
        """The type of the first output of a node of the old graph."""
        return self._graph.types[node.outputs[0]]

    def free(self, wish: str) -> str:
        """A name that neither graph has: the wish, or the wish with a number behind it."""
        name, number = wish, 0
        while name in self._graph.types or name in self.builder:
            name, number = f"{wish}.{number}", number + 1
        return name

    def hold(self, array: Array, wish: str) -> str:
        """A new constant."""
        return self.builder.constant(array, self.free(wish))

    def emit(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        /,
        **attributes: AttributeValue,
    ) -> tuple[str, ...]:
        """Append a node; `outputs` are names of the old graph that it now defines."""
        names = self.builder.apply(operator, inputs, outputs, **attributes)
        node = Node(operator, tuple(inputs), names, tuple(sorted(attributes.items())))
        self._producers.update(dict.fromkeys(names, node))
        return names

    def new(
        self, operator: str, inputs: Sequence[str], wish: str, /, **attributes: AttributeValue
    ) -> str:
        """Append a node with a tensor of its own."""
        return self.emit(operator, inputs, (self.free(wish),), **attributes)[0]

    def keep(self, old: Node, node: Node) -> tuple[str, ...]:
        """Append a node of the graph, whose inputs may have got other names."""
        self._producers.update(dict.fromkeys(node.outputs, node))
        if self._changed is None:
            self._kept.append(node)
            return node.outputs
        before = [self._graph.types[name] for name in old.inputs]
        if before != [self._changed.type_of(name) for name in node.inputs]:
            attributes = node.attribute_map
            if node.graphs:
                self.builder.nest(
                    node.operator, node.inputs, node.graphs, node.outputs, **attributes
                )
                return node.outputs
            return self.emit(node.operator, node.inputs, node.outputs, **attributes)
        return self._changed.append(node, self._types_of(old))

    def alias(self, old: str, new: str) -> None:
        """Note that the readers of `old` now read `new`."""
        self._uses[new] += self._uses[old]

    def _types_of(self, node: Node) -> tuple[TensorType, ...]:
        return tuple(self._graph.types[name] for name in node.outputs)


def rewrite(graph: Graph, rule: Rule) -> tuple[Graph, int]:
    """Apply a rule to every node once, in order; also how often it changed something."""
    copy = Copy(graph)
    renamed: dict[str, str] = {}
    count = 0
    for node in graph.nodes:
        moved = node
        if not renamed.keys().isdisjoint(node.inputs):
            moved = node.renamed(renamed)
        try:
            results = rule(copy, moved)
        except UndecidedError:
            results = None
        if results is None:
            results = copy.keep(node, moved)
        else:
            count += 1
        for old, new in zip(node.outputs, results, strict=True):
            if old != new:
                renamed[old] = new
                copy.alias(old, new)
    if not count:
        return graph, 0
    return _finish(graph, copy.builder, renamed), count


def rewriting(*operators: str) -> Callable[[Rule], Pass]:
    """The pass that applies a rule to all nodes of these operators; to all nodes for none."""

    def pass_of(rule: Rule) -> Pass:
        @wraps(rule)
        def run(graph: Graph) -> tuple[Graph, int]:
            if not operators:
                return rewrite(graph, rule)
            if all(node.operator not in operators for node in graph.nodes):
                return graph, 0
            return rewrite(
                graph, lambda copy, node: rule(copy, node) if node.operator in operators else None
            )

        return run

    return pass_of


def _finish(graph: Graph, builder: GraphBuilder, renamed: dict[str, str]) -> Graph:
    """Keep the names of outputs: rename their replacements, or add an identity."""
    fixed = set(graph.inputs) | {name for name in graph.outputs if name not in renamed}
    names: dict[str, str] = {}
    outputs = []
    for old in graph.outputs:
        new = renamed.get(old, old)
        if new != old:
            if new in fixed or names.get(new, old) != old:
                new = builder.add("identity", new, output=old)
            else:
                names[new] = old
        outputs.append(new)
    for name, layout in graph.layouts.items():
        if name in builder:
            builder.set_layout(name, layout)
    finished = builder.finish(outputs)
    return rename_tensors(finished, names) if names else finished


CHANNEL = 1


def constant_operand(copy: Copy, node: Node) -> tuple[str, Array] | None:
    """The other input and the constant of a binary node that has exactly one constant input."""
    if len(node.inputs) != 2:
        return None
    left, right = (copy.constant(name) for name in node.inputs)
    if (left is None) == (right is None):
        return None
    if right is not None:
        return node.inputs[0], right
    return (node.inputs[1], left) if left is not None else None


def channel_vector(array: Array, shape: Shape) -> Array | None:
    """The numbers per channel, if `array` differs along channels (dimension 1) only."""
    if array.ndim > len(shape) or len(shape) < 2:
        return None
    full = (1,) * (len(shape) - array.ndim) + array.shape
    if any(n != 1 for axis, n in enumerate(full) if axis != CHANNEL):
        return None
    channels = shape[CHANNEL]
    if not isinstance(channels, int) or full[CHANNEL] not in (1, channels):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))
