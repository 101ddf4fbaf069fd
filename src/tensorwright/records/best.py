"""Find the best schedule on record for a workload, and warn of records that cannot be used."""

from __future__ import annotations

import warnings

from tensorwright.base import Target, TensorwrightError
from tensorwright.records.record import Record, is_current
from tensorwright.records.store import RecordStore
from tensorwright.schedule import (
    Trace,
    Workload,
    parse_trace,
    replay,
    state_of,
    uses_algorithm,
)

_MOST_TRIED = 20
_MOST_READ = 200


def best_trace(
    store: RecordStore,
    workload: Workload,
    target: Target,
    hardware: str,
    threads: int,
    *,
    algorithms: bool = True,
) -> Trace | None:
    """The fastest schedule on record that still replays; None if there is none.

    Measurements of older versions count only if this version has none.  A warning says which
    records are skipped, and why.
    algorithms   whether the schedule may use another algorithm
    """
    best = best_record(store, workload, target, hardware, threads, algorithms=algorithms)
    return best[1] if best is not None else None


def best_record(
    store: RecordStore,
    workload: Workload,
    target: Target,
    hardware: str,
    threads: int,
    *,
    algorithms: bool = True,
) -> tuple[Record, Trace] | None:
    """As `best_trace`, with the record."""
    state = state_of(workload)
    records = store.top(
        _MOST_READ,
        workload=workload.key,
        target=target.key,
        hardware=hardware,
        threads=threads,
    )
    most = _MOST_TRIED if algorithms else _MOST_READ
    for record in sorted(records, key=lambda one: not is_current(one))[:most]:
        try:
            trace = parse_trace(record.trace)
            replay(state, trace)
        except TensorwrightError as error:
            text = (
                f"workload {workload.name} ({workload.key}): the record of {record.when} "
                f"by version {record.tool_version} is skipped: {error}"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            continue
        if algorithms or not uses_algorithm(trace):
            return record, trace
    return None
