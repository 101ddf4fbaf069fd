"""Joins of tables find what is found node by node."""

from __future__ import annotations

import pytest
from tests.draws import first_seed
from tests.unit.rewriting.networks.random_networks import random_images, random_matrices

from tensorwright.graph import Graph, simplify
from tensorwright.rewriting.egraph import Runner
from tensorwright.rewriting.egraph.matching import Match, Matcher
from tensorwright.rewriting.egraph.patterns import RootPattern
from tensorwright.rewriting.egraph.searching import Tables
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.networks import (
    Network,
    SaturationLimits,
    TensorData,
    network_rules,
    read_network,
    saturate_network,
)

RULES = network_rules(each.rule for each in load_library())
PATTERNS = tuple(
    dict.fromkeys(
        pattern
        for rewrite in (*RULES.plain, *(merge.rewrite for merge in RULES.merges))
        for trigger in rewrite.triggers
        for pattern in trigger.patterns
    )
)


def one_by_one(network: Network, matcher: Matcher[TensorData], pattern: RootPattern) -> set[Match]:
    terms = network.terms
    return {
        match
        for name in terms.with_operator(pattern.node.operator)
        if not terms.data(name).is_constant
        for match in matcher.at(pattern, name)
    }


def is_open(data: TensorData) -> bool:
    return not data.is_constant


@pytest.mark.parametrize("draw", [random_matrices, random_images], ids=["matrices", "images"])
@pytest.mark.drawn
def test_joins_find_what_is_found_node_by_node(draw: type[Graph]) -> None:
    counts = 0  # a single network may have none
    for seed in range(6):
        network = read_network(simplify(draw(first_seed() + seed)))  # type: ignore[call-arg, arg-type]
        saturate_network(network, RULES, SaturationLimits(merges=1, rounds=2, nodes=800))
        matcher = Matcher(network.terms)
        tables = Tables(network.terms, matcher, is_open)
        for pattern in PATTERNS:
            found = [match for _, match in tables.find(pattern).since(0)]
            assert len(found) == len(set(found))
            assert set(found) == one_by_one(network, matcher, pattern)
            counts += len(found)
    assert counts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.drawn
def test_what_came_since_is_found(seed: int) -> None:
    """All that a round adds, and not much more."""
    network = read_network(simplify(random_matrices(first_seed() + seed)))
    saturate_network(network, RULES, SaturationLimits(merges=0, rounds=1))
    matcher = Matcher(network.terms)
    before = {pattern: one_by_one(network, matcher, pattern) for pattern in PATTERNS}
    clock = network.terms.clock + 1
    network.terms.clock = clock
    runner: Runner[TensorData] = saturate_network(
        network, RULES, SaturationLimits(merges=1, rounds=1)
    ).runner
    assert runner.graph is network.terms
    tables = Tables(network.terms, matcher, is_open)
    for pattern in PATTERNS:
        now = one_by_one(network, matcher, pattern)
        later = {match for _, match in tables.find(pattern).since(clock)}
        assert now - before[pattern] <= later <= now
