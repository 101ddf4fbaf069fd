"""Searches with a part left out, to see what the part is worth.

    no model        evolution that random scores guide: `GuidedFactory` of `RandomGuide`
    no evolution    random programs, of which the model's best are measured: `without_evolution`
    no refinement   evolution alone: `without_refinement`
    limited space   tile sizes of the first structure only: `limited_space`
    beam search     programs grow choice by choice: `BeamSearch` in `beam.py`
    no scheduler    every workload gets as many rounds: `RoundRobinScheduler`

All but the third are those of Ansor (OSDI 2020, section 7.1, figure 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tensorwright.tuning.population import Population
from tensorwright.tuning.space import Kind, Sketch, Space
from tensorwright.tuning.strategies import Outcome
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.strategy import Scores
from tensorwright.tuning.task_scheduling import TaskState


class RandomGuide:
    """A guide without judgement: a random number for each program, the same every time."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = np.uint64(seed * 2 + 1)

    def refresh(self) -> None:
        """As `Guide.refresh`."""

    def scores(self, population: Population) -> Scores:
        """As `Guide.scores`."""
        mixed = (population.keys ^ self._seed) * np.uint64(0xD1342543DE82EF95 | 1)
        scores: Scores = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
        return scores

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Nothing to learn."""


class RoundRobinScheduler:
    """Choose the task with the fewest rounds, as without a task scheduler."""

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """As `Scheduler.choose`."""
        open_tasks = [n for n, state in enumerate(states) if not state.is_exhausted]
        return min(open_tasks, key=lambda n: (len(states[n].history), n), default=None)


def without_evolution(options: EvolutionOptions | None = None) -> EvolutionOptions:
    """Random programs in place of generations, as many to judge; nothing is refined."""
    own = options or EvolutionOptions()
    judged = own.population * (own.generations + 1)
    whole = replace(own, population=judged, generations=0, measured_share=0.0)
    return without_refinement(whole)


def without_refinement(options: EvolutionOptions | None = None) -> EvolutionOptions:
    """Evolution alone: no neighbours of measured programs by right."""
    return replace(options or EvolutionOptions(), refine_share=0.0, stalled_share=0.0)


def limited_space(space: Space) -> Space:
    """The tile sizes of the first sketch; every other choice is left to its rule."""
    first = space.sketches[0]
    choices = tuple(
        choice if choice.kind is Kind.TILE else replace(choice, values=(choice.default,))
        for choice in first.choices
    )
    return Space((Sketch(first.name, first.trace, choices, first.limits),))
