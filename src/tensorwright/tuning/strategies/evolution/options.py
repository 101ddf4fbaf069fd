"""The options of an evolutionary search."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright.tuning.population.space_tables import Weights


@dataclass(frozen=True, slots=True)
class EvolutionOptions:
    """The numbers of the search; the defaults are meant to be right.

    On eight made-up landscapes over the sketches of a 3x3 convolution, where the best structure is
    not the first, 256 trials ended 9 % above the optimum with restarts after 32 idle trials, 18 %
    after 48, 25 % without any; islands of 1 or 6 sketches, and other pressures, were no better.

    population      candidates of a generation         generations    beside the first
    measured_share  of the first generation that are the best measured programs
    proposed_share  of the other programs of the first generation, drawn by a proposing model,
                    where there is one
    cross_share     of the children that have two parents; the others are mutated
    keep_share      of each generation that goes on unchanged, the best
    pressure        the best is drawn exp(pressure) times as often as the worst as a parent
    leap            share of mutations that draw any row, not a neighbour
    epsilon         share of the proposals that are drawn at random
    start_share     share of a proposal that structures as chosen by rule may have; where it is less
                    than 1, those that promise most come first
    variety         how much rank a proposal loses that is like another, see `pick_diverse`
    sketches        the most structures of one round
    islands         the same in a restart
    refine_after    trials before the first refinement
    refine_share    share of the proposals that are neighbours of the best measured programs
    stalled_share   the same if nothing was gained for `patience` trials
    centres         the best programs that are refined
    patience        trials without a gain, after which a restart begins; the next `patience` trials
                    without one end it
    weights         of the kinds of mutation
    """

    population: int = 512
    generations: int = 3
    measured_share: float = 0.2
    proposed_share: float = 0.5
    cross_share: float = 0.15
    keep_share: float = 0.1
    pressure: float = 5.0
    leap: float = 0.2
    epsilon: float = 0.06
    start_share: float = 1.0
    variety: float = 0.1
    sketches: int = 8
    islands: int = 3
    refine_after: int = 16
    refine_share: float = 0.3
    stalled_share: float = 0.5
    centres: int = 3
    patience: int = 32
    weights: Weights = field(default_factory=Weights)
