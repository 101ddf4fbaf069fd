"""Whatever saturation or backtracking finds computes the same, and its certificate replays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest
from tests.unit.rewriting.networks.random_networks import (
    in_double,
    random_images,
    random_matrices,
    random_volumes,
)

from tensorwright.graph import Graph, are_alike, simplify
from tensorwright.rewriting import Rule, parse_rule, rule_text
from tensorwright.rewriting.backtracking import BacktrackingLimits, backtrack_network
from tensorwright.rewriting.egraph import Id
from tensorwright.rewriting.extraction import cheap_selections
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.networks import (
    NetworkExtraction,
    NetworkSaturation,
    Roofline,
    SaturationLimits,
    certify,
    chosen_outputs,
    network_rules,
    parse_certificate,
    read_network,
    replay,
    saturate_network,
    unsaturated,
    write_network,
)
from tensorwright.rewriting.prove import Proved, prove

SHIPPED = [each.rule for each in load_library()]
LISTED = {rule.name: rule for rule in SHIPPED}
TEXTS = {rule_text(rule) for rule in SHIPPED}
RULES = network_rules(LISTED.values())
COSTS = Roofline(1e9, 1e9)
_PROVED: dict[str, bool] = {}

Searched = tuple[NetworkSaturation, Mapping[Id, Id]]


def is_proved(rule: Rule) -> bool:
    """Whether a rule ships, or an instance of a schema is proved."""
    text = rule_text(rule)
    if text not in _PROVED:
        _PROVED[text] = text in TEXTS or isinstance(prove(parse_rule(text), confirm=False), Proved)
    return _PROVED[text]


def by_saturation(graph: Graph, draw: random.Random) -> Iterator[Searched]:
    limits = SaturationLimits(draw.randrange(3), draw.randrange(1, 4), draw.choice((300, 900)))
    found = saturate_network(read_network(graph, with_proofs=True), RULES, limits)
    extraction = NetworkExtraction(found.network, COSTS)
    for selection in cheap_selections(extraction.problem, 2):
        yield found, extraction.choice(selection)


def by_backtracking(graph: Graph, draw: random.Random) -> Iterator[Searched]:
    found = unsaturated(read_network(graph, with_proofs=True))
    alpha, graphs = draw.choice((1.0, 1.05, 1.3)), draw.randrange(5, 300)
    limits = BacktrackingLimits(alpha, graphs, seconds=60, keep=2, open=draw.randrange(2, 40))
    for choice in backtrack_network(found, RULES, COSTS, limits).choices:
        yield found, choice


def by_both(graph: Graph, draw: random.Random) -> Iterator[Searched]:
    for found, choice in by_saturation(graph, draw):
        outputs = chosen_outputs(found.network, choice)
        limits = BacktrackingLimits(graphs=draw.randrange(5, 100), seconds=60, keep=2)
        for each in backtrack_network(found, RULES, COSTS, limits, outputs).choices:
            yield found, each


@pytest.mark.parametrize("search", [by_saturation, by_backtracking, by_both])
@pytest.mark.parametrize("first", range(0, 100, 10))
def test_results_compute_the_same_and_replay(
    search: Callable[[Graph, random.Random], Iterator[Searched]], first: int
) -> None:
    for seed in range(first, first + 10):
        drawn = (random_images, random_matrices, random_volumes, random_matrices)[seed % 4]
        graph = simplify(drawn(1000 + seed))
        want = in_double(graph)
        for found, choice in search(graph, random.Random(seed)):
            result = write_network(found.network, choice)
            assert result.outputs == graph.outputs
            for one, other in zip(in_double(result), want, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())
            certificate = certify(found, chosen_outputs(found.network, choice), LISTED)
            read = parse_certificate(certificate.to_json(), "test")
            assert read == certificate
            replayed = replay(read, read_network(graph), is_proved)
            assert are_alike(simplify(replayed), simplify(result))
