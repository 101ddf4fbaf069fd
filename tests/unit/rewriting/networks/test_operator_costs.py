"""The costs of single operators, and their sum over a network."""

from __future__ import annotations

from tensorwright.graph import GraphBuilder
from tensorwright.rewriting.networks import (
    OperatorCosts,
    Roofline,
    TypedOperator,
    operator_seconds,
)


def test_the_costs_of_operators_are_summed_each_once() -> None:
    """Of what is used alone: the last part of a split is not."""
    b = GraphBuilder("shared")
    h = b.add("relu", b.input("x", (4, 6)))
    parts = b.apply("split", (h,), sizes=(2, 2, 2), axis=1)
    graph = b.finish((b.add("add", b.add("exp", parts[0]), b.add("tanh", parts[0])),))

    class Counts(Roofline):
        def seconds(self, use: TypedOperator) -> float:
            return 0.0 if use.operator == "?" else 1.0

    costs: OperatorCosts = Counts()
    assert operator_seconds(graph, costs) == 5  # relu, split, exp, tanh, add
