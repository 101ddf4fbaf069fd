"""A farm that is a Dask cluster, as its client sees it.

The scheduler and the workers may be killed at any moment.  A new scheduler remembers nothing, and
Dask gives up a unit whose worker died twice.  So the client keeps the units under way, and submits
them again until each has an answer.  It takes one answer for a unit and ignores later ones.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dask._expr import LLGExpr
from dask._task_spec import Task, TaskRef
from distributed import Client

from tensorwright.base import MachineError
from tensorwright.farm.connecting import NO_SECURITY, FarmSecurity
from tensorwright.farm.dask.worker import (
    RESOURCE,
    RefusedPickle,
    dask_security,
    guarded,
    no_scheduler,
    run_unit,
)
from tensorwright.farm.farm import Device, Farm, FarmOutcome, FarmWorker, Lost, Unit, can_do
from tensorwright.farm.serving import digest_of, pack_request, unpack_answer
from tensorwright.processes import never

_CONNECT_S = 10.0
_MOST_LOSSES = 8
_LOOK_S = 3.0
_PINNED_S = 20.0
_LEAST_PAUSE_S = 0.002
_MOST_PAUSE_S = 0.05
_PAUSE_PER_UNIT_S = 4e-5
_MOST_BYTES = 4 << 20  # of requests in one message; a larger request is scattered
_SCATTER_S = 2.0


@dataclass(slots=True)
class _Sent:
    """A unit under way: how often it was lost, and its future.

    indices     its own, and those of equal units, which are done once
    data        the future of a large request; Dask forgets the request without it
    addresses   of the workers that may do it.  Dask forgets their names, and a worker that is
                started again has another address
    """

    key: str
    indices: list[int]
    unit: Unit
    request: bytes
    future: Any = None
    data: Any = None
    losses: int = 0
    addresses: frozenset[str] = frozenset()

    @property
    def has_ended(self) -> bool:
        return self.future is not None and self.future.status != "pending"


@dataclass(slots=True)
class _Absent:
    """Since when no worker can do some units, and when to look again; mutable."""

    look_at: float = 0.0
    since: dict[str, float] = field(default_factory=dict)


class DaskFarm(Farm):
    """Workers of a Dask cluster.

    address   of the scheduler        security  keys
    waits_s   seconds to wait for a scheduler or a device that has gone away
    Raises:  MachineError if no scheduler answers; the UsageError of `dask_security`.
    """

    def __init__(
        self, address: str, security: FarmSecurity = NO_SECURITY, waits_s: float = 600.0
    ) -> None:
        self._address = address
        self._security = dask_security(address, security)
        self._key = security.key
        self._waits_s = waits_s
        self._connection = 0
        self._there: tuple[FarmWorker, ...] = ()
        self._owned = ExitStack()
        self._owned.enter_context(guarded())
        try:
            self._client = self._connect(_CONNECT_S)
        except BaseException:
            self._owned.close()
            raise

    def results(
        self,
        units: Iterable[Unit],
        should_stop: Callable[[], bool] = never,
        ahead: int = 0,
    ) -> Iterator[tuple[int, FarmOutcome]]:
        """As `Farm.results`."""
        waiting = enumerate(units)
        sent: dict[str, _Sent] = {}
        most = ahead or max(2, 2 * self.slots)
        connection = self._connection
        absent = _Absent()
        try:
            while not should_stop():
                self._submit(self._drawn(waiting, sent, most))
                if not sent:
                    return
                self._stay_connected()
                if connection != self._connection:
                    connection = self._connection
                    self._submit(sent.values())
                for key in self._unserved(sent, absent):
                    one = sent.pop(key)
                    self._cancel([one.future])
                    for index in one.indices:
                        yield index, Lost("the only worker that may do it went away")
                ended = [one for one in sent.values() if one.has_ended]
                if not ended:
                    time.sleep(_pause_s(len(sent)))
                for one, outcome in self._outcomes(ended):
                    del sent[one.key]
                    for index in one.indices:
                        yield index, outcome
        finally:
            self._cancel(one.future for one in sent.values() if one.future is not None)

    def workers(self) -> tuple[FarmWorker, ...]:
        """As `Farm.workers`; () while there is no scheduler."""
        now = time.time()
        described = self._client.scheduler_info(n_workers=-1).get("workers", {})
        workers = (_worker(address, each, now) for address, each in described.items())
        self._there = tuple(sorted(workers, key=lambda one: one.name))
        return self._there

    def close(self) -> None:
        """As `Farm.close`."""
        self._client.close(timeout=2)
        self._owned.close()

    def _connect(self, limit_s: float) -> Client:
        try:
            _check_speaks(self._address, limit_s)
            return Client(
                self._address, security=self._security, timeout=limit_s, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            raise no_scheduler(self._address, error) from error

    def _drawn(
        self, waiting: Iterator[tuple[int, Unit]], sent: dict[str, _Sent], most: int
    ) -> list[_Sent]:
        """Take units until so many are under way; adds the new ones to `sent` and returns them."""
        drawn = []
        while len(sent) < most and (following := next(waiting, None)) is not None:
            index, unit = following
            request = pack_request(unit, self._key)
            key = f"tensorwright-{digest_of(request).hex()}"
            if key in sent:
                sent[key].indices.append(index)
                continue
            sent[key] = _Sent(key, [index], unit, request)
            drawn.append(sent[key])
        return drawn

    def _submit(self, units: Iterable[_Sent]) -> None:
        """Hand units to the scheduler, many in a message: a message costs as much as a unit.

        If the scheduler has gone, they are submitted again after the next connection.
        """
        alike: dict[tuple[str, tuple[str, ...]], list[_Sent]] = defaultdict(list)
        for one in units:
            alike[one.unit.device, one.unit.workers].append(one)
        with suppress(OSError, RuntimeError):
            for (device, workers), those in alike.items():
                for part in _messages(those):
                    tasks = {one.key: self._task(one) for one in part}
                    futures = self._client.get(
                        LLGExpr(tasks, _determ_token=secrets.token_hex(16)),
                        list(tasks),
                        workers=list(workers) or None,
                        resources={f"{RESOURCE}{device}": 1} if device else None,
                        sync=False,
                        fifo_timeout="100ms",
                    )
                    addresses = self._addresses_of(workers)
                    for one, future in zip(part, futures, strict=True):
                        one.future, one.addresses = future, addresses
            return
        self._client.close(timeout=1)

    def _task(self, one: _Sent) -> Task:
        """The call of a unit.  A large request goes to a worker before it, if one is there.

        Dask's scheduler reads and copies a call, but not what is scattered.  If the worker goes
        away, the unit is lost and submitted again.
        """
        if len(one.request) > _MOST_BYTES:
            name = f"{one.key}-{secrets.token_hex(8)}"
            with suppress(OSError, RuntimeError, RefusedPickle):
                one.data = self._client.scatter({name: one.request}, timeout=_SCATTER_S)[name]
                return Task(one.key, run_unit, TaskRef(name))
        return Task(one.key, run_unit, one.request)

    def _addresses_of(self, names: tuple[str, ...]) -> frozenset[str]:
        """The addresses of the workers of these names, when they were last looked for."""
        return frozenset(worker.address for worker in self._there if worker.name in names)

    def _submit_moved(self, sent: dict[str, _Sent]) -> None:
        """Submit units again if all of their workers have been started again meanwhile."""
        names = {one.unit.workers for one in sent.values() if one.unit.workers}
        now_at = {each: self._addresses_of(each) for each in names}
        moved = [
            one
            for one in sent.values()
            if now_at.get(one.unit.workers) and not now_at[one.unit.workers] & one.addresses
        ]
        self._cancel([one.future for one in moved if one.future is not None])
        self._submit(moved)

    def _outcomes(self, ended: Sequence[_Sent]) -> Iterator[tuple[_Sent, FarmOutcome]]:
        """How units ended.  Lost units are submitted again, and their outcomes come later."""
        answers = self._gather({one.key: one.future for one in ended})
        again = []
        for one in ended:
            answer = answers.get(one.key)
            if isinstance(answer, bytes):
                yield one, unpack_answer(answer, one.request, self._key)
                continue
            if one.future.status == "error":
                one.losses += 1  # Dask gives up a unit whose worker died twice
            if one.losses > _MOST_LOSSES:
                yield one, Lost(f"{2 * one.losses} workers went away while they had it")
            else:
                again.append(one)
        self._cancel([one.future for one in again])
        self._submit(again)

    def _gather(self, futures: dict[str, Any]) -> dict[str, Any]:
        done = {key: future for key, future in futures.items() if future.status == "finished"}
        try:
            answers: dict[str, Any] = self._client.gather(done, errors="skip") if done else {}
        except Exception:  # noqa: BLE001 - Dask raises any kind of error if the answer is gone
            return {}
        return answers

    def _stay_connected(self) -> None:
        """Connect again if the scheduler went away; `results` then submits its units again.

        Raises:  MachineError if no scheduler comes back.
        """
        if self._client.status in ("running", "connecting"):
            return
        deadline = time.monotonic() + self._waits_s
        waits = f"waiting {self._waits_s:.0f} s for it to come back"
        warnings.warn(f"the scheduler at {self._address} went away; {waits}", stacklevel=2)
        self._client.close(timeout=1)
        while True:
            try:
                self._client = self._connect(_CONNECT_S)
            except MachineError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1.0)
                continue
            self._connection += 1
            return

    def _unserved(self, sent: dict[str, _Sent], absent: _Absent) -> list[str]:
        """The units whose worker has been gone for a while; the workers are read every few seconds.

        Raises:  MachineError if no worker has had the device of a unit for long.
        """
        now = time.monotonic()
        if now < absent.look_at:
            return []
        absent.look_at = now + _LOOK_S
        there = self.workers()
        self._submit_moved(sent)
        for key in [each for each in absent.since if each not in sent]:
            del absent.since[key]
        needs = {one.unit.needs for one in sent.values()}
        served = {each for each in needs if any(can_do(worker, *each) for worker in there)}
        for key, one in sent.items():
            if one.unit.needs in served:
                absent.since.pop(key, None)
            else:
                absent.since.setdefault(key, now)
        gone = []
        for key, since in absent.since.items():
            unit = sent[key].unit
            if unit.workers and now - since > _PINNED_S:
                gone.append(key)
            elif now - since > self._waits_s:
                raise MachineError(
                    stage="farm",
                    where=f"unit {unit.function}",
                    reason=f"for {self._waits_s:.0f} s no worker has had {unit.device or 'time'}",
                    remedy="start a worker with such a device, then the same command again",
                )
        return gone

    def _cancel(self, futures: Iterable[Any]) -> None:
        given_up = list(futures)
        with suppress(OSError, TimeoutError, RuntimeError):  # the scheduler may have gone, too
            if given_up and self._client.status == "running":
                self._client.cancel(given_up, force=True)
            for future in given_up:
                future.release()


def _messages(units: Sequence[_Sent]) -> Iterator[list[_Sent]]:
    """Units in parts, each small enough for a message."""
    part: list[_Sent] = []
    size = 0
    for one in units:
        if part and size + len(one.request) > _MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(one)
        size += len(one.request)
    if part:
        yield part


def _check_speaks(address: str, limit_s: float) -> None:
    """Check that what listens at an address speaks first, as a scheduler does: Dask waits for that
    without a limit.  Where nothing listens yet, Dask tries for a while.

    Raises:  TimeoutError for a program of another kind.
    """
    parts = urlsplit(address)
    if parts.scheme == "tls" or parts.port is None:
        return
    try:
        probe = socket.create_connection((parts.hostname, parts.port), limit_s)
    except OSError:
        return
    with probe:
        probe.recv(1)


def _pause_s(count: int) -> float:
    """Seconds until the units are looked through again, so that looking costs a few percent."""
    return min(_MOST_PAUSE_S, max(_LEAST_PAUSE_S, _PAUSE_PER_UNIT_S * count))


def _worker(address: str, described: dict[str, Any], now: float) -> FarmWorker:
    metrics = described.get("metrics", {})
    device = (metrics.get("tensorwright") or {}).get("device")
    return FarmWorker(
        str(described["name"]),
        described["host"],
        described["nthreads"],
        None if device is None else Device(**json.loads(device)),
        max(0.0, now - described.get("last_seen", now)),
        sum(metrics.get("task_counts", {}).values()),
        address,
    )
