"""How good schedules are that were chosen without a measurement: against random and tuned ones."""

from tensorwright.tuning.comparison.distribution import LIMIT, Distribution, distribution_of
from tensorwright.tuning.comparison.random_candidates import (
    RandomComparison,
    compare_with_random,
)
from tensorwright.tuning.comparison.trial_curve import best_after, search_trials
from tensorwright.tuning.comparison.turns import (
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
    "compare_with_random",
    "distribution_of",
    "fastest_s",
    "measure_in_turns",
    "race",
    "search_trials",
]
