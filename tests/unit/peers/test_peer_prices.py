"""Operators and networks priced by another runtime."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.test_graph_search import chain_of_products

import tensorwright
from tensorwright.base import MachineError
from tensorwright.graph import GraphBuilder, interpret, random_inputs, simplify
from tensorwright.peers.prices import PeerPrices
from tensorwright.rewriting.networks import TensorData, TypedOperator, network_seconds

X = TensorData((64, 64))
W = TensorData((64, 64), is_constant=True)


def test_operators_and_networks_are_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    with PeerPrices("onnxruntime", 1) as prices:
        use = TypedOperator("matmul", (), (X, W), X)
        taken = prices.seconds(use)
        assert 0 < taken < 1
        assert prices.seconds(TypedOperator("relu", (), (W,), W)) == 0, (
            "constants are computed once"
        )
        b = GraphBuilder("one")
        graph = simplify(b.finish((b.add("relu", b.input("x", (8, 8))),)))
        (kernel,) = prices.kernels_of(graph)
        monkeypatch.setattr(prices, "_measured", None)
        assert prices.seconds(use) == taken
        assert network_seconds(prices, graph) == kernel.seconds


def test_a_runtime_that_cannot_run_is_named() -> None:
    with pytest.raises(MachineError, match="peer function"):
        PeerPrices("function", 1)


def test_a_network_is_rewritten_for_another_runtime() -> None:
    """Two products of constants are one, for whichever runtime."""
    pytest.importorskip("onnxruntime")
    graph = chain_of_products(512)
    found = tensorwright.rewrite(graph, cost="onnxruntime", seconds=2)
    assert found.trial is not None
    assert min(found.trial.before_s, found.trial.after_s) > 0
    assert found.is_changed == (found.certificate is not None)
    inputs = random_inputs(graph)
    want, own = interpret(graph, inputs)["y"], interpret(found.graph, inputs)["y"]
    np.testing.assert_allclose(own, want, rtol=1e-4, atol=1e-5)
