"""Units whose answers a search of rules needs, whatever becomes of their workers.

CALLER.run([Unit("farm.echo", Payload(1))])    [Done(Payload(1))], without a process
answers(farm, units)            payloads as units end; a unit whose worker ended is done again

Progress of long steps, reported from time to time, with the remaining time.

meter = Meter(say, "level 2", total=10.0)
meter.add(4.0)                   some seconds later
say("level 2: 40%, 0:09 left")    at most every five seconds
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from tensorwright.base import InternalError, MachineError, TensorwrightError
from tensorwright.farm import Farm, FarmOutcome, FarmWorker, Lost, Payload, Unit, call_named
from tensorwright.processes import Died, Done, Raised, never

_TRIES = 3


class Caller(Farm):
    """The calling process does the units itself, one after the other, without a limit of time."""

    shares_files = True

    def results(
        self,
        units: Iterable[Unit],
        should_stop: Callable[[], bool] = never,
        ahead: int = 0,
    ) -> Iterator[tuple[int, FarmOutcome]]:
        """As `Farm.results`, but the errors of units are raised."""
        for index, unit in enumerate(units):
            if should_stop():
                return
            yield index, Done(call_named(unit.function, unit.payload))

    def workers(self) -> tuple[FarmWorker, ...]:
        """As `Farm.workers`."""
        return (FarmWorker("caller", platform.node(), 1),)

    def close(self) -> None:
        """Nothing is to be closed."""


CALLER = Caller()


def answers(farm: Farm, units: Iterable[Unit]) -> Iterator[tuple[int, Payload]]:
    """Do units; yields the index and the answer of each as it ends.

    A unit whose worker ended is done again, a few times.
    Raises:  the TensorwrightError that a unit raised; MachineError if a unit ends each worker
             that gets it, or takes too long; InternalError for another exception.
    """
    under_way: dict[int, Unit] = {}

    def noted() -> Iterator[Unit]:
        for index, unit in enumerate(units):
            under_way[index] = unit
            yield unit

    attempt: Iterable[Unit] = noted()
    numbers: Sequence[int] = ()
    for _ in range(_TRIES):
        for at, outcome in farm.results(attempt):
            index = numbers[at] if numbers else at
            if isinstance(outcome, Done):
                del under_way[index]
                yield index, outcome.value
            elif not isinstance(outcome, Died | Lost):
                raise _failure(under_way[index], outcome)
        if not under_way:
            return
        numbers = sorted(under_way)
        attempt = [under_way[index] for index in numbers]
    raise _failure(under_way[numbers[0]], Lost(f"{_TRIES} workers ended while they had it"))


def _failure(unit: Unit, outcome: FarmOutcome) -> TensorwrightError:
    where = f"unit of {unit.function}"
    if isinstance(outcome, Raised):
        error = InternalError(stage="farm", where=where, reason=str(outcome))
        return outcome.error or error
    return MachineError(
        stage="farm",
        where=where,
        reason=f"{outcome}; perhaps there was not enough memory",
        remedy="give the same command again with fewer workers; it continues",
    )


Say = Callable[[str], None]
_INTERVAL_S = 5.0


class Meter:
    """Counts the effort done, and tells the remaining time at the pace so far.

    total   effort of the whole step, in any unit; `done` of it was done in an earlier run
    """

    def __init__(
        self,
        say: Say,
        label: str,
        total: float,
        done: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._label = label
        self._total = max(total, 1e-9)
        self._before = self._done = done
        self._clock = clock
        self._start = self._last = clock()

    def add(self, effort: float) -> None:
        """So much more is done."""
        self._done += effort
        now = self._clock()
        if now - self._last < _INTERVAL_S:
            return
        self._last = now
        pace = (self._done - self._before) / (now - self._start)
        left = (self._total - self._done) / pace if pace > 0 else 0.0
        self._say(f"{self._label}: {self._done / self._total:.0%}, {duration(left)} left")


def duration(time_s: float) -> str:
    """Minutes and seconds, as `m:ss`."""
    minutes, seconds = divmod(round(max(time_s, 0.0)), 60)
    return f"{minutes}:{seconds:02d}"
