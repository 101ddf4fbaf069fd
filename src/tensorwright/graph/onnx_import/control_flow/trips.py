"""The number of iterations of loops that collect rows, as named sizes: NAME_trips."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto

from tensorwright.expr import Index, IndexExpr, counted_size, named_sizes_of
from tensorwright.graph.onnx_import.open_dimensions import Bounds, read_bounds
from tensorwright.ops import TensorType

_SUFFIX = "_trips"


def size_of_loop(node: NodeProto) -> str:
    """The name of the size: that of the node or of its first output, made an identifier."""
    name = node.name or (node.output[0] if node.output else "loop")
    stem = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "loop"
    return f"loop_{stem}{_SUFFIX}" if stem[0].isdigit() else f"{stem}{_SUFFIX}"


def loop_sizes(graph: GraphProto) -> Iterator[str]:
    """The names of the sizes of all loops of a graph and of those nested in it."""
    for node in graph.node:
        if node.op_type == "Loop":
            yield size_of_loop(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from loop_sizes(attribute.g)


class Trips:
    """Makes the sizes of loops, each once; mutable.

    bounds   what the caller says of them
    """

    def __init__(self, bounds: Mapping[str, Bounds]) -> None:
        self._bounds = bounds
        self._taken: set[str] = set()

    def avoid(self, type_: TensorType) -> None:
        """Other sizes have the names of those in a type."""
        extents = (each for each in type_.shape if isinstance(each, IndexExpr))
        self._taken.update(size.name for size in named_sizes_of(*extents))

    def of(self, name: str, most: int | None) -> Index | None:
        """The size of a loop; None where nobody says how many iterations there are at most.

        most   what the graph says
        """
        if name in self._bounds:
            _, given, _ = read_bounds(name, self._bounds[name])
            most = given if most is None else most if given is None else min(given, most)
        if most is None:
            return None
        free, number = name, 2
        while free in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free)
        return counted_size(free, max(1, most))
