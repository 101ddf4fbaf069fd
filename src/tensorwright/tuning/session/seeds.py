"""Schedules that were good elsewhere: on a similar machine, with other threads, by another version.

Schedules of a workload that differs only in the sizes of its tensors are seeds, too.  Their times
do not count here, so they are ordinary candidates: measured first, never trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.base import TensorwrightError
from tensorwright.records import Record, RecordStore, Status, is_current, rank
from tensorwright.schedule import ScheduleState, Workload, parse_trace, replay, state_of
from tensorwright.tuning.population.candidate import Candidate
from tensorwright.tuning.session.arguments import SessionSetting
from tensorwright.tuning.session.trusted_records import records_of, top_of

_OF_EACH = 2  # schedules from one machine and version


def seeds_of(
    store: RecordStore, setting: SessionSetting, workload: Workload, count: int
) -> tuple[Candidate, ...]:
    """The best schedules of a workload from elsewhere, the most similar origin first, each once.

    Schedules that the session trusts anyway are left out, and those of machines of another kind.
    """
    groups: dict[tuple[int, str, str, int, str], list[Record]] = {}
    for record in store.query(workload=workload.key):
        distance = _distance(record, setting)
        if distance is not None:
            origin = (record.target, record.hardware, record.threads, record.tool_version)
            groups.setdefault((distance, *origin), []).append(record)
    trusted = {each.trace for each in records_of(store, setting, workload.key)}
    seeds: dict[str, Candidate] = {}
    for _, records in sorted(groups.items(), key=lambda item: item[0]):
        for record in rank(records)[:_OF_EACH]:
            if record.trace not in trusted:
                seeds.setdefault(record.trace, Candidate(record.trace, "", record.decisions))
    return tuple(seeds.values())[:count]


def best_of_alike(
    store: RecordStore,
    setting: SessionSetting,
    workload: Workload,
    alike: Sequence[str],
    count: int,
) -> tuple[Candidate, ...]:
    """The best schedules of other workloads, given by their keys, that this one can have, too."""
    state = state_of(workload)
    bests = [top_of(store, setting, key, 1) for key in alike if key != workload.key]
    traces = {best[0].trace: best[0].decisions for best in bests if best}
    seeds = [
        Candidate(trace, "", decisions)
        for trace, decisions in traces.items()
        if is_replayable(state, trace)
    ]
    return tuple(seeds[:count])


def is_replayable(state: ScheduleState, trace: str) -> bool:
    """Whether this version can replay a trace from a state."""
    try:
        replay(state, parse_trace(trace))
    except TensorwrightError:
        return False
    return True


def _distance(record: Record, setting: SessionSetting) -> int | None:
    """0 for another version here, 1 for other threads, 2 for a similar machine; None: no seed."""
    if record.status is not Status.OK:
        return None
    is_here = record.hardware == setting.hardware and record.target == setting.target.key
    if is_here and record.threads == setting.threads:
        return None if is_current(record) else 0
    if is_here:
        return 1
    is_alike = kind_of(record.hardware) == kind_of(setting.hardware)
    return 2 if is_alike or record.target == setting.target.key else None


def kind_of(hardware: str) -> tuple[str, str]:
    """Architecture and widest instruction set of a fingerprint, "x86_64-2c-avx512f-1a2b3c4d"."""
    parts = hardware.split("-")
    return (parts[0], parts[2]) if len(parts) == 4 else (hardware, "")
