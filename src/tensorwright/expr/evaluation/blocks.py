"""Cutting the box of a tensor into blocks whose evaluation stays below a number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorwright.expr.evaluation.window import Span
from tensorwright.expr.index.nodes import Element, Index, Var
from tensorwright.expr.index.traversal import atoms_of, free_vars
from tensorwright.expr.tensor import Axis
from tensorwright.expr.value import Value, children, indices_of

Spans = tuple[Span, ...]
_Node = tuple[frozenset[Var], int]


def spans_of(axes: tuple[Axis, ...]) -> Spans:
    """The whole range of every axis."""
    return tuple(Span(axis.var, 0, axis.length) for axis in axes)


def volume(spans: Spans) -> int:
    """How many points a box has."""
    count = 1
    for span in spans:
        count *= span.extent
    return count


def halves(spans: Spans, cost: Callable[[Spans], int], limit: int) -> Iterator[Spans]:
    """Halve the leading axes until every block costs no more than the limit, or is one point."""
    if cost(spans) <= limit:
        yield spans
        return
    for number, span in enumerate(spans):
        if span.extent > 1:
            middle = span.start + (span.extent + 1) // 2
            for half in (Span(span.var, span.start, middle), Span(span.var, middle, span.stop)):
                yield from halves((*spans[:number], half, *spans[number + 1 :]), cost, limit)
            return
    yield spans


def working_bytes(value: Value) -> Callable[[Spans], int]:
    """How much evaluating a value on a box holds in memory, as a function of the box.

    Generous: counted as if the array of every node lived until the end.
    """
    nodes: dict[int, _Node] = {}
    _collect(value, nodes)
    summed: dict[frozenset[Var], int] = {}
    for variables, size_bytes in nodes.values():
        summed[variables] = summed.get(variables, 0) + size_bytes

    def cost(spans: Spans) -> int:
        extents = {span.var: span.extent for span in spans}
        total = 0
        for variables, size_bytes in summed.items():
            points = size_bytes
            for var in variables:
                points *= extents.get(var, 1)
            total += points
        return total

    return cost


def _collect(value: Value, nodes: dict[int, _Node]) -> frozenset[Var]:
    if id(value) not in nodes:
        parts = [_collect(child, nodes) for child in children(value)]
        indices = indices_of(value)
        variables = frozenset[Var]().union(*parts, free_vars(*indices))
        nodes[id(value)] = variables, 16 + 16 * sum(not _is_affine(index) for index in indices)
    return nodes[id(value)][0]


def _is_affine(index: Index) -> bool:
    return not isinstance(index, Element) and all(isinstance(a, Var) for a in atoms_of(index))
