"""Networks with named sizes: what rules lead to is equal for all of their values."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from tensorwright.base import UsageError
from tensorwright.expr import Index, counted_size, named_size
from tensorwright.graph import Graph, GraphBuilder, simplify
from tensorwright.rewriting import networks, parse_rule
from tensorwright.rewriting.networks.network_analysis import (
    NetworkAnalysis,
    OpaqueOperators,
    TensorData,
    has_rules,
)
from tensorwright.rewriting.networks.saturate import choice_of
from tensorwright.rewriting.terms import AtLeast, Divides, Equal, Fact
from tensorwright_lab.judging.searched_graphs import SEARCHES, cases_of, check_searched
from tensorwright_lab.zoo.plausible.opening import near

n = named_size("n", least=2, greatest=64)
m = named_size("m", least=8, divisor=8)
k = named_size("k")
SEEDS = count()
ANALYSIS = NetworkAnalysis({}, OpaqueOperators())


@pytest.mark.parametrize(
    ("fact", "is_true"),
    [
        (Equal(2 * n, n + n), True),
        (Equal(n, m), False),  # for some values it is
        (AtLeast(n, 2), True),
        (AtLeast(n, 3), False),
        (AtLeast(64, n), True),
        (AtLeast(64, m), False),
        (Divides(8, m), True),
        (Divides(8, m * n + 16), True),
        (Divides(16, m), False),
        (Divides(n, m), False),
        (Divides(k, 3 * k), True),
        (Equal((m // 8) * 8, m), True),
    ],
)
def test_a_fact_is_one_for_all_sizes(fact: Fact, is_true: bool) -> None:
    assert ANALYSIS.entails(fact) is is_true


def test_rules_speak_of_sizes_that_are_never_zero() -> None:
    assert has_rules(TensorData((n, m - 1)))
    assert not has_rules(TensorData((k - 1, 3)))
    assert not has_rules(TensorData((counted_size("rows", 8), 3)))


@pytest.mark.parametrize(
    ("operator", "params", "shapes", "result"),
    [
        ("matmul", (), ((n, m), (m, 3)), (n, 3)),
        ("matmul", (), ((n, m), (k, 3)), None),
        ("reshape", (n * m, 3), ((n, m, 3),), (n * m, 3)),
        ("reshape", (n, m), ((m, k),), None),
        ("broadcast", (n, m), ((1, m),), (n, m)),
        ("broadcast", (n, m), ((n, k),), None),  # k may be 1, and may be another
        ("concat", (1,), ((n, m), (n, k)), (n, m + k)),
        ("split0", (0, 1), ((n, 3),), (1, 3)),  # n is 2 at least
        ("split0", (0, 1), ((k, 3),), None),
        ("strided", (1, 2), ((n, m),), (n, m // 2)),
        ("reverse", (0,), ((n, 3),), (n, 3)),
        ("conv2d", (1, 1, "same", "none"), ((k, 4, n, m), (8, 4, 3, 3)), (k, 8, n, m)),
        ("conv2d", (2, 2, "same", "none"), ((k, 4, m, m), (8, 4, 3, 3)), (k, 8, m // 2, m // 2)),
        ("conv2d", (2, 2, "same", "none"), ((k, 4, n, m), (8, 4, 3, 3)), None),  # pads by n
        ("ones", (n, 3), (), (n, 3)),
    ],
)
def test_terms_fit_for_all_sizes_or_are_none(
    operator: str,
    params: tuple[Index | str, ...],
    shapes: tuple[tuple[Index, ...], ...],
    result: tuple[Index, ...] | None,
) -> None:
    made = ANALYSIS.make(operator, params, tuple(map(TensorData, shapes)))
    assert (made and made.shape) == result


def test_what_has_open_extents_is_no_constant() -> None:
    row = TensorData((1, 4), is_constant=True)
    assert ANALYSIS.make("broadcast", (3, 4), (row,)) == TensorData((3, 4), is_constant=True)
    assert ANALYSIS.make("broadcast", (n, 4), (row,)) == TensorData((n, 4))


def sizes_of_trials(graph: Graph) -> list[dict[str, int]]:
    """The ends of bounds, or a number near the lower one, and one between."""
    chance = random.Random(0)
    choices = {s.name: near(s, (s.least + 8) * s.divisor, chance) for s in graph.sizes}
    return [{name: each[trial] for name, each in choices.items()} for trial in range(3)]


def rolled_rows() -> Graph:
    """Parts of rows that are put together, products that share an operand, sums over an axis."""
    b = GraphBuilder("rolled")
    x = b.input("x", (n, m, 8))
    parts = [
        b.add("slice", x, axes=(1,), starts=(0,), ends=(m - 1,)),
        b.add("slice", x, axes=(1,), starts=(m - 1,), ends=(m,)),
    ]
    rolled = b.add("relu", b.add("concat", *reversed(parts), axis=1))
    wide = [b.add("matmul", rolled, b.constant(weights(8, 8))) for _ in range(2)]
    total = b.add("add", *wide)
    mean = b.add("reduce_mean", total, axes=(1,), keepdims=True)
    flat = b.add("reshape", b.add("sub", total, mean), shape=(n * m, 8))
    return b.finish([b.add("neg", b.add("neg", flat)), b.add("transpose", mean, perm=(2, 0, 1))])


def many_dimensions() -> Graph:
    """More dimensions than rules are proved for, most of them open."""
    b = GraphBuilder("many")
    x, y = (b.input(name, (n, 2, m, k, 3, 4)) for name in "xy")
    joined = b.add("concat", b.add("exp", x), b.add("exp", y), axis=4)
    return b.finish([b.add("relu", b.add("transpose", joined, perm=(0, 1, 2, 3, 5, 4)))])


def weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    drawn = np.random.default_rng(next(SEEDS)).standard_normal(shape)
    return drawn.astype(np.float32)


NETWORKS: Mapping[str, Callable[[], Graph]] = {
    "rolled_rows": rolled_rows,
    "many_dimensions": many_dimensions,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_whatever_a_search_finds_is_equal_at_any_size(name: str) -> None:
    graph = simplify(NETWORKS[name]())
    cases = cases_of(graph, sizes_of_trials(graph))
    checked = [
        check_searched(graph, cases, found, outputs)
        for search in SEARCHES
        for found, outputs in search(graph, random.Random(name))
    ]
    assert any(each.certificate.steps for each in checked)
    assert all(each.graph.input_types == graph.input_types for each in checked)


def certified(graph: Graph, rule: str) -> tuple[Graph, networks.Certificate]:
    """What one rule makes of the output of a graph, with the certificate."""
    rules = {"own": replace(parse_rule(rule), name="own")}
    network = networks.read_network(graph, with_proofs=True)
    found = networks.saturate_network(network, networks.network_rules(rules.values()))
    (output,) = network.outputs
    others = [name for name in network.terms.members(output) if name != output]
    choice = choice_of(network, others[:1])
    certificate = networks.certify(found, others[:1], rules)
    return networks.write_network(network, choice), certificate


def joined() -> Graph:
    """The relu of two tensors that are put together along the open axis."""
    b = GraphBuilder("joined")
    x, y = b.input("x", (n, m)), b.input("y", (n, k))
    return b.finish([b.add("relu", b.add("concat", x, y, axis=1), output="z")])


RELU = "relu(concat[1](?x, ?y)) == concat[1](relu(?x), relu(?y))"


def test_a_certificate_says_for_which_sizes_it_holds() -> None:
    result, certificate = certified(joined(), RELU)
    assert [node.operator for node in result.nodes] == ["relu", "relu", "concat"]
    bounds = {"n": "2 <= n <= 64", "m": "m % 8 == 0", "k": ""}
    assert certificate.sizes == bounds
    assert networks.parse_certificate(certificate.to_json(), "") == certificate
    assert networks.replay(
        certificate, networks.read_network(joined()), lambda _: True
    ).output_types
    text = str(networks.explain_certificate(certificate, joined()))
    assert text.startswith("for all sizes n with 2 <= n <= 64, m with m % 8 == 0, k\n")
    assert "?x = ?x : f32(n, m)" in text


def test_a_network_with_other_bounds_is_refused() -> None:
    _, certificate = certified(joined(), RELU)
    b = GraphBuilder("joined")
    x, y = b.input("x", (n, named_size("m"))), b.input("y", (n, k))
    other = b.finish([b.add("relu", b.add("concat", x, y, axis=1), output="z")])
    with pytest.raises(UsageError, match="those of the network n with 2 <= n <= 64, m, k"):
        networks.replay(certificate, networks.read_network(other), lambda _: True)


def split() -> Graph:
    b = GraphBuilder("split")
    x = b.input("x", (m, 3))
    part = b.add("slice", b.add("relu", x), axes=(0,), starts=(0,), ends=(m // 2,))
    return b.finish([b.add("neg", part, output="y")])


HALF = json.dumps({"size": str(m // 2)})
SLICE = "neg(slice[0, _a, _b](?x)) == slice[0, _a, _b](neg(?x))"


def test_parameters_may_be_sizes() -> None:
    result, certificate = certified(split(), SLICE)
    assert {m // 2} == {each for step in certificate.steps for each in step.params["_b"]}
    assert HALF in certificate.to_json()
    assert networks.parse_certificate(certificate.to_json(), "") == certificate
    assert result.types["y"].shape == (m // 2, 3)


@pytest.mark.parametrize("size", ["m + 1", "m/3", "-m", "0*m"])
def test_a_size_that_does_not_fit_for_all_values_is_refused(size: str) -> None:
    _, certificate = certified(split(), SLICE)
    text = certificate.to_json().replace(HALF, json.dumps({"size": size}))
    with pytest.raises(UsageError, match=r"cannot be applied|no term|no certificate"):
        networks.replay(
            networks.parse_certificate(text, "test"), networks.read_network(split()), lambda _: True
        )


@pytest.mark.parametrize("value", ["2*q", "m +", "x.1"])
def test_what_is_no_size_is_refused(value: str) -> None:
    _, certificate = certified(split(), SLICE)
    text = certificate.to_json().replace(HALF, json.dumps({"size": value}))
    with pytest.raises(UsageError, match="it is not a certificate"):
        networks.parse_certificate(text, "test")


@pytest.mark.parametrize(("least", "is_applied"), [(1, False), (2, True)])
def test_a_rule_is_applied_where_its_condition_holds_for_all_sizes(
    least: int, is_applied: bool
) -> None:
    size = named_size("rows", least=least)
    b = GraphBuilder("condition")
    graph = b.finish([b.add("relu", b.add("neg", b.input("x", (size, 3))))])
    rule = replace(parse_rule("relu(neg(?x)) == neg(relu(?x)) if x.0 >= 2"), name="own")
    network = networks.read_network(graph)
    networks.saturate_network(network, networks.network_rules([rule]))
    (output,) = network.outputs
    assert (len(list(network.terms.members(output))) == 2) is is_applied
