"""What a client asks of a farm: the base class of all farms, and the records of their workers.

`dask/client.py` sends units to the scheduler of a Dask cluster.  `stdio.py` sends them through
pipes to processes, over ssh or on this machine.
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
    target         of the programs that run there: `base.to_data` of it, as JSON
    threads        of its processor that a program uses by default
    clock_mhz      at the moment; 0 if the system does not tell it
    celsius        its temperature; 0 if the system does not tell it
    load           processors that other programs use
    set_aside      why it does not measure; "" if it does
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
    slots        units that it does at once     device   what it measures on; None if it only builds
    seen_s       seconds since its last message  queue   units that it has
    address      of its process; it changes when the worker is started again
    """

    name: str
    host: str
    slots: int
    device: Device | None = None
    seen_s: float = 0.0
    queue: int = 0
    address: str = ""


def can_do(worker: FarmWorker, kind: str, names: tuple[str, ...]) -> bool:
    """Whether a worker has a device of the kind, and is one of the named workers."""
    if names and worker.name not in names:
        return False
    return not kind or (worker.device is not None and worker.device.kind == kind)


class Farm(ABC):
    """Workers that do units; use it in a `with` block, from one thread.

    A unit goes to any worker that has what it needs, in any order.  If its worker goes away,
    another one gets it.  The client and the scheduler may be killed, too: the same units, submitted
    again, get the same answers.
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
        """Do the units; yields the index and the outcome of each as it ends, never `Stopped`.

        ahead   the number of units that are taken from `units` before the first one is done; if 0,
                twice as many as all workers do at once

        Once `should_stop` is true, no further outcome comes.  Units under way are cancelled then,
        and when the caller leaves the iterator.
        Raises:  MachineError if no worker has the device that a unit needs, or no worker is left.
        """

    @abstractmethod
    def workers(self) -> tuple[FarmWorker, ...]:
        """The workers that are connected now, by name."""

    @abstractmethod
    def close(self) -> None:
        """Cancel the units under way and release the workers.  Closing twice does no harm."""

    def run(
        self, units: Sequence[Unit], should_stop: Callable[[], bool] = never
    ) -> list[FarmOutcome]:
        """Do the units; their outcomes in order, `Stopped` for units that were not done."""
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
    """Raise the error with which a worker refuses the client: it has another version."""
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
