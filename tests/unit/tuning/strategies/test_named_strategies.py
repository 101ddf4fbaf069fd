"""Strategies by name and by their settings, and what is refused."""

from __future__ import annotations

import pytest
from tests.unit.tuning.strategies.evolving import SPACE, TASK

from tensorwright.base import UsageError, detect_target
from tensorwright.records import Setting
from tensorwright.tuning.session import Options
from tensorwright.tuning.strategies import (
    STRATEGIES,
    Guide,
    RandomSearch,
    check_strategy,
    choose_strategy,
)
from tensorwright.tuning.strategies.annealing import VANILLA, AnnealingOptions
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedSearch
from tensorwright_lab.strategies import GeneticOptions, GeneticSearch, GridSearch, RandomGuide

KINDS = {
    "evolution": GuidedSearch,
    "annealing": GuidedSearch,
    "annealing-vanilla": GuidedSearch,
    "genetic": GeneticSearch,
    "grid": GridSearch,
    "random": RandomSearch,
}


def guides(task: object, space: object, seed: int) -> Guide:
    return RandomGuide(seed)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_name_gives_its_strategy(name: str) -> None:
    strategy = choose_strategy(name, guides)(TASK, SPACE, 0)
    assert type(strategy) is KINDS[name]
    if name == "annealing-vanilla":
        assert isinstance(strategy, GuidedSearch)
        assert strategy.options is VANILLA


@pytest.mark.parametrize(
    "options", [EvolutionOptions(population=9), AnnealingOptions(steps=9), GeneticOptions(9)]
)
def test_settings_say_whose_they_are(
    options: EvolutionOptions | AnnealingOptions | GeneticOptions,
) -> None:
    strategy = choose_strategy(options, guides, is_trained=True)(TASK, SPACE, 0)
    assert isinstance(strategy, GuidedSearch | GeneticSearch)
    assert strategy.options is options


def test_where_a_model_was_trained_before_less_is_tried_blindly() -> None:
    evolution = choose_strategy("evolution", guides, is_trained=True)(TASK, SPACE, 0)
    annealing = choose_strategy("annealing", guides, is_trained=True)(TASK, SPACE, 0)
    vanilla = choose_strategy("annealing-vanilla", guides, is_trained=True)(TASK, SPACE, 0)
    own = choose_strategy(AnnealingOptions(), guides, is_trained=True)(TASK, SPACE, 0)
    assert isinstance(evolution, GuidedSearch)
    assert evolution.options.start_share < 1.0
    kinds = [each for each in (annealing, vanilla, own) if isinstance(each, GuidedSearch)]
    assert [each.options.random_first for each in kinds] == [0, 64, 64]


def test_an_unknown_name_is_refused_with_a_list() -> None:
    with pytest.raises(UsageError) as caught:
        check_strategy("anealing")
    text = caught.value.message()
    assert "there is no 'anealing'" in text
    assert "did you mean annealing?" in text
    assert ", ".join(STRATEGIES) in text


def test_another_strategy_is_another_session() -> None:
    setting = Setting(detect_target(), 1, "h")
    usual = Options(seed=0).identity([TASK], setting)
    assert Options(seed=0, strategy="evolution").identity([TASK], setting) == usual
    others = {Options(seed=0, strategy=name).identity([TASK], setting) for name in STRATEGIES}
    assert len(others) == len(STRATEGIES)
