"""Certificates: those of searches hold, altered ones do not."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from tests.unit.rewriting.networks.random_networks import random_matrices

from tensorwright.base import UsageError
from tensorwright.drivers.rewrite import check_certificate
from tensorwright.graph import Graph, GraphBuilder, simplify
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.graph.onnx_import import load_onnx
from tensorwright.rewriting import Rule, parse_rule
from tensorwright.rewriting.extraction import cheap_selections
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.networks import (
    Certificate,
    NetworkExtraction,
    Roofline,
    SaturationLimits,
    certify,
    chosen_outputs,
    network_rules,
    parse_certificate,
    read_network,
    replay,
    saturate_network,
    without_spare_steps,
    write_network,
)

PROVED = {each.rule.name: each.rule for each in load_library()}
RULES = network_rules(PROVED.values())


def is_proved(rule: Rule) -> bool:
    return PROVED.get(rule.name) == rule


def certified(graph: Graph, seed: int = 0) -> list[tuple[Graph, Certificate]]:
    """A few networks that are equal to one, with their certificates."""
    draw = random.Random(seed)
    network = read_network(graph, with_proofs=True)
    limits = SaturationLimits(draw.randrange(3), draw.randrange(1, 4), draw.choice((300, 900)))
    found = saturate_network(network, RULES, limits)
    extraction = NetworkExtraction(network, Roofline(1e9, 1e9))
    results = []
    for selection in cheap_selections(extraction.problem, 3):
        choice = extraction.choice(selection)
        certificate = certify(found, chosen_outputs(network, choice), PROVED)
        results.append((simplify(write_network(network, choice)), certificate))
    return results


def example() -> tuple[Graph, Certificate]:
    """A network of several steps: the certificate of its cheapest rewriting."""
    graph = simplify(random_matrices(3, 14))
    longest = max(certified(graph, 5), key=lambda each: len(each[1].steps))[1]
    found = without_spare_steps(longest, graph)
    assert 3 < len(found.steps) <= len(longest.steps)
    return graph, found


def test_the_file_of_the_result_is_compared() -> None:
    graph = simplify(random_matrices(1))
    result, certificate = certified(graph, 1)[0]
    check_certificate(certificate, graph, load_onnx(to_onnx(result)), is_proved)
    b = GraphBuilder(graph.name)
    other = b.input("x", (4, 6))
    with pytest.raises(UsageError, match="not the graph of the certificate"):
        check_certificate(certificate, graph, b.finish((b.add("relu", other),)), is_proved)


def test_every_altered_step_is_refused() -> None:
    """Without a step, or with another term in it, some output is not shown to be equal."""
    graph, certificate = example()
    for place, step in enumerate(certificate.steps):
        without = (*certificate.steps[:place], *certificate.steps[place + 1 :])
        with pytest.raises(UsageError, match=r"certificate, "):
            replay(replace(certificate, steps=without), read_network(graph), is_proved)
        name, own = next(iter(step.tensors.items()))
        other = replace(step, tensors={**step.tensors, name: (own + 1) % len(certificate.terms)})
        altered = (*certificate.steps[:place], other, *certificate.steps[place + 1 :])
        with pytest.raises(UsageError, match=r"certificate, "):
            replay(replace(certificate, steps=altered), read_network(graph), is_proved)


def test_rules_have_to_be_proved() -> None:
    graph, certificate = example()
    with pytest.raises(UsageError, match="it is not proved"):
        replay(certificate, read_network(graph), lambda rule: False)
    name = certificate.steps[0].rule
    false = parse_rule(f"{name}: matmul(?x1, ?x2) == matmul(?x2, ?x1)")
    rules = {**certificate.rules, name: str(false)}
    with pytest.raises(UsageError):
        replay(replace(certificate, rules=rules), read_network(graph), is_proved)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (["matmul", [], [0, 99]], "do not stand before it"),
        (["matmul", [], [0, 0]], "cannot be applied"),
        (["blend", [], [0]], "no such operator"),
        (["?", ["nothing"], []], "cannot be applied"),
        (["?", [3], []], "its parameters cannot be"),
        (["call", ["softmax-9", 0], [0]], "no such operator"),
        (["call", [0, "x"], [0]], "its parameters cannot be"),
        (["relu", [1], [0]], "cannot be applied"),
        (["relu", [], [0, 1]], "cannot be applied"),
        (["ewadd", [], []], "cannot be applied"),
        (["matmul", [], [0]], "cannot be applied"),
    ],
)
def test_terms_have_to_be_well_typed(term: list[object], text: str) -> None:
    graph, certificate = example()
    data = json.loads(certificate.to_json())
    data["terms"].append(term)
    altered = parse_certificate(json.dumps(data), "test")
    with pytest.raises(UsageError, match=text):
        replay(altered, read_network(graph), is_proved)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "else"}', '{"format": 1, "terms": 3}', "\x00"]
)
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="it is not a certificate"):
        parse_certificate(text, "file test")


def test_outputs_have_to_be_those_of_the_network() -> None:
    graph, certificate = example()
    for outputs in ((), certificate.outputs[::-1], (*certificate.outputs[:-1], 9999)):
        with pytest.raises(UsageError, match="output"):
            replay(replace(certificate, outputs=outputs), read_network(graph), is_proved)
