"""A farm of a few machines without a scheduler: a process on each, at the other end of a pipe.

`ssh HOST tensorwright worker --stdio` starts such a process; no port is opened, and ssh checks who
may connect.  Messages are those of `serving.py`, each after its length in eight bytes.  The first
message of a worker has its version, its device and how many units it does at once.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import IO

from tensorwright.base import MachineError
from tensorwright.farm import serving
from tensorwright.farm.farm import Device, Farm, FarmOutcome, FarmWorker, Lost, Unit, can_do
from tensorwright.processes import never

_LENGTH = struct.Struct("<Q")
_MOST_BYTES = 1 << 40  # of a message: the first eight letters of a text are a larger number
_TICK_S = 0.2
_START_S = 60.0
_STATE_EVERY_S = 1.0
_SILENT_S = 60.0
_MOST_LOSSES = 3
_CANCEL, _UNIT, _ANSWER, _STATE = b"c", b"u", b"a", b"s"


def serve(
    name: str,
    slots: int,
    device: Device | None = None,
    source: IO[bytes] | None = None,
    sink: IO[bytes] | None = None,
) -> None:
    """Do the units that arrive on standard input until it ends; answers go to standard output."""
    source, sink = source or sys.stdin.buffer, sink or sys.stdout.buffer
    serving.name_worker(name)
    server, lock, given_up = serving.Server(), threading.Lock(), set[str]()

    def say(kind: bytes, message: bytes) -> None:
        with lock:
            _write(sink, kind, message)

    def tell_state() -> None:
        while True:
            time.sleep(_STATE_EVERY_S)
            try:
                say(_STATE, _state(name, slots, device))
            except OSError:
                return

    def do(key: str, request: bytes) -> None:
        answer = server.answer(request, lambda: key in given_up)
        given_up.discard(key)
        say(_ANSWER, _with_key(key, answer))

    say(_STATE, _state(name, slots, device))
    threading.Thread(target=tell_state, daemon=True).start()
    with ThreadPoolExecutor(slots, "unit") as executor:
        for kind, message in _messages(source):
            key, request = _without_key(message)
            if kind == _CANCEL:
                given_up.add(key)
            else:
                executor.submit(do, key, request)
        executor.shutdown(wait=False, cancel_futures=True)
    server.close()
    os._exit(0)  # a unit may still run, but nobody reads its answer


@dataclass(slots=True, eq=False)
class _Peer:
    """A worker at the other end of a pipe, and the units that it has; mutable."""

    command: tuple[str, ...]
    process: subprocess.Popen[bytes]
    state: FarmWorker | None = None
    version: str = ""
    has: set[str] = field(default_factory=set)
    heard_at: float = field(default_factory=time.monotonic)
    is_gone: bool = False


@dataclass(slots=True)
class _Taken:
    """A unit under way: its index, and how often its worker has gone away."""

    index: int
    unit: Unit
    request: bytes
    losses: int = 0


class StdioFarm(Farm):
    """Workers that this process starts, one for each command.

    commands   each starts a worker: ("ssh", "pi", "tensorwright", "worker", "--stdio")
    Raises:  MachineError if a worker does not start, or has another version.
    """

    def __init__(self, commands: Iterable[tuple[str, ...]]) -> None:
        self._heard: queue.SimpleQueue[tuple[_Peer, bytes, bytes]] = queue.SimpleQueue()
        self._answers: dict[str, bytes] = {}
        self._keys = count()
        self._peers = [self._start(command) for command in commands]
        try:
            self._wait_for_all()
        except BaseException:
            self.close()
            raise

    def results(
        self,
        units: Iterable[Unit],
        should_stop: Callable[[], bool] = never,
        ahead: int = 0,
    ) -> Iterator[tuple[int, FarmOutcome]]:
        """As `Farm.results`."""
        waiting = enumerate(units)
        most = ahead or max(2, 2 * self.slots)
        taken: dict[str, _Taken] = {}
        is_all = False
        try:
            while not should_stop():
                while not is_all and len(taken) < most:
                    index, unit = next(waiting, (0, None))
                    if unit is None:
                        is_all = True
                        break
                    taken[str(next(self._keys))] = _Taken(
                        index, unit, serving.pack_request(unit, b"")
                    )
                if not taken:
                    return
                self._send(taken)
                self._listen(_TICK_S)
                self._end_silent()
                for key in [each for each in taken if each in self._answers]:
                    one = taken.pop(key)
                    yield one.index, serving.unpack_answer(self._answers.pop(key), one.request, b"")
                for key in self._lost_of(taken):
                    yield taken.pop(key).index, Lost("its workers went away")
        finally:
            self._give_up(taken)

    def workers(self) -> tuple[FarmWorker, ...]:
        """As `Farm.workers`."""
        self._listen(0.0)
        states = [peer.state for peer in self._peers if peer.state and not peer.is_gone]
        return tuple(sorted(states, key=lambda one: one.name))

    def close(self) -> None:
        """As `Farm.close`."""
        for peer in self._peers:
            peer.process.kill()
            peer.process.wait()
            for pipe in (peer.process.stdin, peer.process.stdout):
                if pipe is not None:
                    pipe.close()

    def _start(self, command: tuple[str, ...]) -> _Peer:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
            )
        except OSError as error:
            raise _no_worker(command, str(error)) from error
        peer = _Peer(command, process)
        threading.Thread(target=self._read, args=(peer,), daemon=True).start()
        return peer

    def _read(self, peer: _Peer) -> None:
        """Put the messages of a worker into the queue, then None; runs in a separate thread."""
        assert peer.process.stdout is not None
        try:
            for kind, message in _messages(peer.process.stdout):
                self._heard.put((peer, kind, message))
        except (OSError, ValueError):
            pass
        self._heard.put((peer, b"", b""))

    def _wait_for_all(self) -> None:
        deadline = time.monotonic() + _START_S
        while any(peer.state is None for peer in self._peers):
            self._listen(_TICK_S)
            for peer in self._peers:
                if peer.is_gone or time.monotonic() > deadline:
                    raise _no_worker(peer.command, "it ended, or sent no message")
                if peer.state is not None and peer.version != serving.farm_version():
                    raise _no_worker(
                        peer.command,
                        f"it is version {peer.version}, this is {serving.farm_version()}",
                    )

    def _listen(self, wait_s: float) -> None:
        """Note the messages of workers: answers, states and ends."""
        while True:
            try:
                peer, kind, message = self._heard.get(wait_s > 0, wait_s or None)
            except queue.Empty:
                return
            wait_s = 0.0
            peer.heard_at = time.monotonic()
            if not kind:
                peer.is_gone = True
            elif kind == _STATE:
                try:
                    peer.version, peer.state = _read_state(message)
                except (LookupError, TypeError, ValueError, struct.error):
                    peer.is_gone = True
            else:
                key, answer = _without_key(message)
                if key in peer.has:
                    peer.has.discard(key)
                    self._answers[key] = answer

    def _send(self, taken: dict[str, _Taken]) -> None:
        """Give units that wait to workers that have room for them."""
        has = {key for peer in self._peers for key in peer.has}
        for key, one in taken.items():
            if key in has or key in self._answers:
                continue
            peer = next((each for each in self._peers if _can_take(each, one.unit)), None)
            if peer is None:
                self._check_somebody_can(one.unit)
                continue
            peer.has.add(key)
            _send_to(peer, _UNIT, _with_key(key, one.request))

    def _end_silent(self) -> None:
        """End workers that have sent no message for long."""
        for peer in self._peers:
            if peer.has and time.monotonic() - peer.heard_at > _SILENT_S:
                peer.process.kill()
                peer.is_gone = True

    def _lost_of(self, taken: dict[str, _Taken]) -> list[str]:
        """Take units back from workers that are gone; return the keys of those lost too often."""
        lost = []
        for peer in self._peers:
            for key in peer.has & taken.keys() if peer.is_gone else ():
                peer.has.discard(key)
                taken[key].losses += 1
                if taken[key].losses > _MOST_LOSSES:
                    lost.append(key)
        return lost

    def _check_somebody_can(self, unit: Unit) -> None:
        there = [peer for peer in self._peers if not peer.is_gone and peer.state is not None]
        if not any(_fits(peer, unit) for peer in there):
            raise MachineError(
                stage="farm",
                where=f"unit {unit.function}",
                reason=f"no worker has the device {unit.device or 'it needs'}, or all went away",
                remedy="start the command again; it continues with the measurements made so far",
            )

    def _give_up(self, taken: dict[str, _Taken]) -> None:
        for peer in self._peers:
            for key in peer.has & taken.keys():
                _send_to(peer, _CANCEL, _with_key(key, b""))
                peer.has.discard(key)


def commands_of(address: str) -> list[tuple[str, ...]]:
    """The commands that start the workers of an address "ssh://pi1,ssh://user@pi2".

    "stdio:COMMAND" is any other command, split as a shell splits it.
    """
    if address.startswith("stdio:"):
        return [tuple(shlex.split(address.removeprefix("stdio:")))]
    remote = shlex.join(("tensorwright", "worker", "--stdio"))
    hosts = [part.removeprefix("ssh://") for part in address.split(",")]
    return [("ssh", "-o", "BatchMode=yes", host, remote) for host in hosts]


def _no_worker(command: tuple[str, ...], reason: str) -> MachineError:
    return MachineError(
        stage="farm",
        where=f"worker {shlex.join(command)}",
        reason=reason,
        remedy="run that command in a shell: it must wait, and print no text",
    )


def _can_take(peer: _Peer, unit: Unit) -> bool:
    """Whether a worker has room: for one measurement, and for as many others as it has slots."""
    if not _fits(peer, unit) or peer.state is None:
        return False
    return len(peer.has) < (1 if unit.device else peer.state.slots)


def _fits(peer: _Peer, unit: Unit) -> bool:
    return not peer.is_gone and peer.state is not None and can_do(peer.state, *unit.needs)


def _send_to(peer: _Peer, kind: bytes, message: bytes) -> None:
    assert peer.process.stdin is not None
    try:
        _write(peer.process.stdin, kind, message)
    except OSError:
        peer.is_gone = True


def _state(name: str, slots: int, device: Device | None) -> bytes:
    state = None if device is None else asdict(serving.now(device))
    text = {"version": serving.farm_version(), "name": name, "slots": slots, "device": state}
    return _with_key("", json.dumps(text).encode())


def _read_state(message: bytes) -> tuple[str, FarmWorker]:
    data = json.loads(_without_key(message)[1])
    device = None if data["device"] is None else Device(**data["device"])
    return data["version"], FarmWorker(data["name"], data["name"], data["slots"], device)


def _with_key(key: str, message: bytes) -> bytes:
    text = key.encode()
    return _LENGTH.pack(len(text)) + text + message


def _without_key(message: bytes) -> tuple[str, bytes]:
    (size,) = _LENGTH.unpack_from(message)
    end = _LENGTH.size + size
    return message[_LENGTH.size : end].decode(), message[end:]


def _write(sink: IO[bytes], kind: bytes, message: bytes) -> None:
    sink.write(kind + _LENGTH.pack(len(message)) + message)
    sink.flush()


def _messages(source: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The messages of a stream until it ends, or holds something else."""
    while True:
        head = source.read(1 + _LENGTH.size)
        if len(head) < 1 + _LENGTH.size:
            return
        (size,) = _LENGTH.unpack(head[1:])
        if size > _MOST_BYTES:
            return
        message = source.read(size)
        if len(message) < size:
            return
        yield head[:1], message
