"""Judge schedules that were chosen without a measurement, against random and tuned ones."""

from tensorwright_lab.judging.drills import builder_of, runner_of
from tensorwright_lab.judging.random_candidates import (
    LIMIT, Bench, Distribution, RandomComparison, best_after, build_all, compare_with_random,
    distribution_of, fastest_s, measure_in_turns, race, search_trials,
)
