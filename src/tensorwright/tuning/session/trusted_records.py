"""The records that a session trusts: of its setting, by this version of the compiler."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.records import Record, RecordStore, Status, is_current, rank
from tensorwright.tuning.session.arguments import SessionSetting


def records_of(store: RecordStore, setting: SessionSetting, workload: str) -> tuple[Record, ...]:
    """All records of a workload that the session may learn from."""
    records = store.query(**setting.filters(workload))
    return tuple(record for record in records if is_current(record))


def top_of(
    store: RecordStore, setting: SessionSetting, workload: str, count: int
) -> tuple[Record, ...]:
    """The fastest of them."""
    top = store.top(count, **setting.filters(workload))
    if all(is_current(record) for record in top):
        return top
    return rank(records_of(store, setting, workload))[:count]


def standing(records: Sequence[Record], trace: str) -> Record | None:
    """The newest record of a trace, if that one is good."""
    own = [record for record in records if record.trace == trace]
    newest = max(own, key=lambda record: record.when, default=None)
    return newest if newest is not None and newest.status is Status.OK else None
