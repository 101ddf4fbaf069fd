"""The class data of an e-graph of well-typed terms: the shapes, under assumptions about extents.

    assumed y.0 = x.1;  ?x of shape (x.0, x.1), ?y of shape (x.1, y.1)
    matmul(?x, ?y)                       has the shape (x.0, y.1)
    matmul(?y, ?x)                       does not enter: y.1 need not be x.0

Shapes are in normal form; where two are known to be equal and differ in form, either is good.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.assumptions import Assumptions
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of, value_of
from tensorwright.rewriting.egraph.analysis import Applies, Scope, Value, axis_in
from tensorwright.rewriting.egraph.egraph import INPUT
from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.shapes import Misfit, Needs
from tensorwright.rewriting.terms import (
    AtLeast,
    ConditionAtom,
    Different,
    Divides,
    Equal,
    Fact,
    Param,
    Rank,
    Rule,
)


class ShapeAnalysis:
    """Shapes of terms over inputs of given shapes, under assumptions about their extents."""

    def __init__(self, shapes: Mapping[str, Shape], known: Assumptions) -> None:
        self._inputs = {name: self._normal(shape, known) for name, shape in shapes.items()}
        self._known = known
        self._entailed: dict[Fact, bool] = {}

    @staticmethod
    def _normal(shape: Shape, known: Assumptions) -> Shape:
        return tuple(map(known.normal, shape))

    def make(
        self, operator: str, params: tuple[Param, ...], args: tuple[Shape, ...]
    ) -> Shape | None:
        """The shape of an application; None where it may be ill-typed."""
        if operator == INPUT:
            return self._inputs.get(str(params[0]))
        needs = Needs()
        shape = operator_named(operator).result(params, args, needs)
        if isinstance(shape, Misfit):
            return None
        if not all(map(self._entails, needs.facts)):
            return None
        for own, wanted in needs.choices:
            if not (self._entails(Equal(own, 1)) or self._entails(Equal(own, wanted))):
                return None
        return self._normal(shape, self._known)

    def merge(self, kept: Shape, lost: Shape) -> Shape:
        """Either: they are equal."""
        return kept

    def may_merge(self, left: Shape, right: Shape) -> bool:
        """Whether two shapes are known to be equal."""
        return left == right or (
            len(left) == len(right)
            and all(self._entails(Equal(a, b)) for a, b in zip(left, right, strict=True))
        )

    def size(self, size: Size, scope: Scope[Shape] | None) -> Size | None:
        """A size in normal form, extents of variables replaced; None where one does not exist."""
        if isinstance(size, int):
            return size
        if scope is None:
            return self._known.normal(size)
        extents: dict[Extent, Size] = {}
        for extent in atoms_of(size):
            value: Value | None = scope.values.get(extent.name)
            if not extent.name.startswith("_"):
                shape, axis = scope.data.get(extent.name, ()), axis_in(extent, scope)
                value = shape[axis] if axis is not None and axis < len(shape) else None
            if not isinstance(value, int | IndexExpr):
                return None
            extents[extent] = value
        try:
            return self._known.normal(value_of(size, extents))
        except ZeroDivisionError:
            return None

    def holds(self, fact: ConditionAtom, scope: Scope[Shape]) -> bool:
        """Whether an atom of a condition follows from the assumptions."""
        match fact:
            case Rank(name, rank):
                return len(scope.data[name]) == rank
            case Different(left_name, right_name):
                return scope.values[left_name] != scope.values[right_name]
            case Equal(one, other) | AtLeast(one, other) | Divides(one, other):
                left, right = self.size(one, scope), self.size(other, scope)
        return left is not None and right is not None and self._entails(type(fact)(left, right))

    def admits(self, rule: Rule, scope: Scope[Shape]) -> Applies:
        """Axioms are for all tensors."""
        return Applies.YES

    def _entails(self, fact: Fact) -> bool:
        answer = self._entailed.get(fact)
        if answer is None:
            answer = self._entailed[fact] = self._known.entails(fact)
        return answer
