"""Judge schedules that were chosen without a measurement, against random and tuned ones."""

from tensorwright_lab.judging.distribution import LIMIT, Distribution, distribution_of
from tensorwright_lab.judging.random_candidates import (
    RandomComparison,
    compare_with_random,
)
from tensorwright_lab.judging.tools import builder_of, runner_of
from tensorwright_lab.judging.trial_curve import best_after, search_trials
from tensorwright_lab.judging.turns import (
    Bench,
    build_all,
    fastest_s,
    measure_in_turns,
    race,
)

__all__ = [
    "LIMIT",
    "Bench",
    "Distribution",
    "RandomComparison",
    "best_after",
    "build_all",
    "builder_of",
    "compare_with_random",
    "distribution_of",
    "fastest_s",
    "measure_in_turns",
    "race",
    "runner_of",
    "search_trials",
]
