"""The rules between two graphs, applied one after the other."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tests.unit.test_graph_search import chain_of_products

from tensorwright.compile_options import USUAL
from tensorwright.drivers.rewrite import rewrite
from tensorwright.graph import Graph, interpret, random_inputs, simplify
from tensorwright.report.graph_changes import GraphChanges, add_gains, add_proofs, graph_values
from tensorwright.rewriting.networks import Certificate


@pytest.fixture(scope="module")
def found() -> tuple[Graph, Certificate]:
    source = simplify(chain_of_products())
    rewritten = rewrite(source, measure=False, seconds=5.0)
    assert rewritten.certificate is not None
    return source, rewritten.certificate


def test_every_graph_on_the_way_computes_the_same(found: tuple[Graph, Certificate]) -> None:
    source, certificate = found
    changes = GraphChanges.of(source, certificate)
    assert len(changes.graphs) == len(changes.rules) + 1
    inputs = random_inputs(source)
    want = interpret(source, inputs)["y"]
    for graph in changes.graphs:
        np.testing.assert_allclose(interpret(graph, inputs)["y"], want, rtol=1e-4, atol=1e-5)
    assert [node.operator for node in changes.graphs[-1].nodes] == ["matmul", "relu"]


def test_changed_nodes_name_their_rule_and_rules_their_proof_and_gain(
    found: tuple[Graph, Certificate],
) -> None:
    source, certificate = found
    changes = GraphChanges.of(source, certificate)
    values = graph_values(source, changes)
    removed = [row["operator"] for row in values["before"] if "rule" in row]
    made = [row["operator"] for row in values["after"] if "rule" in row]
    assert (set(removed), set(made)) == ({"matmul"}, {"matmul"})
    assert len(removed) > len(made)
    rules, later = values["rules"], time.monotonic() + 600
    add_proofs(rules, certificate, later)
    inputs, target = random_inputs(source), USUAL.machine
    assert add_gains(rules, changes, inputs, target, 1, later) == ""
    for rule in rules:
        assert rule["proofs"][0].startswith("proved at")
        assert rule["gain_us"] == pytest.approx(rule["before_us"] - rule["time_us"], rel=1e-2)


def test_nothing_is_begun_after_the_deadline(found: tuple[Graph, Certificate]) -> None:
    source, certificate = found
    changes = GraphChanges.of(source, certificate)
    rules = graph_values(source, changes)["rules"]
    reason = add_gains(rules, changes, {}, USUAL.machine, 1, time.monotonic() - 1)
    assert "seconds" in reason
    assert not any("gain_us" in rule for rule in rules)
