"""An e-graph of well-typed terms: each class has a shape, and no term enters that may not fit.

Shapes are numbered, and what an operator makes of shapes is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorwright.rewrite.assumptions import Assumptions
from tensorwright.rewrite.dims import Dim, Extent, Shape, Size, atoms_of, value_of
from tensorwright.rewrite.egraph.egraph import EGraph, Head, Id
from tensorwright.rewrite.egraph.matching import Match, Matcher, Value
from tensorwright.rewrite.egraph.patterns import Trigger, Variables, trigger_of
from tensorwright.rewrite.operators import operator_named
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

_ILL_TYPED = -1


class Binding:
    """What the variables of a pattern stand for: nodes, and parameters."""

    __slots__ = ("nodes", "params")

    def __init__(self, nodes: dict[str, Id], params: dict[str, Value]) -> None:
        self.nodes = nodes
        self.params = params


class TypedGraph:
    """Terms over the inputs of a rule, under assumptions about their extents.

    matcher  finds instances of patterns
    """

    def __init__(self, shapes: Mapping[str, Shape], known: Assumptions) -> None:
        self.graph = EGraph()
        self.known = known
        self.matcher = Matcher(self.graph)
        self._shapes: list[Shape] = []
        self._shape_numbers: dict[Shape, int] = {}
        self._shape_of: dict[Id, int] = {}
        self._results: dict[tuple[int, ...], int] = {}
        self._entailed: dict[Fact, bool] = {}
        self._triggers: dict[Apply, Trigger] = {}
        for name, shape in shapes.items():
            leaf = self.graph.add("?", (name,), ())
            self._shape_of[leaf] = self._shape_number(shape)

    def shape(self, name: Id) -> Shape:
        """The shape of a node, in normal form."""
        return self._shapes[self._shape_of[name]]

    def shape_number(self, name: Id) -> int:
        """A number that equal shapes share."""
        return self._shape_of[name]

    def _shape_number(self, shape: Shape) -> int:
        normal = tuple(self.known.normal(extent) for extent in shape)
        known = self._shape_numbers.get(normal)
        if known is None:
            known = self._shape_numbers[normal] = len(self._shapes)
            self._shapes.append(normal)
        return known

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
        return self.put(self.graph.head(operator, params), children)

    def put(self, head: Head, children: tuple[Id, ...]) -> Id | None:
        """As `apply`, by the number of the head."""
        known = self.graph.written(head, children)
        if known is not None:
            return known
        shape = self.result(head, tuple(self._shape_of[child] for child in children))
        if shape is None:
            return None
        name = self.graph.put(head, children)
        self._shape_of[name] = shape
        return name

    def result(self, head: Head, shapes: tuple[int, ...]) -> int | None:
        """The number of the shape of an application to shapes; None where it may be ill-typed."""
        key = (head, *shapes)
        known = self._results.get(key)
        if known is None:
            known = self._results[key] = self._typed(head, shapes)
        return None if known < 0 else known

    def _typed(self, head: Head, shapes: tuple[int, ...]) -> int:
        operator, params = self.graph.parts(head)
        rule = operator_named(operator)
        needs = Needs()
        try:
            rule.check_params(params)
            shape = rule.shape(params, tuple(self._shapes[each] for each in shapes), needs)
        except (IllTyped, ZeroDivisionError):
            return _ILL_TYPED
        if not all(self.entails(fact) for fact in needs.facts):
            return _ILL_TYPED
        for own, wanted in needs.choices:
            if not (self.entails(Equal(own, 1)) or self.entails(Equal(own, wanted))):
                return _ILL_TYPED
        return self._shape_number(shape)

    def params(self, term: Apply, binding: Binding | None) -> tuple[Param, ...] | None:
        """The parameters of a term of a pattern; None where an extent does not exist."""
        if binding is None:
            return tuple(p if isinstance(p, str) else self.known.normal(p) for p in term.params)
        shapes = {name: self.shape(node) for name, node in binding.nodes.items()}
        return self.params_at(term.params, binding.params, shapes)

    def params_at(
        self, params: tuple[Param, ...], values: Mapping[str, Value], shapes: Mapping[str, Shape]
    ) -> tuple[Param, ...] | None:
        """Parameters of a pattern, variables replaced; None where an extent does not exist."""
        found: list[Param] = []
        for param in params:
            if isinstance(param, Dim):
                size = self.size_at(param, values, shapes)
                if size is None:
                    return None
                found.append(size)
            elif isinstance(param, str) and param.startswith("_"):
                value = values[param]
                found.extend(value if isinstance(value, tuple) else (value,))
            else:
                found.append(param)
        return tuple(found)

    def size_at(
        self, size: Size, values: Mapping[str, Value], shapes: Mapping[str, Shape]
    ) -> Size | None:
        """A size in normal form, extents of variables replaced; None where one does not exist."""
        if isinstance(size, int):
            return size
        extents: dict[Extent, Size] = {}
        for extent in atoms_of(size):
            value: Value | None = values.get(extent.name)
            if not extent.name.startswith("_"):
                shape = shapes.get(extent.name, ())
                value = shape[extent.axis] if extent.axis < len(shape) else None
            if value is None or isinstance(value, str | tuple):
                return None
            extents[extent] = value
        try:
            return self.known.normal(value_of(size, extents))
        except ZeroDivisionError:
            return None

    def holds_at(
        self, fact: Rank | Fact, values: Mapping[str, Value], shapes: Mapping[str, Shape]
    ) -> bool:
        """Whether an atom of an axiom's condition holds for what was bound."""
        if isinstance(fact, Rank):
            return len(shapes[fact.name]) == fact.rank
        match fact:
            case Divides(divisor, number):
                sides = (divisor, number)
            case Equal(left, right) | AtLeast(left, right):
                sides = (left, right)
        sizes = [self.size_at(side, values, shapes) for side in sides]
        if sizes[0] is None or sizes[1] is None:
            return False
        return self.entails(type(fact)(sizes[0], sizes[1]))

    def have_equal_shapes(self, left: Id, right: Id) -> bool:
        """Whether two nodes are known to have the same shape."""
        return self.are_equal_shapes(self._shape_of[left], self._shape_of[right])

    def are_equal_shapes(self, left: int, right: int) -> bool:
        """The same for the numbers of two shapes."""
        a, b = self._shapes[left], self._shapes[right]
        return left == right or (
            len(a) == len(b)
            and all(self.entails(Equal(one, other)) for one, other in zip(a, b, strict=True))
        )

    def shape_at(self, number: int) -> Shape:
        """The shape of this number."""
        return self._shapes[number]

    def matches(self, pattern: Apply, name: Id) -> Iterator[Binding]:
        """The ways in which a node (or one congruent to it) is an instance of a pattern."""
        trigger = self._triggers.get(pattern)
        if trigger is None:
            trigger = self._triggers[pattern] = trigger_of(pattern)
        for match in self.matcher.at(trigger, name):
            binding = self.binding(trigger.variables, match)
            shapes = {each: self.shape(node) for each, node in binding.nodes.items()}
            if all(
                self.size_at(size, binding.params, shapes) == value for size, value in match.waiting
            ):
                yield binding

    def binding(self, variables: Variables, match: Match) -> Binding:
        """A match with the names of the variables."""
        values = (self.matcher.value(number) for number in match.values)
        return Binding(
            dict(zip(variables.tensors, match.nodes, strict=True)),
            dict(zip(variables.params, values, strict=True)),
        )
