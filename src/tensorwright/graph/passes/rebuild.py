"""How a pass changes a graph: copy it node by node, and let a rule put something else in a node's
place.

    graph, count = rewrite(graph, rule)

A rule gets the copy under construction and a node whose inputs already have their names in the
copy.  It returns the
tensors that stand for the node's outputs, or None to copy the node as it is.  Tensors that are
copied keep their names,
and outputs of the graph do so in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.rename import rename_tensors
from tensorwright.ops import Array, AttributeValue, TensorType

Rule: TypeAlias = "Callable[[Copy, Node], Sequence[str] | None]"


class Copy:
    """A graph while it is being copied; mutable, lives inside `rewrite`."""

    def __init__(self, graph: Graph) -> None:
        self.builder = GraphBuilder(graph.name)
        self._producers: dict[str, Node] = {}
        self._uses = Counter(name for node in graph.nodes for name in node.inputs)
        self._uses.update(graph.outputs)
        for name in graph.inputs:
            self.builder.input(name, graph.types[name].shape, graph.types[name].dtype)
        for name, array in graph.constants.items():
            self.builder.constant(array, name)
        self._reserved = frozenset(graph.types)

    def producer(self, name: str) -> Node | None:
        """The node of the copy that makes a tensor."""
        return self._producers.get(name)

    def only_use(self, name: str) -> bool:
        """Whether a tensor is read once in the whole graph, outputs counted."""
        return self._uses[name] == 1

    def constant(self, name: str) -> Array | None:
        """The array behind a constant of the copy."""
        return self.builder.constant_value(name)

    def type_of(self, name: str) -> TensorType:
        """The type of a tensor of the copy."""
        return self.builder.type_of(name)

    def free(self, wish: str) -> str:
        """A name that neither the old graph nor the copy has: the wish, or the wish with a number
        behind it.
        """
        name, number = wish, 0
        while name in self._reserved or name in self.builder:
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

    def again(self, node: Node, **changes: AttributeValue) -> tuple[str, ...]:
        """Append a node like this one under its output names, with some attributes changed."""
        attributes = {**node.attribute_map, **changes}
        return self.emit(node.operator, node.inputs, node.outputs, **attributes)

    def alias(self, old: str, new: str) -> None:
        """Note that the readers of `old` now read `new`."""
        self._uses[new] += self._uses[old]


def rewrite(graph: Graph, rule: Rule) -> tuple[Graph, int]:
    """Apply a rule to every node once, in order; also how often it changed something."""
    copy = Copy(graph)
    renamed = {name: name for name in (*graph.inputs, *graph.constants)}
    count = 0
    for node in graph.nodes:
        moved = replace(node, inputs=tuple(renamed[name] for name in node.inputs))
        results = rule(copy, moved)
        if results is None:
            results = copy.again(moved)
        else:
            count += 1
        for old, new in zip(node.outputs, results, strict=True):
            renamed[old] = new
            if old != new:
                copy.alias(old, new)
    if not count:
        return graph, 0
    return _finish(graph, copy.builder, renamed), count


def _finish(graph: Graph, builder: GraphBuilder, renamed: dict[str, str]) -> Graph:
    """Keep the names of the outputs: rename what stands for them, or add an identity where it has
    to keep its own.
    """
    fixed = set(graph.inputs) | {name for name in graph.outputs if renamed[name] == name}
    names: dict[str, str] = {}
    outputs = []
    for old in graph.outputs:
        new = renamed[old]
        if new != old:
            if new in fixed or names.get(new, old) != old:
                new = builder.add("identity", new, output=old)
            else:
                names[new] = old
        outputs.append(new)
    for name, layout in graph.layouts.items():
        if name in builder:
            builder.set_layout(name, layout)
    return rename_tensors(builder.finish(outputs), names)
