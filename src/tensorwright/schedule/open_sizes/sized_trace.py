"""Schedules of workloads with named sizes: a trace for each range of the sizes.

    for sequence = 1:
      vectorize(y, j)
    for 2 <= sequence <= 22, batch = 1:
      split(y, i, [4], shift)
      vectorize(y, j)
    for all sizes:
      split(y, i, [8], shift)

The first trace whose ranges hold the sizes runs.  The last one holds for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.base import ScheduleError, UsageError
from tensorwright.schedule.trace import Trace, format_trace, parse_trace

_ALL = "all sizes"
_RANGE = re.compile(r"(?:(\d+) <= )?([A-Za-z_]\w*)(?: (<=|=) (\d+))?$")


@dataclass(frozen=True, slots=True)
class SizeRange:
    """The range of a named size, both ends included; without an upper bound, `most` is None."""

    name: str
    least: int
    most: int | None

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the size is in the range."""
        number = values[self.name]
        return self.least <= number and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.name} = {self.least}"
        return f"{self.least} <= {self.name}" + (f" <= {self.most}" if self.most else "")


@dataclass(frozen=True, slots=True)
class SizedTrace:
    """A trace, and the ranges of sizes for which it was chosen; without ranges, for all sizes."""

    ranges: tuple[SizeRange, ...]
    trace: Trace

    @property
    def label(self) -> str:
        """The ranges as text."""
        return ", ".join(map(str, self.ranges)) or _ALL

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether all sizes are in their ranges."""
        return all(each.holds(values) for each in self.ranges)


@dataclass(frozen=True, slots=True)
class OpenSchedule:
    """Traces for ranges of sizes: the first whose ranges hold runs.

    Raises:  ScheduleError where the last one does not hold for all sizes.
    """

    variants: tuple[SizedTrace, ...]

    def __post_init__(self) -> None:
        if not self.variants or self.variants[-1].ranges:
            raise ScheduleError(
                stage="schedule",
                step="for all sizes:",
                where="a schedule for ranges of sizes",
                reason="its last trace does not hold for all sizes",
                remedy="end it with a trace without ranges",
            )

    def at(self, values: Mapping[str, int]) -> Trace:
        """The trace that runs for some values of the sizes."""
        return next(each.trace for each in self.variants if each.holds(values))


Schedule: TypeAlias = Trace | OpenSchedule
"""A trace, or a trace for each range of the sizes."""


def trace_at(schedule: Schedule, values: Mapping[str, int]) -> Trace:
    """The trace of a schedule that runs for some values of the sizes."""
    return schedule.at(values) if isinstance(schedule, OpenSchedule) else schedule


def steps_of(schedule: Schedule) -> Trace:
    """The steps of all traces of a schedule."""
    if not isinstance(schedule, OpenSchedule):
        return schedule
    return tuple(step for each in schedule.variants for step in each.trace)


def format_schedule(schedule: Schedule) -> str:
    """A trace as `format_trace` writes it, or the traces under their ranges."""
    if not isinstance(schedule, OpenSchedule):
        return format_trace(schedule)
    lines: list[str] = []
    for each in schedule.variants:
        lines.append(f"for {each.label}:")
        lines += [f"  {step}" for step in each.trace]
    return "\n".join(lines)


def parse_schedule(text: str) -> Schedule:
    """The inverse of `format_schedule`.

    Raises:  UsageError naming the line that does not parse; ScheduleError as `OpenSchedule`.
    """
    if not text.lstrip().startswith("for "):
        return parse_trace(text)
    heads: list[str] = []
    bodies: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("for "):
            heads.append(line)
            bodies.append([])
        else:
            bodies[-1].append(line)
    return OpenSchedule(
        tuple(
            SizedTrace(_parse_ranges(head), parse_trace("\n".join(body)))
            for head, body in zip(heads, bodies, strict=True)
        )
    )


def _parse_ranges(line: str) -> tuple[SizeRange, ...]:
    """The ranges of `for 2 <= n <= 8, m = 1:`."""
    text = line.strip().removeprefix("for ").removesuffix(":")
    if text == _ALL:
        return ()
    return tuple(_parse_range(part.strip(), line) for part in text.split(","))


def _parse_range(text: str, line: str) -> SizeRange:
    match = _RANGE.match(text)
    if match is None or not (match[1] or match[4]):
        raise UsageError(
            stage="schedule",
            where=f"line {line.strip()!r}",
            reason=f"{text!r} is not a range of a size",
            remedy="n = 1, 2 <= n or 2 <= n <= 8",
        )
    low, name, sign, high = match.groups()
    if sign == "=":
        return SizeRange(name, int(high), int(high))
    return SizeRange(name, int(low or 1), int(high) if high else None)
