"""The unit of work of a farm: a named function and plain data, and how it may end.

A unit is to a farm what `processes.Job` is to a `WorkerPool`.  It travels as JSON and bytes, so its
function is a name (`functions.py`), and its argument and result are payloads.  It has the outcomes
of jobs and one more: the machine that had the unit went away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorwright.processes import Outcome


@dataclass(frozen=True, slots=True)
class Payload:
    """The argument or the result of a function of a farm.

    data    values that JSON has: texts, numbers, lists, dicts with texts as keys
    blobs   bytes: object code, arrays, sorted runs of fingerprints
    """

    data: Any = None
    blobs: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """A call of a named function.  It must be idempotent, because it may be done twice.

    function   a name of `FUNCTIONS`
    payload    its argument
    limit_s    most seconds that it may take, from its start on the worker
    device     the kind of device that it needs (`Device.kind`); "" for any
    workers    the names of those that may do it; () for any
    turn       tells apart units that are otherwise equal, if each of them must be done
    """

    function: str
    payload: Payload = Payload()
    limit_s: float = 600.0
    device: str = ""
    workers: tuple[str, ...] = ()
    turn: str = ""

    @property
    def needs(self) -> tuple[str, tuple[str, ...]]:
        """The kind of device, and the workers that may do it."""
        return self.device, self.workers


@dataclass(frozen=True, slots=True)
class Lost:
    """The machine that had the unit went away, and so did those that got it afterwards."""

    cause: str

    def __str__(self) -> str:
        return self.cause


FarmOutcome: TypeAlias = Outcome | Lost
"""Done (its value is a Payload), Raised, Died, TimedOut, Stopped or Lost."""
