"""An e-graph of well-typed terms: each class has a shape, and no term enters that may not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorwright.rewrite.dims import Dim, Extent, Shape, Size, atoms_of, value_of
from tensorwright.rewrite.operators import operator_named
from tensorwright.rewrite.prove.assumptions import Assumptions
from tensorwright.rewrite.prove.egraph import EGraph, Id, Node
from tensorwright.rewrite.shapes import IllTyped, Needs
from tensorwright.rewrite.terms import (
    Apply,
    AtLeast,
    Divides,
    Equal,
    Fact,
    Input,
    Param,
    Rank,
    Term,
)

__all__ = ["Binding", "TypedGraph"]

Values = Mapping[str, "Param | tuple[Param, ...]"]


class Binding:
    """What the variables of a pattern stand for: nodes, and parameters."""

    __slots__ = ("nodes", "params")

    def __init__(self, nodes: dict[str, Id], params: dict[str, Param | tuple[Param, ...]]) -> None:
        self.nodes = nodes
        self.params = params


class TypedGraph:
    """Terms over the inputs of a rule, under assumptions about their extents."""

    def __init__(self, shapes: Mapping[str, Shape], known: Assumptions) -> None:
        self.graph = EGraph()
        self.known = known
        self._shape: dict[Id, Shape] = {}
        self._refused: set[Node] = set()
        self._entailed: dict[Fact, bool] = {}
        for name, shape in shapes.items():
            leaf = self.graph.add("?", (name,), ())
            self._shape[leaf] = tuple(known.normal(extent) for extent in shape)

    def shape(self, name: Id) -> Shape:
        """The shape of a node, in normal form."""
        return self._shape[name]

    def entails(self, fact: Fact) -> bool:
        """Whether a fact follows from the assumptions."""
        answer = self._entailed.get(fact)
        if answer is None:
            answer = self._entailed[fact] = self.known.entails(fact)
        return answer

    def add(self, term: Term, binding: Binding | None = None) -> Id | None:
        """A term, its variables replaced as the binding says; None where it may be ill-typed."""
        if isinstance(term, Input):
            if binding is not None:
                return binding.nodes[term.name]
            return self.graph.add("?", (term.name,), ())
        children: list[Id] = []
        for arg in term.args:
            child = self.add(arg, binding)
            if child is None:
                return None
            children.append(child)
        params = self.params(term, binding)
        return None if params is None else self.apply(term.operator, params, tuple(children))

    def apply(
        self, operator: str, params: tuple[Param, ...], children: tuple[Id, ...]
    ) -> Id | None:
        """The application of an operator to nodes; None where it may be ill-typed."""
        node = Node(operator, params, children)
        if node in self._refused:
            return None
        needs = Needs()
        rule = operator_named(operator)
        try:
            rule.check_params(params)
            shape = rule.shape(params, tuple(self._shape[child] for child in children), needs)
        except IllTyped:
            self._refused.add(node)
            return None
        if not all(self.entails(fact) for fact in needs.facts):
            self._refused.add(node)
            return None
        name = self.graph.add(operator, params, children)
        if name not in self._shape:
            self._shape[name] = tuple(self.known.normal(extent) for extent in shape)
        return name

    def params(self, term: Apply, binding: Binding | None) -> tuple[Param, ...] | None:
        """The parameters of a term of a pattern; None where an extent does not exist."""
        found: list[Param] = []
        for param in term.params:
            if isinstance(param, Dim):
                size = self.size(param, binding)
                if size is None:
                    return None
                found.append(size)
            elif isinstance(param, str) and param.startswith("_") and binding is not None:
                value = binding.params[param]
                found.extend(value if isinstance(value, tuple) else (value,))
            else:
                found.append(param)
        return tuple(found)

    def size(self, size: Size, binding: Binding | None) -> Size | None:
        """A size in normal form, extents of variables replaced; None where one does not exist."""
        if isinstance(size, int):
            return size
        if binding is None:
            return self.known.normal(size)
        extents: dict[Extent, Size] = {}
        for extent in atoms_of(size):
            value = self._extent(extent, binding)
            if value is None:
                return None
            extents[extent] = value
        try:
            return self.known.normal(value_of(size, extents))
        except ZeroDivisionError:
            return None

    def _extent(self, extent: Extent, binding: Binding) -> Size | None:
        if extent.name.startswith("_"):
            value = binding.params.get(extent.name)
            return None if value is None or isinstance(value, str | tuple) else value
        node = binding.nodes.get(extent.name)
        if node is None or extent.axis >= len(self._shape[node]):
            return None
        return self._shape[node][extent.axis]

    def holds(self, fact: Rank | Fact, binding: Binding) -> bool:
        """Whether an atom of an axiom's condition holds for what was bound."""
        if isinstance(fact, Rank):
            return len(self._shape[binding.nodes[fact.name]]) == fact.rank
        match fact:
            case Divides(divisor, number):
                sides = (divisor, number)
            case Equal(left, right) | AtLeast(left, right):
                sides = (left, right)
        sizes = [self.size(side, binding) for side in sides]
        if sizes[0] is None or sizes[1] is None:
            return False
        return self.entails(type(fact)(sizes[0], sizes[1]))

    def have_equal_shapes(self, left: Id, right: Id) -> bool:
        """Whether two nodes are known to have the same shape."""
        a, b = self._shape[left], self._shape[right]
        return len(a) == len(b) and all(
            self.entails(Equal(one, other)) for one, other in zip(a, b, strict=True)
        )

    def matches(self, pattern: Apply, name: Id) -> Iterator[Binding]:
        """The ways in which a node (or one equal to it) is an instance of a pattern."""
        for nodes, params, waiting in self._match_node(pattern, name, {}, {}, ()):
            binding = Binding(nodes, params)
            if all(self.size(size, binding) == value for size, value in waiting):
                yield binding

    def _match(
        self,
        pattern: Term,
        name: Id,
        nodes: dict[str, Id],
        params: dict[str, Param | tuple[Param, ...]],
        waiting: tuple[tuple[Dim, Param], ...],
    ) -> Iterator[_Found]:
        if isinstance(pattern, Input):
            leader = self.graph.find(name)
            bound = nodes.get(pattern.name)
            if bound is None:
                yield {**nodes, pattern.name: leader}, params, waiting
            elif self.graph.find(bound) == leader:
                yield nodes, params, waiting
            return
        for member in tuple(self.graph.members(name)):
            yield from self._match_node(pattern, member, nodes, params, waiting)

    def _match_node(
        self,
        pattern: Apply,
        name: Id,
        nodes: dict[str, Id],
        params: dict[str, Param | tuple[Param, ...]],
        waiting: tuple[tuple[Dim, Param], ...],
    ) -> Iterator[_Found]:
        node = self.graph.node(name)
        if node.operator != pattern.operator:
            return
        fitted = _match_params(pattern.params, node.params, params, waiting)
        if fitted is None:
            return
        found: list[_Found] = [(nodes, *fitted)]
        for arg, child in zip(pattern.args, node.children, strict=True):
            found = [
                more
                for bound, values, left in found
                for more in self._match(arg, child, bound, values, left)
            ]
        yield from found


_Found = tuple[dict[str, Id], dict[str, "Param | tuple[Param, ...]"], tuple[tuple[Dim, Param], ...]]


def _match_params(
    pattern: tuple[Param, ...],
    actual: tuple[Param, ...],
    params: dict[str, Param | tuple[Param, ...]],
    waiting: tuple[tuple[Dim, Param], ...],
) -> tuple[dict[str, Param | tuple[Param, ...]], tuple[tuple[Dim, Param], ...]] | None:
    """Bind parameter variables; a last variable takes all that are left; sizes wait."""
    if len(pattern) > len(actual):
        return None
    bound = dict(params)
    later = list(waiting)
    for place, param in enumerate(pattern):
        value: Param | tuple[Param, ...] = actual[place]
        if place == len(pattern) - 1 and len(actual) > len(pattern):
            value = actual[place:]
        if isinstance(param, str) and param.startswith("_"):
            if bound.setdefault(param, value) != value:
                return None
        elif isinstance(value, tuple):
            return None
        elif isinstance(param, Dim):
            later.append((param, value))
        elif param != value:
            return None
    return bound, tuple(later)
