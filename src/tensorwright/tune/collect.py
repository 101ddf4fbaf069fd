"""Measure random programs of a workload: what cost models are judged on.

Unlike a search, this keeps no best and drops nobody early: every program gets its time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tensorwright.base import Target
from tensorwright.records import Record, RecordStore
from tensorwright.tune.build import Builder, BuildFailed, BuildStopped, Built, build_request
from tensorwright.tune.measure import Runner, hold_turn
from tensorwright.tune.pool import never
from tensorwright.tune.random_search import RandomSearch
from tensorwright.tune.space import Space
from tensorwright.tune.strategy import Candidate
from tensorwright.tune.task import Task, Workload
from tensorwright.tune.trial import Measurement

_BATCH = 32
_MOST_FAILED = 4  # given up when so many times as many programs as are wanted were tried


@dataclass(frozen=True, slots=True)
class Bench:
    """With what, and for what machine, programs are measured."""

    builder: Builder
    runner: Runner
    store: RecordStore
    target: Target
    hardware: str
    threads: int
    seed: int = 0


def known_records(bench: Bench, workload: Workload) -> list[Record]:
    """What is on record for a workload in this setting, in order."""
    return list(
        bench.store.query(
            workload=workload.key,
            target=bench.target.key,
            hardware=bench.hardware,
            threads=bench.threads,
        )
    )


def collect(
    task: Task,
    space: Space,
    bench: Bench,
    wanted: int,
    should_stop: Callable[[], bool] = never,
) -> Iterator[tuple[int, int]]:
    """Measure programs drawn uniformly from a space until so many are on record with a time.

    Yields after each batch how many are timed and how many were tried, and ends early where the
    space does. What is on record counts, so that it resumes.
    """
    records = known_records(bench, task.workload)
    search = RandomSearch(task, space, bench.seed)
    search.observe(records)
    timed = len({record.trace for record in records if record.status.is_timed})
    tried = len(records)
    yield timed, tried
    while timed < wanted and tried < _MOST_FAILED * wanted and not should_stop():
        candidates = search.propose(min(_BATCH, wanted - timed))
        if not candidates:
            return
        found = _measure(task.workload, candidates, bench, should_stop)
        bench.store.append(found)
        search.observe(found)
        timed += sum(record.status.is_timed for record in found)
        tried += len(found)
        yield timed, tried


def _measure(
    workload: Workload,
    candidates: Sequence[Candidate],
    bench: Bench,
    should_stop: Callable[[], bool],
) -> list[Record]:
    requests = [build_request(workload, each.trace, bench.target) for each in candidates]
    results = bench.builder.build(requests, should_stop)
    found: list[Record] = []
    with hold_turn(should_stop) as is_held:
        for candidate, result in zip(candidates, results, strict=True):
            if not is_held or isinstance(result, BuildStopped):
                break
            one = _try(workload, result, bench, should_stop)
            if one is None:
                break
            found.append(_record(workload, candidate, one, bench))
    return found


def _try(
    workload: Workload,
    result: Built | BuildFailed,
    bench: Bench,
    should_stop: Callable[[], bool],
) -> Measurement | None:
    if isinstance(result, BuildFailed):
        return Measurement(result.status, error=result.error)
    measured = bench.runner.measure(workload, [result], bench.threads, math.inf, should_stop)
    return measured[0] if measured else None


def _record(workload: Workload, candidate: Candidate, one: Measurement, bench: Bench) -> Record:
    return Record(
        workload=workload.key,
        target=bench.target.key,
        hardware=bench.hardware,
        threads=bench.threads,
        trace=candidate.trace,
        times_s=one.times_s,
        status=one.status,
        error=one.error.encode(errors="replace").decode(),
        decisions=candidate.decisions,
        seed=bench.seed,
    )
