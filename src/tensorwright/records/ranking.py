"""The valid records and their order, which are the same in every store.

A trace may have several measurements: a lucky first one, and slower ones when the best traces are
measured again. The newest record of a trace is valid, and the trace counts only if it is OK.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tensorwright.records.record import Record, Status


@dataclass(frozen=True, slots=True)
class Selection:
    """The values that selected records have; None stands for any."""

    workload: str | None = None
    target: str | None = None
    hardware: str | None = None
    threads: int | None = None
    status: Status | None = None

    def matches(self, record: Record) -> bool:
        """Whether the record is selected."""
        return all(wanted is None or getattr(record, name) == wanted for name, wanted in self.items)

    @property
    def items(self) -> tuple[tuple[str, str | int | None], ...]:
        """The name and value of every field."""
        return tuple((name, getattr(self, name)) for name in self.__slots__)


class Setting(NamedTuple):
    """Records compete only with records of the same setting."""

    workload: str
    target: str
    hardware: str
    threads: int


def setting_of(record: Record) -> Setting:
    """The setting of a record."""
    return Setting(record.workload, record.target, record.hardware, record.threads)


def rank(records: Iterable[Record]) -> tuple[Record, ...]:
    """The valid OK records of one setting, the fastest first, ties in the given order."""
    newest: dict[str, Record] = {}
    for record in records:
        standing = newest.get(record.trace)
        if standing is None or record.when >= standing.when:
            newest[record.trace] = record
    order = {record.digest: number for number, record in enumerate(newest.values())}
    good = [record for record in newest.values() if record.status is Status.OK]
    return tuple(sorted(good, key=lambda record: (record.median_s, order[record.digest])))


def find_surplus(
    records: Iterable[Record], keep: int, failures_before: str | None
) -> tuple[Record, ...]:
    """The records that `RecordStore.prune` removes: timed records beyond the best, old failures."""
    settings: dict[Setting, list[Record]] = {}
    for record in records:
        settings.setdefault(setting_of(record), []).append(record)
    surplus = []
    for group in settings.values():
        kept = {record.digest for record in rank(group)[:keep]}
        for record in group:
            if record.status.is_timed:
                is_surplus = record.digest not in kept
            else:
                is_surplus = failures_before is not None and record.when < failures_before
            if is_surplus:
                surplus.append(record)
    return tuple(surplus)
