"""Farms without other machines: processes of this machine, or the caller alone.

with LocalFarm(2) as farm: farm.run([Unit("farm.echo", Payload(1))])    [Done(Payload(1))]
CALLER.run([Unit("farm.echo", Payload(1))])            the same, without a process
answers(farm, units)            payloads as units end; a unit whose worker ended is done again
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence

from tensorwright.base import InternalError, MachineError, TensorwrightError
from tensorwright.farm.farm import Farm, FarmWorker
from tensorwright.farm.functions import call_named
from tensorwright.farm.unit import FarmOutcome, Lost, Payload, Unit
from tensorwright.processes import Died, Done, Job, Raised, WorkerPool, never

_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_TRIES = 3


class LocalFarm(Farm):
    """Processes of this machine, each with one thread."""

    shares_files = True

    def __init__(self, processes: int) -> None:
        self._count = processes
        self._pool = WorkerPool(processes, variables=_ONE_THREAD)

    def results(
        self,
        units: Iterable[Unit],
        should_stop: Callable[[], bool] = never,
        ahead: int = 0,
    ) -> Iterator[tuple[int, FarmOutcome]]:
        """As `Farm.results`; one unit is taken ahead for each process."""
        jobs = (Job(call_named, (unit.function, unit.payload), unit.limit_s) for unit in units)
        yield from self._pool.results(jobs, should_stop=should_stop)

    def workers(self) -> tuple[FarmWorker, ...]:
        """As `Farm.workers`: one, with a slot for each process."""
        return (FarmWorker("processes", platform.node(), self._count),)

    def close(self) -> None:
        """As `Farm.close`."""
        self._pool.close()


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
