"""The data of each class of an e-graph: they are made with a node and merged with classes.

    transpose[1, 0](?x)  where ?x has the shape (3, 4)     make: the class has the shape (4, 3)
    matmul(?x, ?x)       where ?x has the shape (3, 4)     make: None, there is no such term
    ewadd(?x, ?y) = ewadd(?y, ?x) becomes one class        merge: the shape of either

Data are immutable and can be hashed: equal ones are kept once, and what an operator makes of data
is computed once.

Source:  Willsey et al., egg, POPL 2021, section 4 (e-class analyses).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from tensorwright.expr import IndexExpr
from tensorwright.rewriting import terms
from tensorwright.rewriting.assumptions import Assumptions, Misfit, Needs, Shapes
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of, value_of
from tensorwright.rewriting.operators import operator_named

Data = TypeVar("Data", bound=Hashable)
INPUT = "?"
"""The operator of an input; its parameter is the name."""

Value: TypeAlias = "terms.Param | tuple[terms.Param, ...]"
"""The value of a parameter variable: a parameter, or all remaining ones."""


def listed(value: Value) -> tuple[terms.Param, ...]:
    """The parameters that a variable stands for."""
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True, slots=True)
class Scope(Generic[Data]):
    """The values of variables: of parameter variables, and the data of inputs' classes."""

    values: Mapping[str, Value]
    data: Mapping[str, Data]


class Applies(Enum):
    """Whether a rule may be applied at some classes."""

    YES = "yes"
    NO = "no"  # a side has no meaning there
    UNKNOWN = "unknown"  # both sides have one, and no proof covers it


class Analysis(ABC, Generic[Data]):
    """The data of classes, which have a shape, and the sizes in patterns.

    An application of `?` with the name of an input as its parameter is that input.
    """

    @abstractmethod
    def make(
        self, operator: str, params: tuple[terms.Param, ...], args: tuple[Data, ...]
    ) -> Data | None:
        """The data of an application to classes with data; None where there is no such term."""

    def merge(self, kept: Data, lost: Data) -> Data:
        """The data of a class that two classes become: either, where they are equal.

        The result for three classes must not depend on the order, except for data that `may_merge`
        treats as equal.
        """
        return kept

    @abstractmethod
    def may_merge(self, left: Data, right: Data) -> bool:
        """Whether classes with these data may become one; asked before a rewrite is applied."""

    def admits(self, rule: terms.Rule, scope: Scope[Data]) -> Applies:
        """Whether a rule whose condition holds may be applied to classes with such data."""
        return Applies.YES

    @abstractmethod
    def shape_of(self, data: Data) -> Shape:
        """The shape of a class."""

    @abstractmethod
    def normal(self, size: Size) -> Size:
        """A size in normal form."""

    @abstractmethod
    def entails(self, fact: terms.Fact) -> bool:
        """Whether a fact is known to be true."""

    def fitting_shape(
        self, operator: str, params: tuple[terms.Param, ...], shapes: Shapes
    ) -> Shape | None:
        """The shape of an application; None where it is not known to be well-typed."""
        needs = Needs()
        shape = operator_named(operator).result(params, shapes, needs)
        if isinstance(shape, Misfit) or not all(map(self.entails, needs.facts)):
            return None
        for own, wanted in needs.choices:
            if not (self.entails(terms.Equal(own, 1)) or self.entails(terms.Equal(own, wanted))):
                return None
        return tuple(map(self.normal, shape))

    def size(self, size: Size, scope: Scope[Data] | None) -> Size | None:
        """A size in normal form, extents of variables replaced; None where one does not exist."""
        if isinstance(size, int):
            return size
        if scope is None:
            return self.normal(size)
        extents: dict[Extent, Size] = {}
        for extent in atoms_of(size):
            value: Value | None = scope.values.get(extent.name)
            if not extent.name.startswith("_"):
                shape = self.shape_of(scope.data[extent.name]) if extent.name in scope.data else ()
                axis = scope.values.get(extent.variable) if extent.variable else extent.axis
                value = shape[axis] if isinstance(axis, int) and axis < len(shape) else None
            if not isinstance(value, int | IndexExpr):
                return None
            extents[extent] = value
        try:
            return self.normal(value_of(size, extents))
        except ZeroDivisionError:
            return None

    def holds(self, fact: terms.ConditionAtom, scope: Scope[Data]) -> bool:
        """Whether an atom of a condition is known to be true."""
        match fact:
            case terms.Rank(name, rank):
                return len(self.shape_of(scope.data[name])) == rank
            case terms.Different(left_name, right_name):  # sizes of other forms may be equal
                pair = listed(scope.values[left_name]), listed(scope.values[right_name])
                is_open = any(isinstance(each, IndexExpr) for value in pair for each in value)
                return pair[0] != pair[1] and not is_open
            case terms.Equal(one, other) | terms.AtLeast(one, other) | terms.Divides(one, other):
                left, right = self.size(one, scope), self.size(other, scope)
        return left is not None and right is not None and self.entails(type(fact)(left, right))


class ShapeAnalysis(Analysis[Shape]):
    """Shapes of terms over inputs of given shapes, under assumptions about their extents.

    Shapes are in normal form; where two are known to be equal and differ in form, either is good.
    """

    def __init__(self, shapes: Mapping[str, Shape], assumptions: Assumptions) -> None:
        self._assumptions = assumptions
        self._inputs = {name: tuple(map(self.normal, shape)) for name, shape in shapes.items()}
        self._entailed: dict[terms.Fact, bool] = {}

    def make(
        self, operator: str, params: tuple[terms.Param, ...], args: tuple[Shape, ...]
    ) -> Shape | None:
        """The shape of an application; None where it may be ill-typed."""
        if operator == INPUT:
            return self._inputs.get(str(params[0]))
        return self.fitting_shape(operator, params, args)

    def may_merge(self, left: Shape, right: Shape) -> bool:
        """Whether two shapes are known to be equal."""
        return left == right or (
            len(left) == len(right)
            and all(self.entails(terms.Equal(a, b)) for a, b in zip(left, right, strict=True))
        )

    def shape_of(self, data: Shape) -> Shape:
        """The shape that the data are."""
        return data

    def normal(self, size: Size) -> Size:
        """The size under the assumptions."""
        return self._assumptions.normal(size)

    def entails(self, fact: terms.Fact) -> bool:
        """Whether a fact follows from the assumptions."""
        answer = self._entailed.get(fact)
        if answer is None:
            answer = self._entailed[fact] = self._assumptions.entails(fact)
        return answer
