"""How two texts of a page of decisions differ; `decide.py` says what stands in one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PART, WORKLOAD = "== ", "-- "
_LOOPS = "kernel("
_CLOSE = 1e-3  # predicted times so near are equal
_HEAD = re.compile(r"-- (?P<name>.*) runs (?P<count>\d+) times: (?P<time>\S+) us by (?P<source>.*)")


@dataclass(frozen=True, slots=True)
class Change:
    """A decision that differs: where, what differs, and its predicted times.

    before_us, after_us   of all runs; None where it cannot be priced, or is not on that side
    """

    where: str
    what: str
    before_us: float | None
    after_us: float | None

    @property
    def loss(self) -> float:
        """The predicted time after over that before; 1 where one is not known."""
        return self.after_us / self.before_us if self.before_us and self.after_us else 1.0


def compare(page: str, before: str, after: str) -> list[Change]:
    """What differs between two texts of a page; predicted times that are close do not."""
    old, new = _parts(before), _parts(after)
    changes: list[Change] = []
    for name in dict.fromkeys((*old, *new)):
        first, second = old.get(name), new.get(name)
        where = f"{page}: {name}"
        if first is None or second is None:
            what = "new" if first is None else "gone"
            changes.append(
                Change(where, what, first and first.total_us, second and second.total_us)
            )
        elif first.grouping != second.grouping:
            changes.append(Change(where, "grouping", first.total_us, second.total_us))
        else:
            changes += _workload_changes(where, first, second)
    return changes


@dataclass(frozen=True, slots=True)
class _Workload:
    """What was decided for a workload: predicted time of all its runs, schedule, perhaps loops."""

    time_us: float | None
    source: str
    schedule: str
    loops: str


@dataclass(frozen=True, slots=True)
class _Part:
    """What was decided for a part; the keys of `workloads` are their names with their keys."""

    grouping: str
    workloads: dict[str, _Workload]

    @property
    def total_us(self) -> float:
        """Of what can be priced."""
        return sum(each.time_us or 0.0 for each in self.workloads.values())


def _workload_changes(where: str, first: _Part, second: _Part) -> Iterator[Change]:
    for name in dict.fromkeys((*first.workloads, *second.workloads)):
        one, other = first.workloads.get(name), second.workloads.get(name)
        if one is None or other is None:
            yield Change(
                f"{where}: {name}", "workload", one and one.time_us, other and other.time_us
            )
            continue
        differs = {
            "source": one.source != other.source,
            "schedule": one.schedule != other.schedule,
            "loops": one.loops != other.loops,
            "time": not _are_close(one.time_us, other.time_us),
        }
        if any(differs.values()):
            what = ", ".join(word for word, is_so in differs.items() if is_so)
            yield Change(f"{where}: {name}", what, one.time_us, other.time_us)


def _are_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _CLOSE * max(one, other)


def _parts(text: str) -> dict[str, _Part]:
    """The parts of a text, by name."""
    parts: dict[str, _Part] = {}
    for block in re.split(rf"^{PART}", text, flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        grouping, *workloads = re.split(rf"^(?={WORKLOAD})", rest, flags=re.MULTILINE)
        parts[name] = _Part(grouping, dict(map(_read_workload, workloads)))
    return parts


def _read_workload(block: str) -> tuple[str, _Workload]:
    head, _, body = block.partition("\n")
    told = _HEAD.fullmatch(head)
    assert told is not None, head
    time = None if told["time"] == "?" else float(told["time"]) * int(told["count"])
    schedule, start, loops = body.partition(_LOOPS)
    return told["name"], _Workload(time, told["source"], schedule, start + loops)


def describe(changes: list[Change]) -> str:
    """A table of changes, the greatest loss first, and what all of them come to."""
    head = f"{'before us':>10} {'after us':>10} {'ratio':>6}  what differs, where"
    ordered = sorted(changes, key=lambda each: (-each.loss, each.where))
    return "\n".join((head, *map(_line, ordered)))


def _line(change: Change) -> str:
    times = f"{_number(change.before_us):>10} {_number(change.after_us):>10}"
    return f"{times} {change.loss:6.3f}  {change.what}, {change.where}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
