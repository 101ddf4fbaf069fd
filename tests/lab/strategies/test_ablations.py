"""Searches with a part left out are searches still."""

from __future__ import annotations

import pytest
from tests.unit.tuning.strategies.evolving import BEST_S, SPACE, TASK, Oracle, record_of

from tensorwright.tuning.population.population import default_candidate
from tensorwright.tuning.space import Choice, Kind
from tensorwright.tuning.strategies import Strategy
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedFactory
from tensorwright_lab.strategies import (
    BeamFactory,
    RandomGuide,
    limited_space,
    without_evolution,
    without_refinement,
)

SMALL = EvolutionOptions(population=64, generations=2)
FACTORIES = {
    "no model": GuidedFactory(lambda task, space, seed: RandomGuide(seed), SMALL),
    "no evolution": GuidedFactory(lambda task, space, seed: Oracle(), without_evolution(SMALL)),
    "no refinement": GuidedFactory(lambda task, space, seed: Oracle(), without_refinement(SMALL)),
    "beam": BeamFactory(lambda task, space, seed: Oracle()),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_the_default_comes_first_nothing_twice_and_seeds_decide(name: str) -> None:
    one, other = (FACTORIES[name](TASK, SPACE, 5) for _ in range(2))
    found = [_round(one), _round(one), _round(one)]
    assert found == [_round(other), _round(other), _round(other)]
    assert found[0][0] == default_candidate(SPACE).trace
    assert len({trace for traces in found for trace in traces}) == 48


def _round(strategy: Strategy) -> list[str]:
    candidates = strategy.propose(16)
    strategy.observe([record_of(one) for one in candidates])
    return [one.trace for one in candidates]


def test_random_search_under_a_guide_judges_as_many_programs() -> None:
    options = without_evolution(SMALL)
    assert (options.population, options.generations, options.refine_share) == (192, 0, 0.0)


def test_a_limited_space_leaves_the_first_structure_and_its_tiles() -> None:
    space = limited_space(SPACE)
    (sketch,) = space.sketches
    assert default_candidate(space).trace == default_candidate(SPACE).trace
    open_kinds = {one.kind for one in sketch.choices if len(one.values) > 1}
    assert open_kinds == {Kind.TILE}
    assert space.size < SPACE.sketches[0].size
    closed: list[Choice] = [one for one in sketch.choices if one.kind is not Kind.TILE]
    assert [one.values for one in closed] == [((4,),), ((1,),)]


def test_a_beam_that_a_good_judge_leads_finds_good_programs() -> None:
    strategy = FACTORIES["beam"](TASK, SPACE, 0)
    times = [record_of(one).median_s for _ in range(4) for one in strategy.propose(16)]
    assert min(times) < 1.1 * BEST_S
