"""Evolutionary search: what it proposes, what it learns from, and that it finds what is fast."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import matmul, number_of, numbered_space
from tests.unit.tuning.strategies.evolving import BEST_S, SPACE, TASK, Oracle, record_of

from tensorwright.records import Record, Status
from tensorwright.schedule import state_of
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.population.population import default_candidate
from tensorwright.tuning.space import Space, space_of
from tensorwright.tuning.strategies import Guide, RandomSearch, Strategy
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedFactory, GuidedSearch
from tensorwright.tuning.task import Task
from tensorwright_lab.strategies import RandomGuide

SMALL = EvolutionOptions(population=64, generations=2)


def search(guide: Guide | None = None, seed: int = 0, space: Space = SPACE) -> GuidedSearch:
    return GuidedSearch(TASK, space, seed, guide or Oracle(), SMALL)


def tuned(strategy: Strategy, trials: int, count: int = 16) -> list[Record]:
    """The records of so many trials; times of the landscape."""
    records: list[Record] = []
    while len(records) < trials:
        fresh = [record_of(one) for one in strategy.propose(count)]
        strategy.observe(fresh)
        records += fresh
    return records


def best_of(records: list[Record]) -> float:
    return min((one.median_s for one in records if one.status is Status.OK), default=math.inf)


def test_the_default_schedule_comes_first_and_nothing_twice() -> None:
    strategy = search()
    first = strategy.propose(16)
    assert first[0] == default_candidate(SPACE)
    found = [*first, *(one for _ in range(12) for one in strategy.propose(16))]
    assert len({one.trace for one in found}) == len(found) == 13 * 16


def test_equal_seeds_and_records_give_equal_proposals() -> None:
    one, other = search(seed=7), search(seed=7)
    for _ in range(5):
        found = one.propose(12)
        assert found == other.propose(12)
        records = [record_of(each) for each in found]
        one.observe(records)
        other.observe(records)
    assert search(seed=8).propose(12) != search(seed=7).propose(12)


def test_a_search_goes_on_from_its_records_alone() -> None:
    through = search(seed=3)
    records = tuned(through, 96)
    resumed = search(seed=3)
    resumed.observe(records[:50])
    resumed.observe(records[50:])
    assert resumed.propose(16) == through.propose(16)


def test_what_is_on_record_is_not_proposed_failures_too() -> None:
    first = search().propose(16)
    strategy = search()
    strategy.observe([record_of(one, Status.CRASHED) for one in first])
    assert not {one.trace for one in first} & {one.trace for one in strategy.propose(64)}


def test_a_small_space_is_searched_whole() -> None:
    space = numbered_space(TASK, native_target())
    strategy = search(RandomGuide(), space=space)
    found = [number_of(one.trace) for _ in range(4) for one in strategy.propose(16)]
    assert sorted(found) == list(range(1, 41))
    assert strategy.propose(16) == ()


def test_a_sketch_of_which_nothing_runs_is_left_alone() -> None:
    strategy = search()
    band = [one for _ in range(4) for one in strategy.propose(16) if one.sketch == "band"][:4]
    strategy.observe([record_of(one, Status.WRONG_ANSWER) for one in band])
    assert all(one.sketch != "band" for _ in range(4) for one in strategy.propose(16))
    assert strategy.history.dropped.tolist() == [1]


def test_a_sketch_that_ran_once_is_not() -> None:
    strategy = search()
    band = [one for _ in range(8) for one in strategy.propose(16) if one.sketch == "band"][:6]
    strategy.observe([record_of(one, Status.CRASHED) for one in band[1:]])
    strategy.observe([record_of(band[0], Status.CENSORED)])
    assert not len(strategy.history.dropped)


def test_the_guide_learns_from_what_ran_and_of_times_that_are_bounds() -> None:
    guide = Oracle()
    strategy = search(guide)
    found = strategy.propose(3)
    statuses = (Status.OK, Status.CENSORED, Status.CRASHED)
    strategy.observe([record_of(*pair) for pair in zip(found, statuses, strict=True)])
    assert [one.is_censored for one in guide.learnt] == [False, True]
    best, times_s = strategy.history.best(5)
    assert len(best) == 1
    assert times_s[0] == record_of(found[0]).median_s


def test_a_program_stands_by_its_newest_record() -> None:
    strategy = search()
    lucky, other = (record_of(one) for one in strategy.propose(2))
    strategy.observe([dataclasses.replace(lucky, times_s=(1e-9,)), other])
    again = dataclasses.replace(lucky, status=Status.WRONG_ANSWER, times_s=(), error="wrong")
    strategy.observe([again])
    assert strategy.history.best(5)[1].tolist() == [other.median_s]
    assert strategy.history.trials == 2


def test_records_from_elsewhere_do_no_harm() -> None:
    strategy = search()
    strategy.observe([Record("doubled", "t", "h", 1, "unroll(y, i)", (0.5,), Status.OK)])
    assert len(strategy.propose(16)) == 16
    assert not len(strategy.history.best(5)[0])


def test_search_finds_the_best_program_sooner_than_random_search() -> None:
    for seed in range(3):
        evolved = best_of(tuned(search(Oracle(noise=0.5), seed), 160))
        drawn = best_of(tuned(RandomSearch(TASK, SPACE, seed), 160))
        assert evolved < 1.05 * BEST_S < drawn


def test_refinement_leads_where_no_model_does() -> None:
    """Measured neighbours alone reach a good program; random search does not."""
    for seed in range(3):
        refined = best_of(tuned(search(RandomGuide(), seed), 256))
        drawn = best_of(tuned(RandomSearch(TASK, SPACE, seed), 256))
        assert refined < 1.1 * BEST_S < drawn


def test_proposals_are_unlike_each_other() -> None:
    strategy = search()
    tuned(strategy, 32)
    options = dataclasses.replace(SMALL, refine_share=0.0)
    varied, narrow = (
        GuidedSearch(
            TASK, SPACE, 0, Oracle(), dataclasses.replace(options, variety=variety)
        ).propose(16)
        for variety in (0.5, 0.0)
    )
    assert spread(varied) > spread(narrow)


def spread(candidates: tuple[Candidate, ...]) -> float:
    """How many decisions differ between two of the candidates, on average."""
    sets = [{(one.sketch, *pair) for pair in one.decisions} for one in candidates]
    return float(np.mean([len(a ^ b) for a in sets for b in sets]))


def test_a_stalled_search_starts_afresh_away_from_the_best() -> None:
    options = dataclasses.replace(SMALL, patience=16, stalled_share=0.0, epsilon=0.0)
    strategy = GuidedSearch(TASK, SPACE, 0, Oracle(), options)
    while strategy.history.since_gain // 16 % 2 == 0:
        tuned(strategy, 16)
    best, _ = strategy.history.best(1)
    name = SPACE.sketches[best.sketch[0]].name
    assert name not in [one.sketch for one in strategy.propose(16)][:8]
    while strategy.history.since_gain // 16 % 2 == 1:
        tuned(strategy, 16)
    assert name in [one.sketch for one in strategy.propose(16)]


def test_a_restart_looks_where_least_was_tried() -> None:
    options = dataclasses.replace(SMALL, patience=16, stalled_share=0.0, epsilon=0.0, islands=1)
    strategy = GuidedSearch(TASK, SPACE, 0, Oracle(), options)
    while strategy.history.since_gain // 16 % 2 == 0:
        tuned(strategy, 16)
    best, _ = strategy.history.best(1)
    others = [n for n in range(4) if n != best.sketch[0]]  # the last sketch holds one program
    least = min(others, key=lambda n: strategy.history.counts[n])
    names = [one.sketch for one in strategy.propose(16)]
    assert names.count(SPACE.sketches[least].name) > 8


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rounds_may_be_small(count: int) -> None:
    records = tuned(search(), 60, count)
    assert best_of(records) < 2 * BEST_S


def test_the_proposals_of_a_real_space_are_programs_of_it() -> None:
    workload = matmul()
    space = space_of(state_of(workload), native_target())
    factory = GuidedFactory(lambda task, space, seed: RandomGuide(seed), SMALL)
    found = factory(Task(workload), space, 0).propose(16)
    assert found[0] == default_candidate(space)
    assert len({one.trace for one in found}) == 16
