"""The graph IR: a network as a list of operator applications in an order in which they can run.

Grammar
    graph ::= Graph(name, inputs, constants, nodes, outputs)
    node  ::= Node(operator, inputs, attributes, outputs)           every tensor has one name and one definition

Semantics.  A graph is a pure function of its inputs.  Shapes and dtypes are static; the types of all tensors follow
from the inputs, the constants and the operators' shape rules, and are kept in `types`.  A layout says how a tensor lies
in memory and nothing about its meaning: shapes and axes of operators are always those of the plain tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

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


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in memory: plain row-major, or dimension `axis` split with the inner part of `block` last.

    "NCHW16c" is Layout(axis=1, block=16): physical shape (N, C/16, H, W, 16).  `block` divides the extent.
    `order` is a permutation of the logical dimensions that is applied first (NHWC is order (0, 2, 3, 1)); empty: none.
    """

    axis: int = -1
    block: int = 1
    order: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether this is row-major order."""
        return self.block == 1 and not self.order


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
