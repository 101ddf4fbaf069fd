"""Read the parts of log lines; errors name the file and the line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensorwright.base import RecordError
from tensorwright.records.record import record_error

FAILURES = {
    1: "the program could not be made",
    2: "the host's part did not compile",
    3: "the device's part did not compile",
    4: "it failed while it ran",
    5: "it gave a wrong answer",
    6: "building it took too long",
    7: "running it took too long",
    8: "it failed",
}
"""The meaning of the error numbers of AutoTVM and Ansor; 0 is not an error."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a measurement of another tuner.

    costs_s   seconds of each repeat     all_cost_s   seconds of the whole measurement
    error_no  a key of `FAILURES`, or 0  timestamp    seconds since 1970
    """

    costs_s: tuple[float, ...]
    error_no: int
    all_cost_s: float
    timestamp: float

    @property
    def latency_s(self) -> float:
        """The mean of the repeats; infinite if it failed."""
        return math.inf if self.error_no else math.fsum(self.costs_s) / len(self.costs_s)

    @property
    def failure(self) -> str:
        """Why there is no time, or ""."""
        return FAILURES.get(self.error_no, "it failed") if self.error_no else ""

    def to_json(self) -> list[object]:
        """The result in the form of a line."""
        return [list(self.costs_s), self.error_no, self.all_cost_s, self.timestamp]


class LineReader:
    """Reads the parts of a parsed line; its errors name the file and the line."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fault(self, reason: str, *remedy: str) -> RecordError:
        """The error that the line has this fault; the remedy may be left out."""
        return record_error(self.where, reason, *remedy)

    def items(self, value: object, count: int | None, what: str) -> list[object]:
        """A list, of `count` items if that is given."""
        if not isinstance(value, list) or (count is not None and len(value) != count):
            wanted = "a list" if count is None else f"a list of {count} items"
            raise self.fault(f"{what} must be {wanted}")
        return value

    def text(self, value: object, what: str) -> str:
        """A text."""
        if not isinstance(value, str):
            raise self.fault(f"{what} must be text")
        return value

    def whole(self, value: object, what: str) -> int:
        """A whole number."""
        if type(value) is not int:
            raise self.fault(f"{what} must be a whole number")
        return value

    def number(self, value: object, what: str) -> float:
        """A number; whole numbers stay whole, so that they are written in the same form."""
        if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
            raise self.fault(f"{what} must be a number")
        return value  # type: ignore[return-value]

    def result(self, value: object) -> Result:
        """[[costs], error_no, all_cost, timestamp]."""
        costs, error_no, all_cost, timestamp = self.items(value, 4, "the result")
        times = [self.number(cost, "a cost") for cost in self.items(costs, None, "the costs")]
        number = self.whole(error_no, "the error number")
        if number == 0 and (not times or min(times) <= 0):
            raise self.fault("a line without an error needs costs above 0")
        all_cost_s = self.number(all_cost, "the time of measuring")
        return Result(tuple(times), number, all_cost_s, self.number(timestamp, "the timestamp"))
