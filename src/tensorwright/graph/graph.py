"""The graph IR: a network as a list of operator applications in an order in which they can run.

Grammar
    graph ::= Graph(name, inputs, constants, nodes, outputs)
    node  ::= Node(operator, inputs, attributes, outputs)    every tensor has one definition

Semantics.  A graph is a pure function of its inputs.  Shapes and dtypes are static; the types of
all tensors follow from the inputs, the constants and the operators' shape rules, and are kept in
`types`.  A layout says how a tensor lies in memory and nothing about its meaning: shapes and axes
of operators are always those of the plain tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tensorwright.base import ModelError
from tensorwright.graph.printing import format_graph, format_layout, format_node, graph_to_html
from tensorwright.ops import Array, AttributeValue, TensorType


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator; attributes are sorted by name and complete."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, AttributeValue], ...] = ()

    @property
    def attribute_map(self) -> dict[str, AttributeValue]:
        """The attributes by name."""
        return dict(self.attributes)

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that is a tuple of integers."""
        value = self.attribute_map[name]
        if isinstance(value, tuple):
            return tuple(item for item in value if isinstance(item, int))
        raise self._wrong(name, "a tuple of integers")

    def integer(self, name: str) -> int:
        """An integer or bool attribute, as an integer."""
        value = self.attribute_map[name]
        if isinstance(value, int):
            return int(value)
        raise self._wrong(name, "an integer")

    def number(self, name: str) -> float:
        """A number attribute."""
        value = self.attribute_map[name]
        if isinstance(value, int | float):
            return float(value)
        raise self._wrong(name, "a number")

    def _wrong(self, name: str, wanted: str) -> ModelError:
        reason = f"attribute {name} is not {wanted}"
        return ModelError(stage="graph", where=self.label, reason=reason)

    @property
    def label(self) -> str:
        """How messages call it: the operator and its first output."""
        return f"node {self.outputs[0]} ({self.operator})"

    def __str__(self) -> str:
        return format_node(self)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in memory: plain row-major, or dimension `axis` split with the inner part
    of `block` last.

    "NCHW16c" is Layout(axis=1, block=16): physical shape (N, C/16, H, W, 16).
    `block` divides the extent.
    `order` is a permutation of the logical dimensions that is applied first (NHWC is order (0, 2,
    3, 1)); empty: none.
    """

    axis: int = -1
    block: int = 1
    order: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether this is row-major order."""
        return self.block == 1 and not self.order

    def __str__(self) -> str:
        return format_layout(self)


PLAIN = Layout()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A network.  Compare with `str(graph)` (and the constants' bytes): identity is not structure.

    inputs     names in calling order
    constants  name -> read-only array
    nodes      in topological order
    outputs    names of tensors, in order; may name an input or a constant
    types      name -> TensorType of every tensor
    layouts    name -> Layout; a tensor that is not named here is plain
    """

    name: str
    inputs: tuple[str, ...]
    constants: Mapping[str, Array]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, TensorType]
    layouts: Mapping[str, Layout] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def input_types(self) -> dict[str, TensorType]:
        """The type of each input, in calling order."""
        return {name: self.types[name] for name in self.inputs}

    @property
    def output_types(self) -> dict[str, TensorType]:
        """The type of each output, in order."""
        return {name: self.types[name] for name in self.outputs}

    def producers(self) -> dict[str, Node]:
        """The node that makes each tensor; inputs and constants have none."""
        return {name: node for node in self.nodes for name in node.outputs}

    def consumers(self) -> dict[str, tuple[Node, ...]]:
        """The nodes that read each tensor, each once, in order; every tensor has an entry."""
        readers: dict[str, list[Node]] = {name: [] for name in self.types}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                readers[name].append(node)
        return {name: tuple(nodes) for name, nodes in readers.items()}

    def __str__(self) -> str:
        return format_graph(self)

    def _repr_html_(self) -> str:
        return graph_to_html(self)
