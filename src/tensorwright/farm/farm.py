"""What a client asks of a farm: the base class of all farms, and the records of their workers.

`dask/client.py` sends units to the scheduler of a Dask cluster.  `stdio.py` sends them through
pipes to processes, over ssh or on this machine.

The unit of work of a farm: a named function and plain data, and how it may end.

A unit is to a farm what `processes.Job` is to a `WorkerPool`.  It travels as JSON and bytes, so its
function is a name (`farm.py`), and its argument and result are payloads.  It has the outcomes
of jobs and one more: the machine that had the unit went away.

The functions that a worker calls: those of this list, and no others.

Each takes a `Payload` and returns one.  A new function is a line here.  A worker imports the module
of a function when a unit names it, so this folder imports no other folder.

A farm without other machines: processes of this one.

with LocalFarm(2) as farm: farm.run([Unit("farm.echo", Payload(1))])    [Done(Payload(1))]
"""

from __future__ import annotations

import importlib
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

from tensorwright.base import UsageError
from tensorwright.processes import Job, Outcome, Raised, Stopped, WorkerPool, never


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


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A function of this package, or of the laboratory.

    name         its name in units
    module       where it is defined           attribute   its name there
    is_isolated  whether a child of the worker calls it, which is killed when the time is over.
                 The worker itself calls the others, which start children of their own; they get
                 a second argument, `should_stop`: whether the client has given the unit up
    """

    name: str
    module: str
    attribute: str
    is_isolated: bool = True

    def load(self) -> Callable[..., Any]:
        """Import it."""
        function: Callable[..., Any] = getattr(importlib.import_module(self.module), self.attribute)
        return function


_ENUMERATE = "tensorwright_lab.rule_generation.enumerate"
_GENERALIZE = "tensorwright_lab.rule_generation.generalize.steps"
_TICK_S = 0.2
_TUNING = "tensorwright.tuning.on_farm.worker_functions"
FUNCTIONS = (
    NamedFunction("farm.echo", "tensorwright.farm.farm", "echo"),
    NamedFunction("farm.wait", "tensorwright.farm.farm", "wait", is_isolated=False),
    NamedFunction("rules.prove", "tensorwright.rewriting.prove.prover", "decided"),
    NamedFunction("rules.keys", f"{_ENUMERATE}.shards", "shard_keys"),
    NamedFunction("rules.words", f"{_ENUMERATE}.shards", "shard_words"),
    NamedFunction("rules.values", f"{_ENUMERATE}.shards", "shard_values"),
    NamedFunction("rules.collisions", f"{_ENUMERATE}.shards", "collisions"),
    NamedFunction(
        "rules.uses", "tensorwright_lab.rule_generation.candidates.subsumption", "listed_uses"
    ),
    NamedFunction("rules.holding", _GENERALIZE, "holding"),
    NamedFunction("rules.widened", _GENERALIZE, "widened_rules"),
    NamedFunction("rules.general", _GENERALIZE, "general_rules"),
    NamedFunction(
        "rules.examine", "tensorwright_lab.rule_generation.selection.examine", "examined"
    ),
    NamedFunction("farm.set_aside", "tensorwright.farm.serving", "set_aside", is_isolated=False),
    NamedFunction("tune.build", _TUNING, "build_candidate", is_isolated=False),
    NamedFunction("tune.measure", _TUNING, "measure_candidates", is_isolated=False),
)


def echo(payload: Payload) -> Payload:
    """Return the payload: for tests, and to time a farm."""
    return payload


def wait(payload: Payload, should_stop: Callable[[], bool]) -> Payload | None:
    """Return the payload after {"seconds"}: a simulated device, which uses no processor time."""
    deadline = time.monotonic() + payload.data["seconds"]
    while (left_s := deadline - time.monotonic()) > 0:
        if should_stop():
            return None
        time.sleep(min(left_s, _TICK_S))
    return payload


def function_named(name: str) -> NamedFunction:
    """The function of this name.

    Raises:  UsageError if the list does not have it.
    """
    for function in FUNCTIONS:
        if function.name == name:
            return function
    raise UsageError(
        stage="farm",
        where=f"function {name}",
        reason="workers have no such function",
        remedy="one of " + ", ".join(each.name for each in FUNCTIONS),
    )


def call_named(name: str, payload: Payload) -> Payload:
    """Call a function by its name: the job of a worker's child."""
    result: Payload = function_named(name).load()(payload)
    return result


_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


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
