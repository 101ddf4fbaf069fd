"""A farm that is a Dask cluster, as its client sees it.

Scheduler and workers may be killed at any moment.  Dask's scheduler remembers nothing, and a unit
whose worker died twice is given up by it; so the units under way are kept here, and submitted again
until they have an answer.  An answer counts once: its unit is forgotten with it.
"""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from distributed import Client

from tensorwright.base import MachineError
from tensorwright.farm.dask.guard import guarded
from tensorwright.farm.dask.running import run_unit
from tensorwright.farm.dask.settings import dask_security
from tensorwright.farm.dask.worker import RESOURCE, no_scheduler
from tensorwright.farm.farm import Device, Farm, FarmWorker, can_do
from tensorwright.farm.messages import pack_request, unpack_answer
from tensorwright.farm.security import NO_SECURITY, FarmSecurity
from tensorwright.farm.unit import FarmOutcome, Lost, Unit
from tensorwright.processes import never

_TICK_S = 0.2
_CONNECT_S = 10.0
_MOST_LOSSES = 8
_LOOK_S = 3.0
_PINNED_S = 20.0

_Done: TypeAlias = "queue.SimpleQueue[Any]"
"""The futures that have ended, of one call of `results`: a caller may make a second one inside."""


@dataclass(slots=True)
class _Sent:
    """A unit under way: how often it was lost, and its future.

    indices   its own, and those of equal units, which are done once
    """

    indices: list[int]
    unit: Unit
    request: bytes
    future: Any = None
    losses: int = 0


@dataclass(slots=True)
class _Absent:
    """Since when units have had no worker that can do them, and when to look again; mutable."""

    look_at: float = 0.0
    since: dict[str, float] = field(default_factory=dict)


class DaskFarm(Farm):
    """Workers of a Dask cluster.

    address   of the scheduler                waits_s   how long a scheduler or a device that has
    security  keys                                      gone away is waited for
    Raises:  MachineError if no scheduler answers; UsageError as `dask_security`.
    """

    def __init__(
        self, address: str, security: FarmSecurity = NO_SECURITY, waits_s: float = 600.0
    ) -> None:
        self._address = address
        self._security = dask_security(address, security)
        self._key = security.key
        self._waits_s = waits_s
        self._connection = 0
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
        done: _Done = queue.SimpleQueue()
        most = ahead or max(2, 2 * self.slots)
        is_all = False
        connection = self._connection
        absent = _Absent()
        try:
            while not should_stop():
                while not is_all and len(sent) < most:
                    index, unit = next(waiting, (0, None))
                    if unit is None:
                        is_all = True
                        break
                    equal = sent.get(_key_of(unit))
                    if equal is not None:
                        equal.indices.append(index)
                        continue
                    sent[_key_of(unit)] = one = _Sent([index], unit, pack_request(unit, self._key))
                    self._submit(one, done)
                if not sent:
                    return
                self._stay_connected()
                if connection != self._connection:
                    connection = self._connection
                    for one in sent.values():
                        self._submit(one, done)
                for key in self._unserved(sent, absent):
                    one = sent.pop(key)
                    self._cancel([one.future])
                    for index in one.indices:
                        yield index, Lost("the worker that was to do it went away")
                for future in _finished(done):
                    ended = sent.get(future.key)
                    if ended is None or ended.future is not future:
                        continue
                    outcome = self._outcome(ended, done)
                    if outcome is not None:
                        del sent[future.key]
                        for index in ended.indices:
                            yield index, outcome
        finally:
            self._cancel(one.future for one in sent.values() if one.future is not None)

    def workers(self) -> tuple[FarmWorker, ...]:
        """As `Farm.workers`."""
        now = time.time()
        described = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return tuple(sorted((_worker(each, now) for each in described), key=lambda one: one.name))

    def close(self) -> None:
        """As `Farm.close`."""
        self._client.close(timeout=2)
        self._owned.close()

    def _connect(self, limit_s: float) -> Client:
        try:
            return Client(
                self._address, security=self._security, timeout=limit_s, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            raise no_scheduler(self._address, error) from error

    def _submit(self, one: _Sent, done: _Done) -> None:
        """Hand a unit to the scheduler; where that has gone, all are, after the next connection."""
        unit = one.unit
        try:
            one.future = self._client.submit(
                run_unit,
                one.request,
                key=_key_of(unit),
                resources={f"{RESOURCE}{unit.device}": 1} if unit.device else None,
                workers=list(unit.workers) or None,
                pure=True,
            )
            one.future.add_done_callback(done.put)
        except (OSError, RuntimeError):
            self._client.close(timeout=1)

    def _outcome(self, one: _Sent, done: _Done) -> FarmOutcome | None:
        """How a unit ended; None where it was lost and is submitted again."""
        future, answer = one.future, None
        if future is not None and future.status == "finished":
            answer = self._gather(future)
        if answer is not None:
            return unpack_answer(answer, one.request, self._key)
        if future is not None and future.status == "error":
            one.losses += 1  # Dask gives up a unit whose worker died twice
        if one.losses > _MOST_LOSSES:
            return Lost(f"{2 * one.losses} workers went away while they had it")
        if future is not None:
            self._cancel([future])
        self._submit(one, done)
        return None

    def _gather(self, future: Any) -> bytes | None:
        try:
            answer = self._client.gather(future, errors="raise")
        except Exception:  # noqa: BLE001 - Dask raises what it likes where the answer went away
            return None
        return answer if isinstance(answer, bytes) else None

    def _stay_connected(self) -> None:
        """Connect again where the scheduler went away: who has units under way submits them again.

        Raises:  MachineError if no scheduler comes back.
        """
        if self._client.status in ("running", "connecting"):
            return
        deadline = time.monotonic() + self._waits_s
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
        """The units for a worker that went away a while ago.  Looks every few seconds.

        Raises:  MachineError where no worker has had the device of a unit for long.
        """
        now = time.monotonic()
        if now < absent.look_at:
            return []
        absent.look_at = now + _LOOK_S
        there = self.workers()
        for key in [each for each in absent.since if each not in sent]:
            del absent.since[key]
        for key, one in sent.items():
            if any(can_do(worker, one.unit) for worker in there):
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
                    remedy="start a worker with such a device, and the same command",
                )
        return gone

    def _cancel(self, futures: Iterable[Any]) -> None:
        given_up = list(futures)
        with suppress(OSError, TimeoutError, RuntimeError):  # the scheduler may have gone, too
            if given_up and self._client.status == "running":
                self._client.cancel(given_up, force=True)
            for future in given_up:
                future.release()


def _finished(done: _Done) -> Iterator[Any]:
    """The futures that have ended, after a moment at most."""
    try:
        yield done.get(timeout=_TICK_S)
        while True:
            yield done.get_nowait()
    except queue.Empty:
        return


def _key_of(unit: Unit) -> str:
    return f"tensorwright-{unit.key}"


def _worker(described: dict[str, Any], now: float) -> FarmWorker:
    metrics = described.get("metrics", {})
    device = (metrics.get("tensorwright") or {}).get("device")
    return FarmWorker(
        str(described["name"]),
        described["host"],
        described["nthreads"],
        None if device is None else Device(**json.loads(device)),
        max(0.0, now - described.get("last_seen", now)),
        sum(metrics.get("task_counts", {}).values()),
    )
