"""A schedule that was chosen without a measurement against random ones of its space.

All are built, then race against the fastest before them, the chosen one first; at last it and the
fastest few take turns.  A random schedule that is dropped early is one that was measured: how much
slower it is than the best does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.build import Kernel
from tensorwright.records import Status
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning.comparison.turns import Bench, build_all, measure_in_turns, race
from tensorwright.tuning.measuring import BuildFailed, Measurement
from tensorwright.tuning.space import space_of
from tensorwright.tuning.strategies import RandomSearch
from tensorwright.tuning.task import Task

_FINALISTS = 4
_MOST_TRIED = 2  # given up when so many times as many as are wanted were tried
_SUSPICIOUS = 1.5  # a chosen schedule so many times as slow as the best is measured again
_MOST_TIMES = 3


@dataclass(frozen=True, slots=True)
class RandomComparison:
    """What came of it.

    chosen_s   seconds of the chosen schedule; None where it did not run, and `failure` says why
    rule_s     of the schedule by rule; None where that did not run
    best_s     of the fastest random one; None where none ran
    best       its trace
    measured   how many random ones ran     tried   how many were drawn
    wrong      traces of those with a wrong answer, the chosen one included, and what is wrong
    """

    chosen_s: float | None
    rule_s: float | None
    best_s: float | None
    best: str
    measured: int
    tried: int
    wrong: tuple[tuple[str, str], ...]
    failure: str


def compare_with_random(
    workload: Workload, chosen: str, bench: Bench, wanted: int, seed: int
) -> RandomComparison:
    """Compare a schedule with the best of so many random ones that run; fewer where the space ends.

    Equal arguments draw equal candidates.
    """
    space = space_of(state_of(workload), bench.target)
    search = RandomSearch(Task(workload), space, seed)
    rule = search.propose(1)[0].trace
    random = [candidate.trace for candidate in search.propose(wanted)]
    built = build_all(workload, [chosen, rule, *random], bench)
    measured = race(workload, built, bench)
    while len(random) < _MOST_TRIED * wanted:
        missing = wanted - _count_measured(random, measured)
        more = [candidate.trace for candidate in search.propose(missing)] if missing else []
        if not more:
            break
        random += more
        added = build_all(workload, more, bench)
        built |= added
        measured |= race(workload, added, bench, min(_times_s(measured).values(), default=1e9))
    times_s = _times_s(measured) | _finals(workload, chosen, built, measured, bench)
    best = min((trace for trace in random if trace in times_s), key=times_s.__getitem__, default="")
    first = measured[chosen]
    return RandomComparison(
        times_s.get(chosen),
        times_s.get(rule),
        times_s.get(best),
        best,
        _count_measured(random, measured),
        len(random),
        tuple((t, one.error) for t, one in measured.items() if one.status is Status.WRONG_ANSWER),
        "" if first.times_s else f"{first.status.value}: {first.error}",
    )


def _finals(
    workload: Workload,
    chosen: str,
    built: dict[str, Kernel | BuildFailed],
    measured: dict[str, Measurement],
    bench: Bench,
) -> dict[str, float]:
    """The times, in turns, of the chosen schedule and of the fastest others.

    Those that were dropped take part: they may have been measured in a slow moment.
    """
    times_s = _times_s(measured)
    others = sorted((t for t in times_s if t != chosen), key=times_s.__getitem__)[:_FINALISTS]
    kernels = {trace: built[trace] for trace in (chosen, *others) if trace in times_s}
    good = {trace: kernel for trace, kernel in kernels.items() if isinstance(kernel, Kernel)}
    if len(good) < 2:
        return {}
    return measure_in_turns(workload, good, bench, _SUSPICIOUS, _MOST_TIMES)


def _times_s(measured: dict[str, Measurement]) -> dict[str, float]:
    return {trace: min(one.times_s) for trace, one in measured.items() if one.times_s}


def _count_measured(traces: list[str], measured: dict[str, Measurement]) -> int:
    """How many ran; one that was stopped because it ran for so long did."""
    statuses = [measured[trace].status for trace in traces if trace in measured]
    return sum(status.is_timed or status is Status.TIMED_OUT for status in statuses)
