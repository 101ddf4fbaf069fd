"""The costs of single operators, and their sum over a network."""

from __future__ import annotations

import numpy as np

from tensorwright.base import DType
from tensorwright.graph import GraphBuilder
from tensorwright.rewriting import networks


def test_the_costs_of_operators_are_summed_each_once() -> None:
    """Of what is used alone: the last part of a split is not."""
    b = GraphBuilder("shared")
    h = b.add("relu", b.input("x", (4, 6)))
    parts = b.apply("split", (h,), sizes=(2, 2, 2), axis=1)
    graph = b.finish((b.add("add", b.add("exp", parts[0]), b.add("tanh", parts[0])),))

    class Counts(networks.Roofline):
        def seconds(self, use: networks.TypedOperator) -> float:
            return 0.0 if use.operator == "?" else 1.0

    costs: networks.OperatorCosts = Counts()
    assert networks.operator_seconds(graph, costs) == 5  # relu, split, exp, tanh, add


def test_rows_at_positions_cost_their_bytes() -> None:
    """And not the product of a matrix of zeros and ones."""
    b = GraphBuilder("look-up")
    table = b.constant(np.ones((1000, 64), np.float32))
    graph = b.finish((b.add("gather", table, b.input("ids", (4, 8), DType.I64)),))
    costs = networks.Roofline(operations_per_s=1e9, bytes_per_s=1e9, start_s=0.0)
    assert networks.operator_seconds(graph, costs) == 2 * 32 * 64 * 4 / 1e9
