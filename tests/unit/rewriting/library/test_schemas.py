"""Rules for all strides, paddings, axes, permutations: true for a spread of them, used with any."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.rewriting.networks.random_networks import in_double

from tensorwright.base import UsageError
from tensorwright.graph import Graph, GraphBuilder, simplify
from tensorwright.ops import Array
from tensorwright.rewriting import Rule
from tensorwright.rewriting.egraph import variables_of
from tensorwright.rewriting.extraction import cheapest_dag
from tensorwright.rewriting.library import load_schemas
from tensorwright.rewriting.networks import (
    NetworkExtraction,
    Roofline,
    certify,
    chosen_outputs,
    network_rules,
    parse_certificate,
    read_network,
    replay,
    saturate_network,
    write_network,
)
from tensorwright.rewriting.prove import Proved, concrete_rule, prove

SCHEMAS = load_schemas()
WINDOWS = (
    {"_h": (1,), "_v": (1,), "_pad": ("same",)},
    {"_h": (2,), "_v": (1,), "_pad": ("valid",)},
    {"_h": (2,), "_v": (2,), "_pad": ("p1_1_1_1",)},
    {"_h": (3,), "_v": (2,), "_pad": ("p0_1_2_0",)},
)
OTHERS = {
    "_a": (3,),
    "_b": (3,),
    "_axis": (1,),
    "_how": ("none",),
    "_p": (2, 0, 1),
    "_q": (0, 2, 1),
}


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda rule: rule.name)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda each: each["_pad"][0])
def test_schemas_are_proved_for_a_spread_of_windows(
    schema: Rule, window: dict[str, tuple[int | str, ...]]
) -> None:
    wanted = variables_of(*schema.left, *schema.right)
    values = {name: value for name, value in {**window, **OTHERS}.items() if name in wanted}
    assert isinstance(prove(concrete_rule(schema, values), confirm=False), Proved)


def test_steps_between_taps_are_proved_for_convolutions() -> None:
    values = {"_h": (1,), "_v": (2,), "_pad": ("p2_2_2_2_d2_2",)}
    for schema in SCHEMAS:
        if "_pad" in str(schema) and "max_pool" not in str(schema):
            assert isinstance(prove(concrete_rule(schema, values), confirm=False), Proved)


def weights(*shape: int) -> Array:
    drawn = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (drawn / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def branches(pads: tuple[int, ...], stride: int, dilation: int) -> Graph:
    """Two convolutions of one image, of windows that TASO has no word for."""
    b = GraphBuilder("branches")
    x = b.input("x", (1, 4, 10, 10))
    how = {"pads": pads, "strides": (stride, stride), "dilations": (dilation, dilation)}
    one, other = (b.add("conv", x, b.constant(weights(n, 4, 3, 3)), **how) for n in (3, 5))
    return b.finish((b.add("relu", one), b.add("tanh", other)))


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
    network = read_network(graph, with_proofs=True)
    heads = {network.terms.parts(network.terms.head_of(n)) for n in network.terms.nodes()}
    assert ("conv2d", (stride, stride, word, "none")) in heads
    found = saturate_network(network, network_rules(SCHEMAS))
    extraction = NetworkExtraction(network, Roofline(start_s=1.0))
    choice = extraction.choice(cheapest_dag(extraction.problem).selection)
    back = simplify(write_network(network, choice))
    assert [node.operator for node in back.nodes].count("conv") == 1
    for one, other in zip(in_double(back), in_double(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)

    known = {schema.name: schema for schema in SCHEMAS}
    certificate = certify(found, chosen_outputs(network, choice), known)
    (name,) = certificate.rules
    assert name == f"merge-convs-of-any-window-{stride}-{word}-{stride}"
    again = parse_certificate(certificate.to_json(), "test")
    replayed = replay(again, read_network(graph), lambda rule: "_h" not in str(rule))
    assert str(simplify(replayed)) == str(back)


def test_pools_have_an_element_in_each_window() -> None:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 2, 6, 6))
    wide = b.add("max_pool", x, kernel=(2, 2), strides=(1, 1), pads=(1, 1, 1, 1))
    network = read_network(b.finish((wide,)))
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
def test_schemas_are_used_at_any_rank(rank: int, axis: int) -> None:
    graph = functions_of_parts(rank, axis)
    network = read_network(graph, with_proofs=True)
    found = saturate_network(network, network_rules(SCHEMAS))
    extraction = NetworkExtraction(network, Roofline(start_s=1.0))
    choice = extraction.choice(cheapest_dag(extraction.problem).selection)
    back = simplify(write_network(network, choice))
    assert sorted(node.operator for node in back.nodes) == ["concat", "gelu", "tanh"]
    for one, other in zip(in_double(back), in_double(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)

    known = {schema.name: schema for schema in SCHEMAS}
    certificate = certify(found, chosen_outputs(network, choice), known)
    asked: list[Rule] = []

    def is_proved(rule: Rule) -> bool:
        asked.append(rule)
        return isinstance(prove(rule, confirm=False), Proved)

    replayed = replay(certificate, read_network(graph), is_proved)
    assert str(simplify(replayed)) == str(back)
    assert any(rule.condition for rule in asked) == (rank > 4)  # the ranks of what was merged


def test_an_application_at_many_dimensions_needs_its_proof() -> None:
    graph = functions_of_parts(5, 3)
    network = read_network(graph, with_proofs=True)
    found = saturate_network(network, network_rules(SCHEMAS))
    extraction = NetworkExtraction(network, Roofline(start_s=1.0))
    choice = extraction.choice(cheapest_dag(extraction.problem).selection)
    known = {schema.name: schema for schema in SCHEMAS}
    certificate = certify(found, chosen_outputs(network, choice), known)

    def without_ranks(rule: Rule) -> bool:
        return not rule.condition

    with pytest.raises(UsageError, match="not proved for as many dimensions"):
        replay(certificate, read_network(graph), without_ranks)
