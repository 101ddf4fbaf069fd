"""Certificates for people: names of tensors, short texts of other terms, types."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.rewriting.networks.test_certificates import example

from tensorwright.base import UsageError
from tensorwright.graph import GraphBuilder, simplify
from tensorwright.rewriting.networks import Certificate, explain_certificate
from tensorwright.rewriting.networks.certificate import CertifiedStep, CertifiedTerm

RULE = "associativity: matmul(?x1, matmul(?x2, ?x3)) == matmul(matmul(?x1, ?x2), ?x3)"


def written() -> tuple[GraphBuilder, Certificate]:
    """relu((x @ v) @ w), sums before it; and the certificate for relu(x @ (v @ w))."""
    b = GraphBuilder("products")
    x = b.add("cumsum", b.input("x", (64, 16)), axis=1, output="p")
    v = b.constant(np.ones((16, 32), np.float32), "v")
    w = b.constant(np.ones((32, 8), np.float32), "w")
    b.add("relu", b.add("matmul", b.add("matmul", x, v, output="h"), w, output="z"), output="y")
    terms = [
        CertifiedTerm("?", ("x",), ()),
        CertifiedTerm("call", ("cumsum-0", 0), (0,)),
        CertifiedTerm("?", ("v",), ()),
        CertifiedTerm("?", ("w",), ()),
        CertifiedTerm("matmul", (), (2, 3)),
        CertifiedTerm("matmul", (), (1, 4)),
        CertifiedTerm("relu", (), (5,)),
    ]
    step = CertifiedStep("associativity", {"x1": 1, "x2": 2, "x3": 3}, {})
    return b, Certificate(tuple(terms), (step,), {"associativity": RULE}, (6,))


def test_a_step_names_the_tensors_of_the_network() -> None:
    builder, found = written()
    graph = simplify(builder.finish(("y",)))
    assert str(explain_certificate(found, graph)) == (
        "1  associativity\n"
        "   matmul(?x1, matmul(?x2, ?x3)) == matmul(matmul(?x1, ?x2), ?x3)\n"
        "   ?x1 = ?p = cumsum(?x) : f32(64, 16)\n"
        "   ?x2 = ?v : f32(16, 32), constant\n"
        "   ?x3 = ?w : f32(32, 8), constant\n"
        "so ?y = relu(matmul(?p, matmul(?v, ?w))) : f32(64, 8)"
    )


def test_every_step_has_its_rule_and_all_variables() -> None:
    graph, found = example()
    explained = explain_certificate(found, graph)
    assert [each.rule for each in explained.steps] == [each.rule for each in found.steps]
    for told, step in zip(explained.steps, found.steps, strict=True):
        assert f"{step.rule}: {told.text}" == found.rules[step.rule]
        assert {each.variable for each in told.bindings} == {*step.tensors, *step.params}
        assert max(map(len, str(told).splitlines()[2:])) < 150
    assert [each.variable for each in explained.outputs] == list(graph.outputs)


def test_the_terms_have_to_be_those_of_the_network() -> None:
    found = written()[1]
    b = GraphBuilder("other")
    graph = b.finish((b.add("relu", b.input("z", (4, 4)), output="y"),))
    with pytest.raises(UsageError, match="cannot be applied"):
        explain_certificate(found, graph)
