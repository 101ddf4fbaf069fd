"""One suite for every search strategy: a new one is one more entry in `FACTORIES`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.tuning.helpers import numbered_space
from tests.unit.tuning.strategies.evolving import SPACE, TASK, record_of

from tensorwright.base import cpu_target
from tensorwright.records import Record, Status
from tensorwright.schedule import parse_trace
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.population.population import default_candidate
from tensorwright.tuning.space import Space
from tensorwright.tuning.strategies import RandomSearch, Strategy
from tensorwright.tuning.strategies.annealing import VANILLA, AnnealingOptions
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedFactory
from tensorwright.tuning.strategies.strategy import StrategyFactory
from tensorwright_lab.strategies import (
    BeamFactory,
    GeneticOptions,
    GridSearch,
    RandomGuide,
    without_evolution,
    without_refinement,
)

SMALL = EvolutionOptions(population=64, generations=2)
FEW_STEPS = AnnealingOptions(chains=32, steps=20)
SEEDLESS = ("grid",)
FACTORIES: dict[str, StrategyFactory] = {
    "random": RandomSearch,
    "evolution": GuidedFactory(lambda task, space, seed: RandomGuide(seed), EvolutionOptions()),
    "evolution, no model": GuidedFactory(lambda task, space, seed: RandomGuide(seed), SMALL),
    "no evolution": GuidedFactory(
        lambda task, space, seed: RandomGuide(seed), without_evolution(SMALL)
    ),
    "no refinement": GuidedFactory(
        lambda task, space, seed: RandomGuide(seed), without_refinement(SMALL)
    ),
    "annealing": GuidedFactory(lambda task, space, seed: RandomGuide(seed), FEW_STEPS),
    "annealing, vanilla": GuidedFactory(
        lambda task, space, seed: RandomGuide(seed), replace(VANILLA, steps=20)
    ),
    "genetic": GeneticOptions(population=20),
    "grid": GridSearch,
    "beam": BeamFactory(lambda task, space, seed: RandomGuide(seed)),
}
FEW = 40


def few() -> Space:
    return numbered_space(TASK, cpu_target("x86-64-avx2"), FEW)


def only_default() -> Space:
    """A space without a decision."""
    return Space(tuple(each for each in SPACE.sketches if each.name == "fixed"))


def outcome(candidate: Candidate, status: Status) -> Record:
    times_s = (1e-3,) if status.is_timed else ()
    return Record(
        "doubled", "t", "h", 1, candidate.trace, times_s, status, decisions=candidate.decisions
    )


def observed(strategy: Strategy, rounds: int, count: int = 16) -> list[Candidate]:
    """What so many rounds propose; the strategy is told of all of it."""
    found: list[Candidate] = []
    for _ in range(rounds):
        fresh = strategy.propose(count)
        assert len(fresh) <= count
        strategy.observe([record_of(one) for one in fresh])
        found += fresh
    return found


@pytest.fixture(params=list(FACTORIES))
def make(request: pytest.FixtureRequest) -> StrategyFactory:
    factory: StrategyFactory = FACTORIES[request.param]
    return factory


def test_the_default_comes_first_and_nothing_twice(make: StrategyFactory) -> None:
    found = observed(make(TASK, SPACE, 0), 8)
    assert found[0] == default_candidate(SPACE)
    assert len({one.trace for one in found}) == len(found) == 8 * 16


def test_nothing_twice_where_nobody_tells_of_records(make: StrategyFactory) -> None:
    strategy = make(TASK, SPACE, 0)
    found = [one.trace for _ in range(6) for one in strategy.propose(16)]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", FACTORIES)
def test_equal_seeds_give_equal_proposals_and_others_do_not(name: str) -> None:
    make = FACTORIES[name]
    one, other, third = make(TASK, SPACE, 3), make(TASK, SPACE, 3), make(TASK, SPACE, 4)
    found = observed(one, 4)
    assert found == observed(other, 4)
    assert (found == observed(third, 4)) == (name in SEEDLESS)


def test_candidates_are_of_the_space_and_keep_to_its_limits(make: StrategyFactory) -> None:
    sketches = {sketch.name: sketch for sketch in SPACE.sketches}
    for one in observed(make(TASK, SPACE, 1), 6):
        decisions = dict(one.decisions)
        assert sketches[one.sketch].is_valid(decisions)
        assert sketches[one.sketch].bound(decisions) == parse_trace(one.trace)


def test_what_is_on_record_is_not_proposed(make: StrategyFactory) -> None:
    before = observed(make(TASK, SPACE, 0), 3)
    strategy = make(TASK, SPACE, 0)
    strategy.observe([record_of(one) for one in before])
    assert not {one.trace for one in before} & {one.trace for one in observed(strategy, 3)}


def test_a_search_survives_failures_and_traces_from_elsewhere(make: StrategyFactory) -> None:
    strategy = make(TASK, SPACE, 0)
    seen: set[str] = set()
    strategy.observe([Record("doubled", "t", "h", 1, "unroll(y, i)", (1.0,), Status.OK)])
    for _ in range(6):
        fresh = strategy.propose(16)
        assert not seen & {one.trace for one in fresh}
        seen |= {one.trace for one in fresh}
        strategy.observe([outcome(one, Status.CRASHED) for one in fresh])


def test_a_small_space_comes_to_an_end(make: StrategyFactory) -> None:
    strategy = make(TASK, few(), 0)
    found: list[str] = []
    for _ in range(60):
        fresh = strategy.propose(8)
        strategy.observe([outcome(one, Status.OK) for one in fresh])
        found += [one.trace for one in fresh]
    assert len(set(found)) == len(found) <= FEW
    assert strategy.propose(8) == ()


def test_a_space_without_decisions_holds_one_schedule(make: StrategyFactory) -> None:
    strategy = make(TASK, only_default(), 0)
    assert [one.sketch for one in strategy.propose(8)] == ["fixed"]
    assert strategy.propose(8) == ()
