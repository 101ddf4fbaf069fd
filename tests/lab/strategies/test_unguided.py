"""Grid search goes through a space in order; the genetic algorithm breeds what was fast."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.unit.tuning.strategies.evolving import SPACE, TASK, record_of

from tensorwright.base import UsageError
from tensorwright.expr import Decision
from tensorwright.records import Record, Status
from tensorwright.schedule import Split
from tensorwright.tuning.population import Population, make_space_tables, sample
from tensorwright.tuning.population.population import default_candidate
from tensorwright.tuning.space import Choice, Limit, Sketch, Space
from tensorwright_lab.strategies import GeneticOptions, GeneticSearch, GridSearch, grid
from tensorwright_lab.strategies.genetic import change, one_point

TABLES = make_space_tables(SPACE)


def expected_order(space: Space) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """Everything within the limits, by nested loops."""
    found = []
    for sketch in space.sketches:
        for rows in itertools.product(*(choice.values for choice in sketch.choices)):
            decisions = {
                name: value
                for choice, row in zip(sketch.choices, rows, strict=True)
                for name, value in zip(choice.names, row, strict=True)
            }
            if sketch.is_valid(decisions):
                found.append((sketch.name, tuple(sorted(decisions.items()))))
    return found


def small_space() -> Space:
    choices = (
        Choice.of("a", (1, 2, 4), 2),
        Choice.of("b", (1, 2, 4, 8), 1),
        Choice.of("c", (1, 3), 1),
    )
    first = Split("y", "i", tuple(Decision(name) for name in "abc"))
    other = Split("y", "i", (Decision("a"), Decision("c")))
    return Space(
        (
            Sketch("both", (first,), choices, (Limit(Decision("a") * Decision("b"), 8),)),
            Sketch("two", (other,), (choices[0], choices[2])),
        )
    )


def test_a_grid_goes_through_all_in_order_the_default_first() -> None:
    space = small_space()
    strategy = GridSearch(TASK, space, 0)
    found = [one for _ in range(40) for one in strategy.propose(1)]
    default = default_candidate(space)
    wanted = [each for each in expected_order(space) if each != (default.sketch, default.decisions)]
    assert found[0] == default
    assert [(one.sketch, one.decisions) for one in found[1:]] == wanted


@pytest.mark.parametrize("stop", [1, 5, 17])
def test_a_grid_that_was_killed_goes_on_where_it_stopped(stop: int) -> None:
    space = small_space()
    whole = GridSearch(TASK, space, 0).propose(100)
    killed = GridSearch(TASK, space, 0)
    before = killed.propose(stop)
    killed.propose(2)  # under way when it was killed: not on record
    resumed = GridSearch(TASK, space, 7)
    resumed.observe(
        [
            Record("w", "t", "h", 1, one.trace, (1.0,), Status.OK, decisions=one.decisions)
            for one in before
        ]
    )
    assert before + resumed.propose(100) == whole


def test_a_grid_of_more_schedules_than_64_bits_count() -> None:
    names = tuple(f"t{n}" for n in range(24))
    choices = tuple(Choice.of(name, (1, 2, 4, 8, 16, 32, 64), 1) for name in names)
    step = Split("y", "i", tuple(Decision(name) for name in names))
    space = Space((Sketch("huge", (step,), choices),))
    blocks = grid(make_space_tables(space))
    first, second = next(blocks), next(blocks)
    numbers = [int("".join(map(str, row)), 7) for row in second.genes.tolist()]
    assert numbers == list(range(len(first), 2 * len(first)))


def test_crossing_at_a_point_takes_the_first_choices_from_one_parent() -> None:
    root = np.array([0], np.int64)
    one, other = (sample(TABLES, 200, np.random.default_rng(seed), root) for seed in (0, 1))
    children = one_point(TABLES, one, other, np.random.default_rng(2))
    assert TABLES.valid(children).all()
    points = set()
    for child, a, b in zip(children.genes, one.genes, other.genes, strict=True):
        fits = [
            point
            for point in range(TABLES.width + 1)
            if (child[:point] == a[:point]).all() and (child[point:] == b[point:]).all()
        ]
        assert fits
        points.update(fits)
    assert len(points) > 3


def test_parents_of_two_families_have_the_first_one_as_their_child() -> None:
    one = sample(TABLES, 20, np.random.default_rng(0), np.array([0], np.int64))
    other = sample(TABLES, 20, np.random.default_rng(0), np.array([3], np.int64))
    children = one_point(TABLES, one, other, np.random.default_rng(2))
    assert children.genes.tolist() == one.genes.tolist()


def test_changes_happen_as_often_as_they_should() -> None:
    parents = sample(TABLES, 4000, np.random.default_rng(0), np.array([0], np.int64))
    children = change(TABLES, parents, 0.1, np.random.default_rng(1))
    assert TABLES.valid(children).all()
    stayed = children.sketch == parents.sketch
    assert 1 - stayed.mean() == pytest.approx(0.1, abs=0.03)
    differs = (children.genes != parents.genes)[stayed]
    assert differs.mean(axis=0)[:5] == pytest.approx([0.1] * 5, abs=0.04)
    same = change(TABLES, parents, 0.0, np.random.default_rng(1))
    assert Population(same.sketch, same.genes).keys.tolist() == parents.keys.tolist()


def test_generations_get_faster() -> None:
    strategy = GeneticSearch(TASK, SPACE, 0, GeneticOptions(population=40))
    means = []
    for _ in range(8):
        records = [record_of(one) for _ in range(5) for one in strategy.propose(8)]
        strategy.observe(records)
        means.append(float(np.mean([one.median_s for one in records])))
    assert means[-1] < 0.7 * means[0]


def test_a_genetic_search_goes_on_from_its_records_alone() -> None:
    options = GeneticOptions(population=20)
    through = GeneticSearch(TASK, SPACE, 3, options)
    records = []
    for _ in range(5):
        fresh = [record_of(one) for one in through.propose(10)]
        through.observe(fresh)
        records += fresh
    resumed = GeneticSearch(TASK, SPACE, 3, options)
    resumed.observe(records)
    assert resumed.propose(10) == through.propose(10)


def test_what_failed_has_no_children() -> None:
    strategy = GeneticSearch(TASK, SPACE, 0, GeneticOptions(population=16, mutation=0.0, elite=0))
    fresh = strategy.propose(16)
    good = [one for one in fresh if one.sketch in ("root", "band", "tile")][:3]
    assert len(good) == 3
    statuses = [Status.OK if one in good else Status.CRASHED for one in fresh]
    strategy.observe([record_of(*pair) for pair in zip(fresh, statuses, strict=True)])
    parents, speeds = strategy._parents()
    assert len(parents) == 3
    assert math.isclose(speeds.max(), 1.0)


@pytest.mark.parametrize("wrong", [{"population": 1}, {"elite": -1}, {"mutation": 2.0}])
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="genetic options"):
        GeneticOptions(**wrong)  # type: ignore[arg-type]
