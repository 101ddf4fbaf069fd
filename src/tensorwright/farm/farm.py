"""What a client asks of a farm: the protocol that its implementations fulfil, and their workers.

A farm does units somewhere else.  `dask/client.py` sends them to the scheduler of a Dask cluster,
`stdio.py` to processes at the other end of pipes, over ssh or here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tensorwright.farm.unit import FarmOutcome, Unit
from tensorwright.processes import Raised, Stopped, never


@dataclass(frozen=True, slots=True)
class Device:
    """What a worker measures on.

    kind           equal for devices on which programs are equally fast
    hardware       the fingerprint of the machine
    target         the programs that run there: `base.to_data` of a target, as JSON
    threads        of its processor, as a program uses them where nobody says otherwise
    clock_mhz      at the moment; 0 where the system does not tell      celsius   likewise
    load           processors that others use
    set_aside      why it measures nothing; "" if it does
    """

    kind: str
    hardware: str
    target: str
    threads: int = 1
    clock_mhz: float = 0.0
    celsius: float = 0.0
    load: float = 0.0
    set_aside: str = ""


@dataclass(frozen=True, slots=True)
class FarmWorker:
    """A worker as the farm sees it.

    name         unique in the farm             host     where it runs
    slots        units that it does at once     device   what it measures on, if it does
    seen_s       seconds since it was heard of  queue    units that it has
    address      of its process; another one after it was started again
    """

    name: str
    host: str
    slots: int
    device: Device | None = None
    seen_s: float = 0.0
    queue: int = 0
    address: str = ""


def can_do(worker: FarmWorker, kind: str, names: tuple[str, ...]) -> bool:
    """Whether a worker may get a unit that needs a device of a kind, and one of some workers."""
    if names and worker.name not in names:
        return False
    return not kind or (worker.device is not None and worker.device.kind == kind)


class Farm(ABC):
    """Workers that do units; use it in a `with` block.  Not for several threads.

    Units may come in any order to any worker that has what they need.  A unit whose worker goes
    away is given to another one; the client and the machine between may be killed, too: whoever
    submits the same units again gets the same answers.
    """

    shares_files: ClassVar[bool] = False
    """Whether all workers read and write the files of the client, under the same names."""

    @abstractmethod
    def results(
        self,
        units: Iterable[Unit],
        should_stop: Callable[[], bool] = never,
        ahead: int = 0,
    ) -> Iterator[tuple[int, FarmOutcome]]:
        """Do the units; yields the index and the outcome of each as they come, never `Stopped`.

        ahead   so many units are taken from `units` before the first of them is done; twice what
                all workers do at once where 0

        After `should_stop` turns true no outcome comes.  What is then under way, or when the caller
        leaves the iterator, is cancelled.
        Raises:  MachineError where no worker has the device that a unit needs, or none is left.
        """

    @abstractmethod
    def workers(self) -> tuple[FarmWorker, ...]:
        """The workers that are there now, by name."""

    @abstractmethod
    def close(self) -> None:
        """Cancel what is under way and let go of the workers.  Closing twice does no harm."""

    def run(
        self, units: Sequence[Unit], should_stop: Callable[[], bool] = never
    ) -> list[FarmOutcome]:
        """Do the units; the outcomes in their order, `Stopped` for those that were not done."""
        outcomes: list[FarmOutcome] = [Stopped() for _ in units]
        for index, outcome in self.results(units, should_stop):
            outcomes[index] = outcome
        return outcomes

    @property
    def slots(self) -> int:
        """How many units all workers together do at once."""
        return sum(worker.slots for worker in self.workers())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def raise_if_refused(outcome: FarmOutcome) -> None:
    """Raise what a worker says of the farm itself: that it is of another version."""
    if isinstance(outcome, Raised) and outcome.error is not None and outcome.error.stage == "farm":
        raise outcome.error


def value_of(outcome: FarmOutcome) -> Any:
    """The payload of a unit that was done.

    Raises:  the TensorwrightError that it raised; RuntimeError for every other end.
    """
    if isinstance(outcome, Raised) and outcome.error is not None:
        raise outcome.error
    value = getattr(outcome, "value", None)
    if value is None:
        raise RuntimeError(str(outcome))
    return value
