"""Random plausible networks: every family can be drawn, and is the same for the same seed."""

from __future__ import annotations

import pytest

from tensorwright.base import Target
from tensorwright.graph import verify
from tensorwright.pipeline import prepare
from tensorwright.zoo.plausible import FAMILIES, draw_network

_TARGET = Target.parse("x86-64-avx2")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_becomes_workloads(family: str) -> None:
    for seed in range(3):
        graph = draw_network(seed, [family])
        verify(graph)
        assert graph.name == f"{family}_{seed}"
        assert prepare(graph, _TARGET).workloads


def test_equal_seeds_give_equal_networks() -> None:
    for seed in range(20):
        assert str(draw_network(seed)) == str(draw_network(seed))


def test_seeds_give_families_and_sizes_of_all_kinds() -> None:
    names = {draw_network(seed).name.rsplit("_", 1)[0] for seed in range(200)}
    assert len(names) > 0.8 * len(FAMILIES)
