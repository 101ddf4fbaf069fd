"""The unit of work of a farm: a named function and plain data, and how it may end.

A unit is to a farm what `processes.Job` is to a `WorkerPool`.  It travels as JSON and bytes, so its
function is a name (`functions.py`), and its argument and result are payloads.  Outcomes are those
of jobs, with one more: the machine that had the unit went away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorwright.processes import Outcome


@dataclass(frozen=True, slots=True)
class Payload:
    """What a function of a farm gets and gives.

    data    what JSON can say: texts, numbers, lists, dicts with texts as keys
    blobs   what it cannot: object code, arrays, sorted runs of fingerprints
    """

    data: Any = None
    blobs: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """A call of a named function.  It must be idempotent: it may be done twice, and counts once.

    function   a name of `FUNCTIONS`
    payload    its argument
    limit_s    the longest that it may take, from its beginning on the worker
    device     the kind of device that it needs, as `Device.kind` says; any worker does it where ""
    workers    the names of those that may do it; () for any
    turn       tells apart units that are otherwise equal, where each of them is to be done
    """

    function: str
    payload: Payload = Payload()
    limit_s: float = 600.0
    device: str = ""
    workers: tuple[str, ...] = ()
    turn: str = ""

    @property
    def needs(self) -> tuple[str, tuple[str, ...]]:
        """The device, and the workers that may do it."""
        return self.device, self.workers


@dataclass(frozen=True, slots=True)
class Lost:
    """The machine that had the unit went away, and so did the others that got it then."""

    cause: str

    def __str__(self) -> str:
        return self.cause


FarmOutcome: TypeAlias = Outcome | Lost
"""Done (its value is a Payload), Raised, Died, TimedOut, Stopped or Lost."""
