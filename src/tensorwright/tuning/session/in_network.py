"""Choose among the best schedules of every workload by running the whole network.

A kernel that is fast alone may be slow in a network: its constants come from memory, and its inputs
from the cache of the core that computed them.  So a few executables, each with another choice for
every workload, run in turns, and each step is timed while the network runs.  The best schedules of
all workloads make one more executable, which is taken only if it wins as a whole.  The standing
executables (the untuned schedules, and the earlier choice) take part as a whole: one of them stays
until another one beats it here.

Then the kernels run on all threads and on one thread in turns.  This shows which kernels gain
nothing from more than one thread; the result must win against the estimate.  At the end the chosen
program takes turns with the untuned one, and a search claims only this speed-up.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tensorwright.base import TargetKind, physical_memory_bytes
from tensorwright.graph import Partition, random_inputs
from tensorwright.ops import Array
from tensorwright.processes import never
from tensorwright.records import NetworkChoice, RecordStore, Setting
from tensorwright.runtime import Executable, choose_teams
from tensorwright.runtime.measuring import seconds_in_turns, typical_seconds
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning.session.over_sizes import NetworkPrograms, run_seconds
from tensorwright.tuning.session.ranking import is_replayable
from tensorwright.tuning.session.result import (
    NetworkResult,
    compare_with_untuned,
    workloads_of_steps,
)

_TOP = 24
_WORST = 1.3  # times as slow as the best alone: a slower schedule does not win in a network either
_OTHERS = 2
_ROUNDS = 12
_TURNS = 4 * _ROUNDS
_LEAST_GAIN = 0.015  # of the time: a schedule must gain this to replace the one that is best alone
_LEAST_WHOLE_GAIN = 0.004  # of the time: a network must gain this to replace a standing one
_MEMORY_SHARE = 0.3  # of the machine's memory, for constants in several packings
_LEAST_TURNS = 5  # of whole networks, even if the time is up: they decide
_RUNS = 10  # the least runs of an executable that decide whether it is the best
_COMPARED_SHARE = 0.5  # of the time: the most for these runs
_BUILT, _TIMED, _CHOSEN, _THREADS = 0.35, 0.55, 0.68, 0.8  # shares of the time: ends of stages


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice for a network, and its comparison with the untuned schedules."""

    choice: NetworkChoice
    result: NetworkResult


def choose_in_network(
    parts: Partition,
    options: Mapping[str, Sequence[str]],
    setting: Setting,
    limit_s: float = 40.0,
    should_stop: Callable[[], bool] = never,
    standing: Sequence[Mapping[str, str]] = (),
) -> Chosen | None:
    """Compare schedules of all workloads inside the network.

    options   workload key -> trace texts, the best alone first; at least one for each workload
    limit_s   about how long it may take after the best alone are built, which are needed anyway;
              a shorter time means fewer executables and fewer turns, but at least two executables,
              and the standing ones that fit into memory
    standing  workload key -> trace text, for every workload: one of these is chosen unless another
              is clearly faster; the most important to keep first, the untuned ones last

    None if `should_stop` became true.  Raises: as building and running kernels.
    """
    make = NetworkPrograms(parts, setting).of_texts
    size = sum(array.nbytes for array in parts.graph.constants.values())
    held = int(_MEMORY_SHARE * physical_memory_bytes() / max(1, size)) - 1  # executables at once
    variants = variants_of(options, standing)[: max(2, held)]
    inputs = random_inputs(parts.graph)
    first = make(variants[0])
    started = time.monotonic()

    def left_s(share: float) -> float:
        return started + share * limit_s - time.monotonic()

    least = max(2, 1 + len(standing))
    in_time = int(_COMPARED_SHARE * limit_s / (_RUNS * run_seconds(first, inputs)))
    most = max(least, in_time)
    executables = [first]
    for traces in variants[1:most]:
        if len(executables) >= least and left_s(_BUILT) < 0:
            break
        executables.append(make(traces))
    times = _step_times(parts, executables, inputs, started + _TIMED * limit_s, should_stop)
    if times is None:
        return None
    chosen = _best_of_each(variants, times)
    rivals = [first, make(chosen), *executables[1:]]
    round_s = 2 * math.fsum(time_s for each in times for time_s in each.values())
    turns_s = max(left_s(_CHOSEN), _LEAST_TURNS * round_s)
    totals = seconds_in_turns(
        rivals, inputs, rounds=_TURNS, limit_s=turns_s, should_stop=should_stop
    )
    if totals is None:
        return None
    mapped = [variants[0], chosen, *variants[1 : len(executables)]]
    best = choose_whole(totals, [traces in standing for traces in mapped])
    winner, tuned, threads_s = mapped[best], rivals[best], left_s(_THREADS)
    limits: tuple[tuple[str, int], ...] | None = ()
    if 2 * _RUNS * totals[best] < threads_s:
        limits = choose_threads(parts, tuned, inputs, threads_s, should_stop)
    if limits is None:
        return None
    choice = NetworkChoice(tuple(sorted(winner.items())), totals[0], totals[best], limits)
    untuned = standing[-1] if standing else variants[0]
    before = tuned if untuned == winner else make(untuned)
    del first, rivals, executables
    end_s = max((1 - _THREADS) * limit_s, left_s(1.0))
    return _against_untuned(parts, choice, tuned, (untuned, before), end_s, should_stop)


def _best_of_each(
    variants: Sequence[Mapping[str, str]], times: Sequence[Mapping[str, float]]
) -> dict[str, str]:
    """For each workload the trace of the fastest variant, that of the first if hardly slower."""
    chosen = dict(variants[0])
    for key in chosen:
        seconds = [each.get(key, 0.0) for each in times]
        best = seconds.index(min(seconds))
        if seconds[best] < (1 - _LEAST_GAIN) * seconds[0]:
            chosen[key] = variants[best][key]
    return chosen


def _against_untuned(
    parts: Partition,
    choice: NetworkChoice,
    tuned: Executable,
    untuned: tuple[Mapping[str, str], Executable],
    limit_s: float,
    should_stop: Callable[[], bool],
) -> Chosen:
    """A choice and its comparison; the untuned schedules if the choice is slower."""
    traces, before = untuned
    limits = dict(choice.thread_limits)
    after = _limited(parts, tuned, limits) if limits else tuned
    schedules = (traces, dict(choice.traces))
    result = compare_with_untuned(parts, before, after, schedules, limit_s, should_stop)
    if result.whole is None or not result.is_slower:
        return Chosen(choice, result)
    standing = NetworkChoice(tuple(sorted(traces.items())), choice.before_s, result.whole.untuned_s)
    return Chosen(standing, result.as_untuned(traces))


def variants_of(
    options: Mapping[str, Sequence[str]], standing: Sequence[Mapping[str, str]]
) -> list[dict[str, str]]:
    """The choices to compare as a whole, each once: best alone, standing ones, others."""
    count = max(map(len, options.values()), default=1)
    others = [
        {key: traces[min(n, len(traces) - 1)] for key, traces in options.items()}
        for n in range(count)
    ]
    choices: list[dict[str, str]] = []
    for each in (others[0], *map(dict, standing), *others[1:]):
        if each not in choices:
            choices.append(each)
    return choices


def choose_whole(totals: Sequence[float], is_standing: Sequence[bool]) -> int:
    """The number of the chosen network: the fastest, or a standing one that is hardly slower."""
    best = min(range(len(totals)), key=lambda n: totals[n])
    stands = [n for n, stays in enumerate(is_standing) if stays]
    if not stands:
        return best
    best_standing = min(stands, key=lambda n: totals[n])
    return best if totals[best] < (1 - _LEAST_WHOLE_GAIN) * totals[best_standing] else best_standing


def choose_threads(
    parts: Partition,
    program: Executable,
    inputs: Mapping[str, Array],
    limit_s: float,
    should_stop: Callable[[], bool] = never,
) -> tuple[tuple[str, int], ...] | None:
    """(workload key, the most threads on which it runs; 0 is all) by measurement.

    limit_s   the seconds after which no turn begins

    Empty if the limits do not make the program faster, or the threads are those of a device; None
    if `should_stop` became true.
    """
    if program.threads == 1 or program.target.kind is not TargetKind.CPU:
        return ()
    keys = [workload.key for workload in parts.workloads]
    variants = [
        program.with_plan(choose_teams(program.plan, limits=dict.fromkeys(range(len(keys)), most)))
        for most in (0, 1)
    ]
    started = time.monotonic()
    times = _step_times(parts, variants, inputs, started + limit_s / 2, should_stop)
    if times is None:
        return None
    everyone, alone = times
    limits = {key: int(alone.get(key, 0.0) <= everyone.get(key, 0.0)) for key in keys}
    chosen = _limited(parts, program, limits)
    left_s = started + limit_s - time.monotonic()
    totals = seconds_in_turns(
        [program, chosen], inputs, rounds=_TURNS, limit_s=left_s, should_stop=should_stop
    )
    if totals is None:
        return None
    return tuple(sorted(limits.items())) if totals[1] < (1 - _LEAST_GAIN) * totals[0] else ()


def _limited(parts: Partition, program: Executable, limits: Mapping[str, int]) -> Executable:
    """The program with a limit of threads for each workload, by key."""
    numbered = {number: limits[workload.key] for number, workload in enumerate(parts.workloads)}
    return program.with_plan(choose_teams(program.plan, limits=numbered))


def schedules_worth_trying(
    store: RecordStore, workload: Workload, setting: Setting, default: str
) -> tuple[str, ...]:
    """The schedules of a workload worth trying in a network, the best alone first.

    These are the best on record, the best of other structures, the heuristic one, and the second
    best.
    """
    records = store.top(_TOP, **setting.filters(workload.key))
    state = state_of(workload)
    good = [record for record in records if is_replayable(state, record.trace)]
    traces = [record.trace for record in good]
    limit = _WORST * good[0].median_s if good else 0.0
    near = {record.trace for record in good if record.median_s <= limit}
    by_structure = {re.sub(r"\b\d+\b", "#", trace): trace for trace in reversed(traces)}
    structures = list(by_structure.values())[::-1]
    others = [trace for trace in structures[1:] if trace in near]
    candidates = [*traces[:1], *others[:_OTHERS], default, *traces[1:2]]
    return tuple(dict.fromkeys(candidates))


def _step_times(
    parts: Partition,
    executables: Sequence[Executable],
    inputs: Mapping[str, Array],
    deadline: float,
    should_stop: Callable[[], bool],
) -> list[dict[str, float]] | None:
    """For each executable, the seconds in the kernels of each workload in one run."""
    keys = workloads_of_steps(parts)
    samples: list[list[list[float]]] = [[] for _ in executables]
    for number in range(_ROUNDS):
        for executable, taken in zip(executables, samples, strict=True):
            if should_stop():
                return None
            taken.append([step.time_s for step in executable.profile(inputs, 3)])
        if number and time.monotonic() > deadline:
            break
    seconds: list[dict[str, float]] = []
    for taken in samples:
        totals: dict[str, float] = {}
        for key, times in zip(keys, zip(*taken, strict=True), strict=False):  # copies come last
            totals[key] = totals.get(key, 0.0) + typical_seconds(times)
        seconds.append(totals)
    return seconds
