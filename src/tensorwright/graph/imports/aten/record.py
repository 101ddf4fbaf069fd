"""An exported graph of ATen operators as plain data, read from a file or made in memory.

    graph     inputs, nodes in the order of execution, outputs
    node      "torch.ops.aten.linear.default", arguments by the names of its schema, outputs
    value     a tensor, a size or a number; each has a name, and an operator may return several

It holds what the JSON of a .pt2 file holds (`torch._export.serde.schema`), and needs no PyTorch.
Arguments that have their default value may be left out.  The operators are those of core ATen and
those that PyTorch decomposes into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tensorwright.base import Array, DType, UnsupportedError, digest_of_bytes
from tensorwright.graph.imports.refusals import unsupported

EXPORT_AGAIN = "export it again with torch.export.save"
"""The remedy for a record that contradicts itself."""

PROGRAM = "exported program"
"""The position of a fault that is of no single part."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type, by PyTorch's name: "float32", "complex64"."""

    name: str


Argument: TypeAlias = (
    "bool | int | float | str | Ref | ElementType | Body | tuple[Argument, ...] | None"
)

Extent: TypeAlias = int | str
"""A number, or an expression of symbols: "s0", "2*s0 + 1"."""


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """The type of a tensor, in PyTorch's terms."""

    dtype: ElementType
    sizes: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """An input of the graph.

    meta      the type of a tensor; None for a number
    constant  the value of a parameter, a buffer or a number that calls do not give
    owner     the name of a parameter or buffer in the module; "" for an input that calls give
    symbol    of a size, its expression of symbols; "" for other inputs
    """

    name: str
    meta: TensorMeta | None = None
    constant: Array | int | float | bool | str | None = None
    owner: str = ""
    symbol: str = ""

    @property
    def is_given(self) -> bool:
        """Whether each call gives it."""
        return self.meta is not None and self.constant is None and not self.owner


@dataclass(frozen=True, slots=True)
class Node:
    """A call of an operator.

    arguments  by the names of the operator's schema
    outputs    the names of its values; "" for one that nothing reads
    """

    name: str
    target: str
    arguments: tuple[tuple[str, Argument], ...]
    outputs: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"node {self.name} ({self.target.removeprefix('torch.ops.')})"


@dataclass(frozen=True, slots=True)
class Body:
    """A graph that an operator calls with its last arguments; it reads no other values.

    inputs   names of its inputs     outputs   values of it, or numbers
    """

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """A graph of ATen operators.

    outputs   values by name, or numbers
    changed   what a call writes to: "buffer running_mean"; empty if the graph is a function
    ranges    the least and the greatest value of each symbol; None if there is no greatest one
    label     its name in messages: "file net.pt2"
    """

    name: str
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Argument, ...]
    ranges: Mapping[str, tuple[int, int | None]]
    changed: tuple[str, ...] = ()
    label: str = PROGRAM

    @property
    def digest(self) -> str:
        """A digest of the whole graph; parameters count with the values that they have now."""
        texts = [repr(replace(self, inputs=()))]
        for each in self.inputs:
            value = each.constant
            if isinstance(value, np.ndarray):
                elements = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
                value = digest_of_bytes(elements.data)
            texts.append(repr(replace(each, constant=value)))
        return digest_of_bytes("\0".join(texts).encode())


DTYPES: Mapping[str, DType] = {each.numpy.name: each for each in DType}
"""The element types of PyTorch that tensorwright has."""


def dtype_of(element: ElementType, where: str) -> DType:
    """The type of the elements at a position."""
    if element.name not in DTYPES:
        reason = f"elements of type {element.name} are not supported"
        raise unsupported(where, "tensor", reason, "convert it before the export: tensor.float()")
    return DTYPES[element.name]


def only_in_pytorch(where: str, kind: str) -> UnsupportedError:
    """The error for an input that is neither a tensor nor a number."""
    reason = f"it is a {kind}, which only PyTorch can read"
    return unsupported(where, kind, reason, "export a module that is called with tensors alone")
