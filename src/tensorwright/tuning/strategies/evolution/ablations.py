"""Searches with a part left out, to see what the part is worth.

    no model        evolution that random scores guide: `EvolutionFactory` of `RandomGuide`
    no evolution    random programs, of which the model's best are measured: `without_evolution`
    no refinement   evolution alone: `without_refinement`
    limited space   tile sizes of the first structure only: `limited_space`
    beam search     programs grow choice by choice: `BeamSearch` in `beam.py`

All but the third are those of Ansor (OSDI 2020, section 7.1, figure 7).
"""

from __future__ import annotations

from dataclasses import replace

from tensorwright.tuning.space.sketch import Kind, Sketch, Space
from tensorwright.tuning.strategies.evolution.options import EvolutionOptions


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
