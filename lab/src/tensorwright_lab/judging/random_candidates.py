"""A schedule that was chosen without a measurement against random ones of its space.

All are built, then race against the fastest before them, the chosen one first.  It and the fastest
few take turns, which says what the best random one is; in a last race that one, the chosen one and
the heuristic one take turns again, as often for all.  Only the times of the last race are reported:
nothing was chosen by them, and all schedules are measured equally often.  A random schedule that is
dropped early counts as measured: only the best one matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorwright.artifacts import Kernel
from tensorwright.records import Status
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning.measuring import BuildFailed, Measurement
from tensorwright.tuning.space import space_of
from tensorwright.tuning.strategies import RandomSearch
from tensorwright.tuning.task import Task
from tensorwright_lab.judging.turns import (
    Bench,
    build_all,
    fastest_s,
    measure_in_turns,
    race,
)

_FINALISTS = 4
_MOST_TRIED = 2  # give up after this many times the wanted number of tries
_LAST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class RandomComparison:
    """The result of a comparison.

    chosen_s   seconds of the chosen schedule; None where it did not run, or answered wrongly, and
               `failure` says why
    rule_s     of the heuristic schedule; None where that did not run
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
    """Compare a schedule with the best of `wanted` random ones that run, or fewer.

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
        measured |= race(workload, added, bench, min(fastest_s(measured).values(), default=1e9))
    count = _count_measured(random, measured)
    others = [trace for trace in _fastest_first(measured) if trace != chosen][:_FINALISTS]
    turns = _in_turns(workload, (chosen, *others), measured, built, bench)
    best = next((trace for trace in _fastest_first(turns) if trace in random), "")
    measured |= turns
    measured |= _in_turns(workload, (chosen, rule, best), measured, built, bench, _LAST_ROUNDS)
    times_s, first = fastest_s(measured), measured[chosen]
    return RandomComparison(
        times_s.get(chosen),
        times_s.get(rule),
        times_s.get(best),
        best,
        count,
        len(random),
        tuple((t, one.error) for t, one in measured.items() if one.status is Status.WRONG_ANSWER),
        "" if first.times_s else f"{first.status.value}: {first.error}",
    )


def _fastest_first(measured: Mapping[str, Measurement]) -> list[str]:
    """Those that ran, and those that were dropped: they may have been measured in a slow moment."""
    times_s = fastest_s(measured)
    return sorted(times_s, key=times_s.__getitem__)


def _in_turns(
    workload: Workload,
    traces: Sequence[str],
    measured: Mapping[str, Measurement],
    built: Mapping[str, Kernel | BuildFailed],
    bench: Bench,
    rounds: int = 1,
) -> dict[str, Measurement]:
    """Measure those of some schedules by turns that ran before; nothing where that is only one."""
    kernels: dict[str, Kernel] = {}
    for trace in traces:
        kernel = built.get(trace)
        if isinstance(kernel, Kernel) and measured[trace].times_s:
            kernels[trace] = kernel
    return measure_in_turns(workload, kernels, bench, rounds) if len(kernels) > 1 else {}


def _count_measured(traces: list[str], measured: dict[str, Measurement]) -> int:
    """How many ran; one that was stopped because it ran for so long did."""
    statuses = [measured[trace].status for trace in traces if trace in measured]
    return sum(status.is_timed or status is Status.TIMED_OUT for status in statuses)
