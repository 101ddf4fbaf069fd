"""Measure random programs of a workload, on which cost models are judged.

Unlike a search, this keeps no best and drops nobody early: every program gets its time.

Programs of all sorts for one workload, from which a cost model for defaults learns.

Uniform draws show hardly any good program, and a search shows little else.  A default is chosen
among programs by rule, programs around them and programs that the model predicts to be fast; so the
model is trained on these.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tensorwright.artifacts import Kernel, build_request
from tensorwright.base import CpuTarget
from tensorwright.records import Record, RecordStore, Status
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring.runner import Builder, BuildFailed, BuildStopped, Runner
from tensorwright.tuning.measuring.timing import Measurement
from tensorwright.tuning.population.population import Candidate, Population
from tensorwright.tuning.population.variation import mutate, sample
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedSearch
from tensorwright.tuning.strategies.named import RandomSearch
from tensorwright.tuning.strategies.strategy import Guide
from tensorwright.tuning.task import Task

_BATCH = 32
_MOST_FAILED = 4  # give up after this many times the wanted number of programs


@dataclass(frozen=True, slots=True)
class CollectSetting:
    """For what machine programs are measured."""

    target: CpuTarget
    hardware: str
    threads: int
    seed: int = 0


def known_records(store: RecordStore, setting: CollectSetting, workload: Workload) -> list[Record]:
    """The records of a workload in this setting, in order."""
    return list(
        store.query(
            workload=workload.key,
            target=setting.target.key,
            hardware=setting.hardware,
            threads=setting.threads,
        )
    )


def collect(
    task: Task,
    space: Space,
    store: RecordStore,
    setting: CollectSetting,
    tools: tuple[Builder, Runner],
    wanted: int,
) -> Iterator[tuple[int, int]]:
    """Measure programs drawn uniformly from a space until `wanted` are on record with a time.

    Yields after each batch how many are timed and how many were tried, and ends early where the
    space does. What is on record counts, so that it resumes.
    """
    records = known_records(store, setting, task.workload)
    search = RandomSearch(task, space, setting.seed)
    search.observe(records)
    timed = len({record.trace for record in records if record.status.is_timed})
    tried = len(records)
    yield timed, tried
    while timed < wanted and tried < _MOST_FAILED * wanted:
        candidates = search.propose(min(_BATCH, wanted - timed))
        if not candidates:
            return
        measured = measure_candidates(task.workload, candidates, setting, tools)
        store.append(measured)
        search.observe(measured)
        timed += sum(record.status.is_timed for record in measured)
        tried += len(measured)
        yield timed, tried


def measure_candidates(
    workload: Workload,
    candidates: Sequence[Candidate],
    setting: CollectSetting,
    tools: tuple[Builder, Runner],
    *,
    races: bool = False,
) -> list[Record]:
    """Build all, then measure one after the other; fewer records where building was stopped.

    races   whether each races against the best before it, so that slow ones take less time; what
            was dropped runs a second time, lest a slow moment of the machine is taken for it
    """
    builder, runner = tools
    requests = [build_request(workload, each.trace, setting.target) for each in candidates]
    results = builder.build(requests)
    measured: list[Measurement] = []
    best_s = math.inf
    with runner.turn() as is_held:
        for result in results:
            if not is_held or isinstance(result, BuildStopped):
                break
            one = _try(workload, result, runner, setting.threads, best_s)
            if one is None:
                break
            measured.append(one)
            if races and one.status is Status.OK:
                best_s = min(best_s, *one.times_s)
        for number, (one, result) in enumerate(zip(measured, results, strict=False)):
            if one.status is Status.CENSORED and isinstance(result, Kernel):
                again = _try(workload, result, runner, setting.threads, best_s)
                measured[number] = _faster(one, again)
    pairs = zip(candidates, measured, strict=False)
    return [_record(workload, candidate, one, setting) for candidate, one in pairs]


def _faster(one: Measurement, other: Measurement | None) -> Measurement:
    """The measurement with the shorter times; one that failed has none."""
    if other is None or not other.times_s:
        return one
    return other if min(other.times_s) < min(one.times_s) else one


def _try(
    workload: Workload,
    result: Kernel | BuildFailed,
    runner: Runner,
    threads: int,
    best_s: float,
) -> Measurement | None:
    if isinstance(result, BuildFailed):
        return Measurement(result.status, error=result.error)
    measured = runner.measure(workload, [result], threads, best_s)
    return measured[0] if measured else None


def _record(
    workload: Workload, candidate: Candidate, one: Measurement, setting: CollectSetting
) -> Record:
    return Record(
        workload=workload.key,
        target=setting.target.key,
        hardware=setting.hardware,
        threads=setting.threads,
        trace=candidate.trace,
        times_s=one.times_s,
        status=one.status,
        error=one.error.encode(errors="replace").decode(),
        decisions=candidate.decisions,
        seed=setting.seed,
    )


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a set of programs; the rest are uniform draws.

    by_rule    sketches with the decisions chosen by rule, the default first
    around     those with one to three decisions changed
    believed   the best of an evolution under the guide
    """

    by_rule: float = 0.3
    around: float = 0.25
    believed: float = 0.25


def varied_candidates(
    task: Task, space: Space, guide: Guide, count: int, seed: int, shares: Shares | None = None
) -> tuple[Candidate, ...]:
    """Up to `count` different programs of a space; the default schedule is always the first.

    Equal arguments give equal programs.
    """
    shares = shares or Shares()
    random = np.random.default_rng((seed, zlib.crc32(task.workload.key.encode())))
    options = EvolutionOptions(population=256, generations=2, epsilon=0.0)
    search = GuidedSearch(task, space, seed, guide, options)
    tables, history = search.tables, search.history
    starts = tables.starts()
    rest = 1 + random.permutation(len(starts) - 1)
    ordered = starts.take(np.concatenate([np.zeros(1, np.int64), rest]))
    candidates = history.take_new(ordered, max(1, round(shares.by_rule * count)))
    changed = starts.take(random.integers(0, len(starts), 4 * count))
    candidates += history.take_new(_changed(search, changed, random), round(shares.around * count))
    believed = round(shares.believed * count)
    candidates += history.take_new(search.promising(random, 3 * believed), believed)
    drawn = sample(tables, 4 * count, random)
    candidates += history.take_new(drawn, count - len(candidates))
    return tuple(candidates)


def _changed(search: GuidedSearch, parents: Population, random: Generator) -> Population:
    """One, two or three mutations of each."""
    once = mutate(search.tables, parents, random)
    twice = mutate(search.tables, once, random)
    thrice = mutate(search.tables, twice, random)
    return Population.joined([once, twice, thrice]).take(random.permutation(3 * len(parents)))
