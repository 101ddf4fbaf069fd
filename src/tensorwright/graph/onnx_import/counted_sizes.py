"""Sizes that nodes decide when a network runs, and what is known of them before.

    Loop "walk" that collects rows       walk_trips, of at most as many iterations as it may have
    NonZero "where" of x: f32(n, 4)      where_count, of at most 4*n
    Range "steps" up to a computed end   steps_count, and the caller says how many there may be

The graph says how large such a size may be, or the caller does, under the name of the size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain

from onnx import ModelProto, NodeProto

from tensorwright.base import AttributeValue, UsageError, did_you_mean
from tensorwright.expr import (
    Index,
    IndexExpr,
    NamedSize,
    counted_size,
    minimum,
    named_sizes_of,
    room_for,
    simplify,
    substitute,
    sum_of,
)
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Node
from tensorwright.graph.onnx_import.open_dimensions import Bounds, read_bounds
from tensorwright.ops import TensorType

_KEEPING = frozenset({"cast", "expand", "identity", "reshape", "squeeze", "unsqueeze"})
_NO_LIMIT = 1 << 62


def stem_of(node: NodeProto) -> str:
    """The stem of the names of a node's sizes: its name or first output, made an identifier."""
    name = node.name or next(iter(node.output), "") or "size"
    stem = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "size"
    return f"{node.op_type.lower()}_{stem}" if stem[0].isdigit() else stem


def may_be_counted(model: ModelProto, name: str) -> bool:
    """Whether a size of that name may be one that a node of the model decides."""
    functions = (function.node for function in model.functions)
    nodes = chain(_all_nodes(model.graph.node), *map(_all_nodes, functions))
    return any(name.startswith(f"{stem_of(node)}_") for node in nodes)


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(attribute.g.node)


class CountedSizes:
    """Makes the sizes that nodes decide, each once; mutable.

    bounds   what the caller says of them
    """

    def __init__(self, bounds: Mapping[str, Bounds]) -> None:
        self._bounds = bounds
        self._asked: set[str] = set()
        self._taken: set[str] = set()
        self._most: dict[NamedSize, Index] = {}

    def avoid(self, type_: TensorType) -> None:
        """Other sizes have the names of those in a type."""
        extents = (each for each in type_.shape if isinstance(each, IndexExpr))
        self._taken.update(size.name for size in named_sizes_of(*extents))

    def of(self, name: str, most: Index | None, least: int = 0) -> tuple[Index, Index] | None:
        """A size and its upper bound; None where it has none.

        most   what the graph says, which may be made of sizes     least   as the graph says it
        """
        self._asked.add(name)
        if name in self._bounds:
            low, given, _ = read_bounds(name, self._bounds[name], 0)
            least = max(low, least)
            most = given if most is None else most if given is None else minimum(most, given)
        if most is None:
            return None
        bound = simplify(substitute(room_for(most), self._most), {})
        free, number = name, 2
        while free in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free)
        greatest = greatest_number(bound)
        size = 0 if greatest == 0 else counted_size(free, greatest, least)
        self._most.update(dict.fromkeys(named_sizes_of(size), bound))
        return size, bound

    def have_decided(self, sizes: Sequence[NamedSize]) -> bool:
        """Whether some sizes, at least one, are all such that nodes decide them."""
        return bool(sizes) and all(size in self._most for size in sizes)

    def check_all_used(self, names: Iterable[str]) -> None:
        """Refuse bounds of a size that no node has asked for.

        names   of the sizes of inputs

        Raises:  UsageError.
        """
        for name in self._bounds:
            if name not in self._asked:
                sizes = (*names, *sorted(self._asked))
                listed = ", ".join(sizes) or "none: all its dimensions are numbers"
                raise UsageError(
                    stage="import",
                    where=f"size {name}",
                    reason="the model has no size of that name",
                    remedy=did_you_mean(name, sizes, f"its sizes are {listed}"),
                )


def greatest_number(bound: Index) -> int | None:
    """The greatest number of what is greatest where all of its sizes are; None without one."""
    sizes = named_sizes_of(bound)
    number, beyond = (
        substitute(bound, {size: far if size.most is None else size.most for size in sizes})
        for far in (_NO_LIMIT, 4 * _NO_LIMIT)
    )
    if isinstance(number, int) and number == beyond:
        return number  # as of min(n, 12), which is 12 for every large n
    return None


def greatest_value(builder: GraphBuilder, tensor: str) -> Index | None:
    """What integers that are computed are never above, by the numbers and sizes that they count to,
    are sums of, or are the least of; None where nothing says it.
    """
    constant = builder.constant_value(tensor)
    if constant is not None:
        return int(constant.reshape(-1)[0]) if constant.size == 1 else None
    node = builder.producer(tensor)
    if node is None:
        return None
    if node.operator == "full":
        value = node.attribute_map["value"]
        return value if isinstance(value, IndexExpr) else int(node.number("value"))
    if node.operator == "clip":
        most = node.number("max")
        return int(most) if most < _NO_LIMIT else None
    if node.operator == "range":
        return _last_of(node)
    bounds = [greatest_value(builder, name) for name in node.inputs]
    limits = [bound for bound in bounds if bound is not None]
    if node.operator in _KEEPING:
        return bounds[0]
    if node.operator == "add" and len(limits) == len(bounds):
        return sum_of(limits)
    return reduce(minimum, limits) if node.operator == "min" and limits else None


def _last_of(node: Node) -> Index | None:
    """The greatest of a range of integers; None for other numbers."""
    start, step, size = (_whole(node.attribute_map[name]) for name in ("start", "step", "size"))
    if start is None or size is None or not isinstance(step, int):
        return None
    return start + step * (size - 1) if step > 0 else start


def _whole(value: AttributeValue) -> Index | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int | IndexExpr) else None
