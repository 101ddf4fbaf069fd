"""Static graphs made open: some extents of inputs, and of all later tensors, become named sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from tensorwright.base import AttributeValue, ModelError, UnsupportedError
from tensorwright.expr import Index, IndexExpr, NamedSize, exact_div, named_size, with_sizes
from tensorwright.graph import Graph, GraphBuilder, Node
from tensorwright.graph.infer import typed_node
from tensorwright.ops import TensorType, product_of, sizes_of

_MOST_TRIED = 200
_SHAPES = {"reshape": "shape", "expand": "shape", "resize": "sizes", "full": "shape"}


class CannotOpenError(Exception):
    """A node for which no open form was found."""


def opened(
    graph: Graph, shapes: Mapping[str, tuple[Index, ...]], values: Mapping[str, int]
) -> Graph:
    """The graph with other shapes of some inputs, which for some values are those that it has.

    Constants that no longer fit become inputs.
    """
    opener = _Opener(graph, shapes, values)
    for node in graph.nodes:
        opener.add(node)
    return opener.builder.finish(graph.outputs)


class _Opener:
    def __init__(
        self, graph: Graph, shapes: Mapping[str, tuple[Index, ...]], values: Mapping[str, int]
    ) -> None:
        self.graph = graph
        self.values = values
        self.builder = GraphBuilder(graph.name)
        for name in graph.inputs:
            type_ = graph.types[name]
            self.builder.input(name, shapes.get(name, type_.shape), type_.dtype)
        sizes = [extent for shape in shapes.values() for extent in shape]
        self.sizes = {self.at(size): size for size in sizes if isinstance(size, IndexExpr)}
        used = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
        self.pending = {name: a for name, a in graph.constants.items() if name in used}

    def at(self, extent: Index) -> Index:
        return with_sizes(extent, self.values)

    def add(self, node: Node) -> None:
        held = [name for name in node.inputs if name in self.pending]
        operands = {name: self.builder.type_of(name) for name in node.inputs if name not in held}
        for open_ones in product((False, True), repeat=len(held)):
            types = dict(operands)
            for name, is_open in zip(held, open_ones, strict=True):
                type_ = self.graph.types[name]
                shape = tuple(self.sizes.get(n, n) if is_open else n for n in sizes_of(type_))
                types[name] = TensorType(type_.dtype, shape)
            for attributes in self.attributes(node, types):
                try:
                    made, results = typed_node(
                        node.operator, node.inputs, node.outputs[0], attributes, types
                    )
                except (UnsupportedError, ModelError):
                    continue
                if len(results) == len(node.outputs) and self.is_right(node, results):
                    self.define(held, types)
                    self.builder.append(
                        Node(node.operator, node.inputs, node.outputs, made.attributes), results
                    )
                    return
        raise CannotOpenError(f"{node.operator} of {', '.join(map(str, operands.values()))}")

    def is_right(self, node: Node, results: tuple[TensorType, ...]) -> bool:
        pairs = zip(node.outputs, results, strict=True)
        return all(tuple(map(self.at, sizes_of(t))) == self.graph.types[n].shape for n, t in pairs)

    def define(self, held: list[str], types: Mapping[str, TensorType]) -> None:
        for name in held:
            array = self.pending.pop(name)
            if types[name].is_open:
                self.builder.input(name, types[name].shape, types[name].dtype)
            else:
                self.builder.constant(array, name)

    def attributes(
        self, node: Node, types: Mapping[str, TensorType]
    ) -> Iterator[dict[str, AttributeValue]]:
        given = node.attribute_map
        own = sizes_of(types[node.inputs[0]]) if node.inputs else ()
        key = _SHAPES.get(node.operator)
        if key is not None:
            listed = given[key]
            assert isinstance(listed, tuple)
            numbers = [each for each in listed if isinstance(each, int)]
            choices = [self.alternatives(n, own, at) for at, n in enumerate(numbers)]
            tried = 0
            for shape in product(*choices):
                tried += 1
                if tried > _MOST_TRIED:
                    return
                if node.operator == "reshape" and product_of(shape) != product_of(own):
                    continue
                yield {**given, key: shape}
            return
        if node.operator == "slice":
            ends = given["ends"]
            assert isinstance(ends, tuple)
            far = tuple((1 << 31) - 1 if n in self.sizes else n for n in ends)
            yield {**given, "ends": far}
        yield given

    def alternatives(self, number: int, own: tuple[Index, ...], at: int) -> list[Index]:
        """The alternatives for an extent of a shape: sizes of the input first."""
        alternatives: dict[Index, None] = {}
        if at < len(own):
            n = self.at(own[at])
            if n == number:
                alternatives[own[at]] = None
            elif isinstance(own[at], IndexExpr) and isinstance(n, int) and n and number % n == 0:
                alternatives[own[at] * (number // n)] = None
        for extent in own:
            if self.at(extent) == number:
                alternatives[extent] = None
        for first in range(len(own)):
            for last in range(first + 2, len(own) + 1):
                count = product_of(own[first:last])
                if self.at(count) == number:
                    alternatives[count] = None
        for extent in own:
            n = self.at(extent)
            if isinstance(extent, IndexExpr) and isinstance(n, int) and number and n % number == 0:
                alternatives[exact_div(extent, n // number)] = None
        if number in self.sizes:
            alternatives[self.sizes[number]] = None
        alternatives[number] = None
        return list(alternatives)


def work_of(graph: Graph) -> int:
    """How many elements the tensors of a static graph have."""
    return sum(prod(type_.extents) for type_ in graph.types.values())


def with_open_extents(graph: Graph, chance: random.Random) -> tuple[Graph, dict[str, int]]:
    """The graph with a batch, a length or an extent of an image open, or two of these."""
    first = graph.types[graph.inputs[0]].extents
    inner = {3: [1]}.get(len(first), list(range(2, len(first))))
    sizes: dict[int, Index] = {}
    values: dict[str, int] = {}
    for at in sorted(chance.sample([0, *inner], min(len(inner) + 1, chance.choice((1, 2))))):
        number = first[at]
        if number in values.values():
            continue
        divisor = chance.choice([d for d in (1, 1, 2, 4, 8, 16, 32) if number % d == 0])
        least = chance.choice((1, max(1, number // 2), number))
        most = chance.choice((number + 3 * divisor, 2 * number, None))
        name = "nslhwd"[at]
        sizes[at], values[name] = named_size(name, least, most, divisor), number
    shapes: dict[str, tuple[Index, ...]] = {}
    for name in graph.inputs:
        shape = graph.types[name].extents
        is_alike = len(shape) == len(first)
        shapes[name] = tuple(
            sizes.get(at, n) if is_alike and n == first[at] else n for at, n in enumerate(shape)
        )
    return opened(graph, shapes, values), values


def near(size: NamedSize, number: int, chance: random.Random) -> tuple[int, int, int]:
    """The ends of a size's bounds (not too far above a number), and a number between."""
    least, most = size.least, number // size.divisor + 3
    most = max(least, most if size.most is None else min(most, size.most))
    between = chance.randint(least, most)
    return least * size.divisor, most * size.divisor, between * size.divisor
