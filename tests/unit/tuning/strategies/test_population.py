"""Arrays of candidates: whatever is drawn, mutated or crossed is a program of the space."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.tuning.strategies.evolving import SPACE, TILES, decisions_at

from tensorwright.expr import Decision
from tensorwright.tuning.population import (
    Population,
    cross,
    everything,
    make_space_tables,
    mutate,
    neighbourhood,
    sample,
)
from tensorwright.tuning.population.population import candidate_at
from tensorwright.tuning.population.space_tables import neighbour_pairs
from tensorwright.tuning.space import Choice, Limit, Sketch, Space, factorisations

ATLAS = make_space_tables(SPACE)
seeds = st.integers(0, 2**32 - 1)
examples = settings(max_examples=25)


def check(population: Population) -> None:
    """Every gene is a row of its choice, and all limits hold."""
    assert (population.genes >= 0).all()
    assert (population.genes < ATLAS.counts[population.sketch]).all()
    for row in range(len(population)):
        sketch = SPACE.sketches[int(population.sketch[row])]
        assert sketch.is_valid(decisions_at(population, row))


def nodes_of(sketch: Sketch) -> dict[str, str]:
    return {name: choice.node for choice in sketch.choices for name in choice.names}


@given(seeds)
@examples
def test_samples_are_programs_of_the_space(seed: int) -> None:
    drawn = sample(ATLAS, 60, np.random.default_rng(seed))
    assert len(drawn) == 60
    check(drawn)


def test_samples_reach_every_family_alike_and_everything_valid() -> None:
    drawn = sample(ATLAS, 30_000, np.random.default_rng(0))
    shares = np.bincount(drawn.sketch, minlength=5) / len(drawn)
    assert np.allclose(shares, [1 / 9, 1 / 9, 1 / 9, 1 / 3, 1 / 3], atol=0.01)
    plain = drawn.take(drawn.sketch == 3)
    times = np.unique(plain.keys, return_counts=True)[1]
    assert len(times) == SPACE.sketches[3].size
    assert times.min() > 0.7 * times.mean()


def test_samples_are_of_the_allowed_sketches() -> None:
    drawn = sample(ATLAS, 50, np.random.default_rng(0), np.array([1, 3]))
    assert set(drawn.sketch.tolist()) == {1, 3}


def test_where_hardly_anything_is_valid_fewer_come_back() -> None:
    choices = tuple(Choice.of(f"t{n}", tuple(range(1, 200)), 1) for n in range(4))
    narrow = Sketch("s", (), choices, (Limit(prod(Decision(c.names[0]) for c in choices), 1),))
    assert len(sample(make_space_tables(Space((narrow,))), 100, np.random.default_rng(0))) < 5


@given(seeds)
@examples
def test_mutation_changes_one_decision_and_stays_in_the_space(seed: int) -> None:
    random = np.random.default_rng(seed)
    parents = sample(ATLAS, 80, random)
    children = mutate(ATLAS, parents, random)
    check(children)
    for row in range(len(parents)):
        before, after = parents.take(np.array([row])), children.take(np.array([row]))
        if before.sketch[0] == after.sketch[0]:
            assert (before.genes != after.genes).sum() <= 1
            continue
        assert ATLAS.family[before.sketch[0]] == ATLAS.family[after.sketch[0]]
        old, new = decisions_at(before, 0), decisions_at(after, 0)
        rows = {choice.names: choice for choice in SPACE.sketches[int(after.sketch[0])].choices}
        for names, choice in rows.items():
            kept = tuple(old.get(name, 0) for name in names)
            expected = kept if kept in choice.values else choice.default
            assert tuple(new[name] for name in names) == expected


def test_mutation_follows_the_weights_and_mostly_takes_neighbours() -> None:
    random = np.random.default_rng(1)
    parents = sample(ATLAS, 20_000, random, np.array([0]))
    children = mutate(ATLAS, parents, random, leap=0.0)
    moved = (children.sketch != 0).mean()
    assert 0.03 < moved < 0.07
    stayed = children.sketch == 0
    changed = (children.genes != parents.genes)[stayed].mean(axis=0)
    assert (changed[:2] > 0.2).all()
    assert 0.02 < changed[2] < 0.06
    pairs = {tuple(pair) for pair in neighbour_pairs(TILES.table).tolist()}
    rows = stayed & (children.genes[:, 0] != parents.genes[:, 0])
    steps = np.column_stack([parents.genes[rows, 0], children.genes[rows, 0]])
    assert {tuple(step) for step in steps.tolist()} <= pairs


@given(seeds)
@examples
def test_children_of_two_have_the_stages_of_one_or_the_other(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = sample(ATLAS, 60, random, np.array([0, 1, 2]))
    second = sample(ATLAS, 60, random, np.array([0, 1, 2]))
    children, took = cross(ATLAS, first, second, random, by_choice=0.0)
    check(children)
    assert (children.sketch == first.sketch).all()
    carried = Population(first.sketch, ATLAS.carried(second, first.sketch))
    for row in np.flatnonzero(took):
        nodes = nodes_of(SPACE.sketches[int(first.sketch[row])])
        child = decisions_at(children, row)
        parents = decisions_at(first, row), decisions_at(carried, row)
        for node in set(nodes.values()):
            own = [{name: one[name] for name in nodes if nodes[name] == node} for one in parents]
            assert {name: child[name] for name in own[0]} in own


def test_children_of_two_have_something_of_both() -> None:
    random = np.random.default_rng(3)
    first = sample(ATLAS, 400, random, np.array([0, 1]))
    second = sample(ATLAS, 400, random, np.array([0, 1]))
    children, took = cross(ATLAS, first, second, random)
    assert took.mean() > 0.8
    carried = ATLAS.carried(second, first.sketch)
    assert ((children.genes != first.genes).any(axis=1) == took).all()
    assert (children.genes != carried).any(axis=1)[took].all()


def test_children_that_inherit_each_choice_for_itself_keep_to_the_limits() -> None:
    """m1 of one parent and n1 of the other may be more than both together may be."""
    random = np.random.default_rng(5)
    first, second = (sample(ATLAS, 600, random, np.array([0, 1, 2])) for _ in range(2))
    children, took = cross(ATLAS, first, second, random, by_choice=1.0)
    check(children)
    assert took.mean() > 0.8


def test_parents_of_two_families_have_no_child() -> None:
    one = sample(ATLAS, 10, np.random.default_rng(0), np.array([0]))
    other = sample(ATLAS, 10, np.random.default_rng(0), np.array([3]))
    children, took = cross(ATLAS, one, other, np.random.default_rng(0))
    assert not took.any()
    assert (children.genes == one.genes).all()


def test_neighbours_are_rows_with_nothing_between() -> None:
    table = Choice(("o", "i"), factorisations(12, 2, 4), (3, 4)).table
    rows = [tuple(row) for row in table.tolist()]
    near = {rows[b] for a, b in neighbour_pairs(table).tolist() if rows[a] == (2, 2)}
    assert near == {(1, 2), (3, 2), (2, 1), (2, 3), (4, 1), (1, 4)}


@given(st.integers(2, 96), st.integers(1, 3))
@examples
def test_neighbours_are_mutual_and_connect_all_rows(extent: int, levels: int) -> None:
    table = np.array(factorisations(extent, levels, 16, waste=0.1), np.int64)
    pairs = {tuple(pair) for pair in neighbour_pairs(table).tolist()}
    assert {(b, a) for a, b in pairs} == pairs
    assert all(a != b for a, b in pairs)
    reached, edge = {0}, {0}
    while edge:
        edge = {b for a, b in pairs if a in edge} - reached
        reached |= edge
    assert len(reached) == len(table)


def test_a_neighbourhood_is_one_step_away_and_valid() -> None:
    default = ATLAS.starts().take(np.arange(1))
    found = neighbourhood(ATLAS, 0, default.genes[0])
    check(found)
    own = found.take(found.sketch == 0)
    assert ((own.genes != default.genes[0]).sum(axis=1) == 1).all()
    assert set(found.sketch[found.sketch != 0].tolist()) == {1, 2}
    assert len(found.first_of_each()) == len(found) > 10


def test_everything_is_the_space() -> None:
    whole = everything(ATLAS, 1_000_000)
    check(whole)
    assert len(whole.first_of_each()) == len(whole) == SPACE.size
    assert (everything(ATLAS, 40).sketch == np.repeat([3, 4], [30, 1])).all()


def test_keys_tell_candidates_apart() -> None:
    rows = np.array(list(itertools.product(range(12), repeat=4)), np.int64)
    both = Population(np.repeat(np.array([0, 1], np.int32), len(rows)), np.tile(rows, (2, 1)))
    assert len(np.unique(both.keys)) == len(both)


def test_a_candidate_and_its_row_are_the_same() -> None:
    drawn = sample(ATLAS, 20, np.random.default_rng(0))
    for row, candidate in enumerate(drawn.candidates(SPACE)):
        assert dict(candidate.decisions) == decisions_at(drawn, row)
        assert candidate == candidate_at(SPACE, int(drawn.sketch[row]), drawn.genes[row])


@pytest.mark.parametrize("count", [0, 1])
def test_small_populations_do_no_harm(count: int) -> None:
    random = np.random.default_rng(0)
    few = sample(ATLAS, count, random)
    assert len(mutate(ATLAS, few, random)) == count
    assert len(cross(ATLAS, few, few, random)[0]) == count
    assert len(few.first_of_each()) == count
