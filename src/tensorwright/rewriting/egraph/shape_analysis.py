"""The class data of an e-graph of well-typed terms: the shapes, under assumptions about extents.

    assumed y.0 = x.1;  ?x of shape (x.0, x.1), ?y of shape (x.1, y.1)
    matmul(?x, ?y)                       has the shape (x.0, y.1)
    matmul(?y, ?x)                       is not added: y.1 need not be x.0

Shapes are in normal form; where two are known to be equal and differ in form, either is good.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.rewriting.assumptions import Assumptions
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.egraph.analysis import Analysis
from tensorwright.rewriting.egraph.egraph import INPUT
from tensorwright.rewriting.terms import Equal, Fact, Param


class ShapeAnalysis(Analysis[Shape]):
    """Shapes of terms over inputs of given shapes, under assumptions about their extents."""

    def __init__(self, shapes: Mapping[str, Shape], assumptions: Assumptions) -> None:
        self._assumptions = assumptions
        self._inputs = {name: tuple(map(self.normal, shape)) for name, shape in shapes.items()}
        self._entailed: dict[Fact, bool] = {}

    def make(
        self, operator: str, params: tuple[Param, ...], args: tuple[Shape, ...]
    ) -> Shape | None:
        """The shape of an application; None where it may be ill-typed."""
        if operator == INPUT:
            return self._inputs.get(str(params[0]))
        return self.fitting_shape(operator, params, args)

    def may_merge(self, left: Shape, right: Shape) -> bool:
        """Whether two shapes are known to be equal."""
        return left == right or (
            len(left) == len(right)
            and all(self.entails(Equal(a, b)) for a, b in zip(left, right, strict=True))
        )

    def shape_of(self, data: Shape) -> Shape:
        """The shape that the data are."""
        return data

    def normal(self, size: Size) -> Size:
        """The size under the assumptions."""
        return self._assumptions.normal(size)

    def entails(self, fact: Fact) -> bool:
        """Whether a fact follows from the assumptions."""
        answer = self._entailed.get(fact)
        if answer is None:
            answer = self._entailed[fact] = self._assumptions.entails(fact)
        return answer
