"""Named sizes of a graph.

Sizes that nodes decide when a network runs: a loop by its iterations, others by values.

Such a size has a value after its node.  So nodes that use it come later, even without a tensor from
one to the other, and the node is needed as long as one of them is.

Typical numbers are for prices alone: the result of every stage is right for all sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tensorwright import base, expr
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.nested import LOOP, NESTING
from tensorwright.ops import Array, as_size, operator, product_of, sizes_of


def counted_size_of(node: Node) -> expr.NamedSize | None:
    """The size that a node decides; None where it decides none, or a number stands for it."""
    if node.operator in NESTING:
        name = "trips" if node.operator == LOOP and node.attribute_map["counts"] else ""
    else:
        name = operator(node.operator).decides
    size = node.attribute_map[name] if name else None
    return size if isinstance(size, expr.NamedSize) else None


def counted_sizes(graph: Graph) -> dict[str, Node]:
    """The node that decides each named size which no input decides, in nested graphs, too."""
    counted: dict[str, Node] = {}
    for node in graph.nodes:
        size = counted_size_of(node)
        if size is not None:
            counted[size.name] = node
        for nested in node.graphs:
            counted.update(counted_sizes(nested))
    return counted


def counted_bounds(graph: Graph) -> dict[str, expr.Index]:
    """Upper bounds of sizes that nodes decide, where these depend on sizes of inputs."""
    limits = ((name, node.attribute_map.get("most")) for name, node in counted_sizes(graph).items())
    return {name: as_size(most) for name, most in limits if isinstance(most, expr.IndexExpr)}


def decided_number(
    node: Node, types: Mapping[str, base.TensorType], results: Sequence[Array]
) -> int:
    """The size that a node has decided, read off its outputs.

    types   of its outputs, with the size
    """
    size = counted_size_of(node)
    for name, array in zip(node.outputs, results, strict=True):
        for extent, number in zip(types[name].shape, array.shape, strict=True):
            if extent is size:
                return int(number)
    raise AssertionError(f"no output of {node.label} has the extent {size}")


def sizes_used(node: Node, types: Mapping[str, base.TensorType]) -> set[expr.NamedSize]:
    """The sizes of a node's attributes and results, and of the graphs that it holds."""
    pending: list[base.AttributeValue] = [value for _, value in node.attributes]
    pending += [extent for name in node.outputs for extent in types[name].shape]
    used: set[expr.NamedSize] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending.extend(value)
        elif isinstance(value, expr.IndexExpr):
            used.update(expr.named_sizes_of(as_size(value)))
    for nested in node.graphs:
        used.update(nested.sizes)
    return used


def _bound_type(name: str, given: base.TensorType, values: Mapping[str, int]) -> base.TensorType:
    """The type of a tensor with numbers for named sizes."""
    shape = tuple(
        expr.with_sizes(e, values) if isinstance(e, expr.IndexExpr) else e for e in given.shape
    )
    if any(isinstance(extent, int) and extent < 0 for extent in shape):
        given_text = ", ".join(f"{size} = {number}" for size, number in values.items())
        raise base.ModelError(
            stage="sizes",
            where=f"tensor {name}: {given}",
            reason=f"with {given_text} an extent is negative",
            remedy="give larger numbers",
        )
    return base.TensorType(given.dtype, shape)


def bind_types(
    types: Mapping[str, base.TensorType], values: Mapping[str, int]
) -> Mapping[str, base.TensorType]:
    """The types of tensors with numbers for named sizes.  Raises: as `bind_sizes`."""
    bound = {name: _bound_type(name, type_, values) for name, type_ in types.items()}
    return MappingProxyType(bound)


def bind_sizes(graph: Graph, values: Mapping[str, int]) -> Graph:
    """The graph with numbers for named sizes; those that are not named stay.

    Raises:  ExpressionError for a number that a size may not be; UsageError for a name that no size
             of the graph has; ModelError where an extent would be negative.
    """
    names = [size.name for size in graph.sizes]
    unknown = [name for name in values if name not in names]
    if unknown:
        raise base.UsageError(
            stage="sizes",
            where=f"graph {graph.name}",
            reason=f"it has no size of the name {', '.join(map(str, unknown))}",
            remedy="its sizes are " + (", ".join(names) or "all numbers"),
        )
    nodes = (bind_node(node, values) for node in graph.nodes)
    return replace(graph, nodes=tuple(nodes), types=bind_types(graph.types, values))


def bind_node(node: Node, values: Mapping[str, int]) -> Node:
    """A node with numbers for named sizes in its attributes and graphs."""

    def bound(value: base.AttributeValue) -> base.AttributeValue:
        if isinstance(value, tuple):
            return tuple(map(bound, value))
        return expr.with_sizes(value, values) if isinstance(value, expr.IndexExpr) else value

    return replace(
        node,
        attributes=tuple((name, bound(value)) for name, value in node.attributes),
        graphs=tuple(bind_sizes(each, _of_graph(each, values)) for each in node.graphs),
    )


def _of_graph(graph: Graph, values: Mapping[str, int]) -> dict[str, int]:
    names = [size.name for size in graph.sizes]
    return {name: number for name, number in values.items() if name in names}


def representative(sizes: Iterable[expr.NamedSize]) -> dict[str, int]:
    """A typical number for each size."""
    return {size.name: size.bounds.typical for size in sizes}


def usual_sizes(
    sizes: Iterable[expr.NamedSize], inputs: Iterable[base.TensorType | expr.Placeholder]
) -> dict[str, int]:
    """The numbers for runs and measurements when nobody names others, as `usual_numbers`."""
    bounds = {size.name: size.bounds for size in sizes}
    return base.usual_numbers(bounds, [each.shape for each in inputs])


def least_sizes(sizes: Iterable[expr.NamedSize]) -> dict[str, int]:
    """The least number that each size may be, and that is not 0."""
    return {size.name: max(1, size.least) * size.divisor for size in sizes}


def with_typical_sizes(graph: Graph) -> Graph:
    """The graph with a typical number for each of its sizes."""
    sizes = graph.sizes
    return bind_sizes(graph, representative(sizes)) if sizes else graph


def typical_shape(type_: base.TensorType) -> tuple[int, ...]:
    """The extents for typical sizes."""
    if not type_.is_open:
        return type_.extents
    shape = sizes_of(type_)
    return _with_numbers(shape, representative(expr.named_sizes_of(*shape)))


def least_bytes(type_: base.TensorType) -> int:
    """The bytes of a dense tensor for the least sizes."""
    shape = sizes_of(type_)
    least = least_sizes(expr.named_sizes_of(*shape))
    return base.TensorType(type_.dtype, _with_numbers(shape, least)).size_bytes


def bytes_of(type_: base.TensorType) -> expr.Index:
    """The bytes of a dense tensor."""
    return product_of(sizes_of(type_)) * type_.dtype.size_bytes


def _with_numbers(shape: Sequence[expr.Index], values: Mapping[str, int]) -> tuple[int, ...]:
    extents = (expr.with_sizes(extent, values) for extent in shape)
    return tuple(extent for extent in extents if isinstance(extent, int))


def sizes_of_shapes(
    types: Mapping[str, base.TensorType], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The sizes for which tensors have the given shapes, as far as the shapes determine them.

    An extent determines a size if it is a multiple of it plus a number.  The shapes are not
    checked: the caller compares the types with these sizes.
    """
    told: dict[str, int] = {}
    pairs = [
        pair
        for name, type_ in types.items()
        if len(type_.shape) == len(shapes[name])
        for pair in zip(sizes_of(type_), shapes[name], strict=True)
    ]
    while True:
        before = len(told)
        for extent, number in pairs:
            told |= _size_of_extent(expr.with_sizes(extent, told), number)
        if len(told) == before:
            return told


def _size_of_extent(extent: expr.Index, number: int) -> dict[str, int]:
    """The size that an extent determines, if the size may have that value."""
    try:
        solution = expr.solved_size(extent, number)
    except ValueError:
        return {}
    if solution is None:
        return {}
    size, quotient = solution
    is_possible = size.least <= quotient and (size.most is None or quotient <= size.most)
    return {size.name: quotient * size.divisor} if is_possible else {}


def require_uncounted(graph: Graph, stage: str) -> Graph:
    """The graph itself, for a stage that takes no sizes which nodes decide."""
    for name, node in counted_sizes(graph).items():
        is_loop = node.operator == LOOP
        what = "the number of its iterations" if is_loop else "the number of its results"
        instead = "carry a tensor of a fixed size instead of collecting rows, or "
        raise base.UnsupportedError(
            stage=stage,
            where=node.label,
            reason=f"the size {name} is {what}, which is known when it has run and not before",
            remedy=f"{instead if is_loop else ''}compile to an executable",
        )
    return graph


def require_numbers(graph: Graph, stage: str) -> Graph:
    """The graph itself, for a stage that takes numbers only."""
    sizes = graph.sizes
    if not sizes:
        return graph
    names = ", ".join(each.name for each in sizes)
    require_uncounted(graph, stage)
    numbers = [(each.name, each.bounds.least) for each in sizes]
    option = ",".join(f"{name}:{number}" for name, number in numbers)
    given = ", ".join(f'"{name}": {number}' for name, number in numbers)
    raise base.UnsupportedError(
        stage=stage,
        where=f"graph {graph.name}",
        reason=f"its tensors have named sizes ({names}), and what follows computes with numbers",
        remedy=base.Advice(
            f"give a number for each, your own ones: input_shapes={{{given}}}, or "
            f"bind_sizes(graph, {{{given}}})",
            f'give a number for each, your own ones: --input-shapes "{option}"',
        ),
    )
