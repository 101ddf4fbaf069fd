"""Rules for all strides, paddings, axes, permutations: used with any, at any rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensorwright.base import UsageError
from tensorwright.graph import Graph, GraphBuilder, simplify
from tensorwright.ops import Array
from tensorwright.rewriting import Rule, networks
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.local_search import cheap_selections
from tensorwright.rewriting.prove import Proved, has_parameter_variables, prove
from tensorwright_lab.judging.searched_graphs import in_double

SHIPPED = [each.rule for each in load_library()]
GENERAL = [rule for rule in SHIPPED if has_parameter_variables(rule)]


def test_most_of_what_has_parameters_speaks_of_all() -> None:
    assert len(GENERAL) >= 80


def weights(*shape: int) -> Array:
    drawn = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (drawn / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def branches(pads: tuple[int, ...], stride: int, dilation: int) -> Graph:
    """Two convolutions of one image, of windows that TASO has no word for."""
    b = GraphBuilder("branches")
    x = b.input("x", (1, 4, 10, 10))
    how = {"pads": pads, "strides": (stride, stride), "dilations": (dilation, dilation)}
    one, other = (b.add("conv", x, b.constant(weights(n, 4, 3, 3)), **how) for n in (3, 5))
    return b.finish((b.add("sigmoid", one), b.add("tanh", other)))


@pytest.mark.parametrize(
    ("pads", "stride", "dilation", "word"),
    [
        ((1, 1, 1, 1), 2, 1, "p1_1_1_1"),
        ((0, 2, 1, 0), 1, 1, "p0_2_1_0"),
        ((2, 2, 2, 2), 1, 2, "p2_2_2_2_d2_2"),
        ((0, 0, 0, 0), 2, 2, "p0_0_0_0_d2_2"),
    ],
)
def test_any_window_is_merged(pads: tuple[int, ...], stride: int, dilation: int, word: str) -> None:
    graph = simplify(branches(pads, stride, dilation))
    network = networks.read_network(graph, with_proofs=True)
    heads = {network.terms.parts(network.terms.head_of(n)) for n in network.terms.nodes()}
    assert ("conv2d", (stride, stride, word, "none")) in heads
    found = networks.saturate_network(network, networks.network_rules(GENERAL))
    extraction = networks.NetworkExtraction(network, networks.Roofline(start_s=1.0))
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    back = simplify(networks.write_network(network, choice))
    assert [node.operator for node in back.nodes].count("conv") == 1
    for one, other in zip(in_double(back), in_double(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)

    known = {rule.name: rule for rule in GENERAL}
    certificate = networks.certify(found, networks.chosen_outputs(network, choice), known)
    assert list(certificate.rules) == ["merge-convs"]
    values = {"_h": (stride,), "_v": (stride,), "_pad": (word,), "_act": ("none",)}
    assert all(step.params == values for step in certificate.steps)
    again = networks.parse_certificate(certificate.to_json(), "test")
    replayed = networks.replay(
        again, networks.read_network(graph), lambda rule: rule == known["merge-convs"]
    )
    assert str(simplify(replayed)) == str(back)


def test_values_that_a_variable_cannot_have_are_refused() -> None:
    """A proof for all values of a parameter does not speak of several, or of words left open."""
    graph = simplify(branches((1, 1, 1, 1), 2, 1))
    network = networks.read_network(graph, with_proofs=True)
    found = networks.saturate_network(network, networks.network_rules(GENERAL))
    extraction = networks.NetworkExtraction(network, networks.Roofline(start_s=1.0))
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    known = {rule.name: rule for rule in GENERAL}
    certificate = networks.certify(found, networks.chosen_outputs(network, choice), known)
    for name, value in (("_h", (2, 2)), ("_pad", ("_pad_",)), ("_v", (3,)), ("_act", ("relu",))):
        steps = (replace(s, params={**s.params, name: value}) for s in certificate.steps)
        with pytest.raises(UsageError):
            networks.replay(
                replace(certificate, steps=tuple(steps)),
                networks.read_network(graph),
                lambda rule: True,
            )


def test_pools_have_an_element_in_each_window() -> None:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 2, 6, 6))
    wide = b.add("max_pool", x, kernel=(2, 2), strides=(1, 1), pads=(1, 1, 1, 1))
    network = networks.read_network(b.finish((wide,)))
    heads = {network.terms.parts(network.terms.head_of(n)) for n in network.terms.nodes()}
    assert ("max_pool", (2, 2, 1, 1, "p1_1_1_1")) in heads


def functions_of_parts(rank: int, axis: int) -> Graph:
    """Gelus of two tensors of many dimensions that are turned, turned back, and joined."""
    b = GraphBuilder("parts")
    shape = tuple(range(2, 2 + rank))
    turn = (*range(1, rank), 0)
    back = (rank - 1, *range(rank - 1))
    x, y = b.input("x", shape), b.input("y", shape)
    turned = b.add("transpose", b.add("transpose", x, perm=turn), perm=back)
    joined = b.add("concat", b.add("gelu", turned), b.add("gelu", y), axis=axis)
    return b.finish((b.add("tanh", joined),))


@pytest.mark.parametrize(("rank", "axis"), [(3, 1), (5, 3), (6, 0), (7, 4)])
def test_rules_are_used_at_any_rank(rank: int, axis: int) -> None:
    graph = functions_of_parts(rank, axis)
    network = networks.read_network(graph, with_proofs=True)
    found = networks.saturate_network(network, networks.network_rules(GENERAL))
    extraction = networks.NetworkExtraction(network, networks.Roofline(start_s=1.0))
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    back = simplify(networks.write_network(network, choice))
    assert sorted(node.operator for node in back.nodes) == ["concat", "gelu", "tanh"]
    for one, other in zip(in_double(back), in_double(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)

    known = {rule.name: rule for rule in GENERAL}
    certificate = networks.certify(found, networks.chosen_outputs(network, choice), known)
    asked: list[Rule] = []

    def is_proved(rule: Rule) -> bool:
        asked.append(rule)
        return isinstance(prove(rule, confirm=False), Proved)

    replayed = networks.replay(certificate, networks.read_network(graph), is_proved)
    assert str(simplify(replayed)) == str(back)
    assert any(rule.condition for rule in asked) == (rank > 4)  # the ranks of what was merged


def test_an_application_at_many_dimensions_needs_its_proof() -> None:
    graph = functions_of_parts(5, 3)
    network = networks.read_network(graph, with_proofs=True)
    found = networks.saturate_network(network, networks.network_rules(GENERAL))
    extraction = networks.NetworkExtraction(network, networks.Roofline(start_s=1.0))
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    known = {rule.name: rule for rule in GENERAL}
    certificate = networks.certify(found, networks.chosen_outputs(network, choice), known)

    def without_ranks(rule: Rule) -> bool:
        return not rule.condition

    with pytest.raises(UsageError, match="not proved for as many dimensions"):
        networks.replay(certificate, networks.read_network(graph), without_ranks)
