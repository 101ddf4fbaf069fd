"""Certificates: those of searches hold, altered ones do not."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from tests.unit.rewriting.networks.random_networks import random_matrices

from tensorwright.base import UsageError
from tensorwright.drivers.graph_record import proved_beside
from tensorwright.drivers.rewrite import check_certificate
from tensorwright.graph import Graph, GraphBuilder, simplify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.rewriting import Rule, parse_rule
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.local_search import cheap_selections
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
from tensorwright.rewriting.networks.certificate import CertifiedStep, CertifiedTerm
from tensorwright.rewriting.terms import Apply

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


def forged(rule: str, shape: tuple[int, ...]) -> tuple[Graph, Certificate]:
    """The network y = OPERATOR(x), and a certificate that says y = x by one step.

    rule   its left side is OPERATOR(x), and its right side x
    """
    term = parse_rule(rule).left[0]
    assert isinstance(term, Apply)
    b = GraphBuilder("forged")
    given = {"perm": (1, 0)} if term.operator == "transpose" else {}
    graph = simplify(b.finish((b.add(term.operator, b.input("x", shape), output="y", **given),)))
    numbers = tuple(each for each in term.params if isinstance(each, int))
    terms = (CertifiedTerm("?", ("x",), ()), CertifiedTerm(term.operator, numbers, (0,)))
    step = CertifiedStep("forged", {"x": 0}, {})
    certificate = Certificate(terms, (step,), {"forged": f"forged: {rule}"}, (0,))
    return graph, certificate


@pytest.mark.parametrize("rank", [1, 2, 4, 5, 6, 8])
def test_a_false_rule_is_refused_at_any_number_of_dimensions(rank: int) -> None:
    """A rule that is applied at many dimensions follows from one at few, which has to be proved."""
    graph, certificate = forged("relu(?x) == ?x", (2,) * rank)
    with pytest.raises(UsageError, match="it is not proved"):
        replay(certificate, read_network(graph), proved_beside(PROVED.values()))


def test_a_true_rule_is_applied_at_many_dimensions() -> None:
    b = GraphBuilder("twice")
    x = b.input("x", (2,) * 6)
    graph = simplify(b.finish((b.add("relu", b.add("sigmoid", x), output="y"),)))
    rule = "idle: relu(sigmoid(?x)) == relu(relu(sigmoid(?x)))"
    names = (("?", ("x",), ()), ("sigmoid", (), (0,)), ("relu", (), (1,)), ("relu", (), (2,)))
    terms = tuple(CertifiedTerm(*each) for each in names)
    certificate = Certificate(terms, (CertifiedStep("idle", {"x": 0}, {}),), {"idle": rule}, (3,))
    with pytest.raises(UsageError, match="the steps do not show that it is the same"):
        replay(replace(certificate, steps=()), read_network(graph), lambda rule: True)
    replayed = replay(certificate, read_network(graph), proved_beside(PROVED.values()))
    assert [node.operator for node in replayed.nodes] == ["sigmoid", "relu"]


def test_both_sides_of_a_step_have_one_type() -> None:
    rule = "transpose[1, 0](?x) == ?x"
    graph, certificate = forged(rule, (2, 3))
    with pytest.raises(UsageError, match="its sides are tensors of different types"):
        replay(certificate, read_network(graph), lambda rule: True)
    graph, certificate = forged(rule, (3, 3))
    (node,) = replay(certificate, read_network(graph), lambda rule: True).nodes
    assert node.operator == "identity"


@pytest.mark.parametrize("value", [(1, 1), (), ("_b",)], ids=["two", "none", "variable"])
def test_a_variable_has_one_value_for_which_its_rule_is_proved(
    value: tuple[int | str, ...],
) -> None:
    """Not a list, which would be the values of its neighbours, too, and no variable of rules."""
    b = GraphBuilder("parts")
    x = b.input("x", (4, 6))
    graph = simplify(b.finish((b.add("slice", x, axes=(1,), starts=(1,), ends=(3,)),)))
    terms = (CertifiedTerm("?", ("x",), ()), CertifiedTerm("slice", (1, 1, 3), (0,)))
    rule = "idle: relu(slice[_axis, _a, _b](?x)) == slice[_axis, _a, _b](relu(?x))"
    step = CertifiedStep("idle", {"x": 0}, {"_axis": (1,), "_a": (1,), "_b": (3,)})
    certificate = Certificate(terms, (step,), {"idle": rule}, (1,))
    assert len(replay(certificate, read_network(graph), lambda rule: True).nodes) == 1
    for name in step.params:
        other = replace(step, params={**step.params, name: value})
        with pytest.raises(UsageError, match=rf"{name} cannot be \[.*\]"):
            replay(replace(certificate, steps=(other,)), read_network(graph), lambda rule: True)
