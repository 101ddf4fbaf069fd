"""The quality of a search after numbers of trials: a short session for one workload, not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorwright.records import MemoryStore, Record, Setting, Status
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.session import Options, SessionParts, tune
from tensorwright.tuning.task import Task
from tensorwright_lab.judging.turns import Bench

_OPTIONS = Options(should_resume=False, should_rank=False, recheck_rounds=0, seeds=0)


def search_trials(
    workload: Workload, bench: Bench, trials: int, seed: int, measuring: MeasureOptions
) -> list[Record]:
    """The measurements of a session of some trials, in order; its first trial is the default.

    measuring   how the runner measures
    Raises:  KeyboardInterrupt where it was interrupted.
    """
    with MemoryStore() as store:
        result = tune(
            [Task(workload)],
            Setting(bench.target, bench.threads),
            store,
            replace(_OPTIONS, trials=trials, seed=seed),
            measuring=measuring,
            parts=SessionParts(builder=bench.builder, runner=bench.runner),
        )
        if result.is_interrupted:
            raise KeyboardInterrupt
        return list(store.query())


def best_after(records: Sequence[Record], counts: Sequence[int], untuned: str) -> tuple[str, ...]:
    """After each number of trials the trace of the fastest until then; the untuned one where
    nothing ran.
    """
    traces: list[str] = []
    for count in counts:
        good = [record for record in records[:count] if record.status is Status.OK]
        best = min(good, key=lambda record: min(record.times_s), default=None)
        traces.append(untuned if best is None else best.trace)
    return tuple(traces)
