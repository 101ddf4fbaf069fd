"""The jobs of a competitor's process, on the one competitor that it holds."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from threading import Barrier, Semaphore, Thread
from time import perf_counter
from typing import Any

from tensorwright.peers.process.kinds import create_peer, find_kind
from tensorwright.peers.process.protocol import Arrays, Peer, PeerInfo, plain_arrays

_REPEATS = 5
_held: list[Peer] = []


def create(kind: str) -> None:
    """Make the competitor; the first job of its process."""
    _held[:] = [create_peer(find_kind(kind))]


def load(path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
    """As `Peer.load`."""
    return _held[0].load(path, threads, options)


def bind(inputs: Arrays) -> None:
    """As `Peer.bind`."""
    _held[0].bind(inputs)


def check() -> Arrays:
    """As `Peer.run`.

    Raises:  ValueError for an output of objects.
    """
    return plain_arrays(_held[0].run())


def time(number: int, repeat: int) -> tuple[float, ...]:
    """As `time_calls`, for the competitor."""
    return time_calls(_held[0], number, repeat)


def time_calls(peer: Peer, number: int, repeat: int) -> tuple[float, ...]:
    """Seconds per `Peer.call`: `repeat` samples, each the mean of `number` calls."""
    call = peer.call
    seconds = []
    gc.disable()
    try:
        for _ in range(repeat):
            start = perf_counter()
            for _ in range(number):
                call()
            seconds.append((perf_counter() - start) / number)
    finally:
        gc.enable()
    return tuple(seconds)


def serve(callers: int, at_once: int, duration_s: float) -> tuple[tuple[float, float], ...]:
    """Call the competitor from several threads for a while; returns the start and the seconds of
    each call.

    at_once   the most calls at once, while others wait; 0 for all
    """
    calls = [_held[0].caller() for _ in range(callers)]
    allowed = Semaphore(at_once or callers)
    start = Barrier(callers)
    results: list[list[tuple[float, float]]] = [[] for _ in calls]

    def work(number: int) -> None:
        call, times = calls[number], results[number]
        start.wait()
        end = perf_counter() + duration_s
        while (began := perf_counter()) < end:
            with allowed:
                call()
            times.append((began, perf_counter() - began))

    threads = [Thread(target=work, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(each for times in results for each in times)


def time_file(kind: str, path: str, inputs: Arrays, threads: int, budget_s: float) -> float:
    """Seconds per call of a model in a new competitor: the fastest of some samples."""
    peer = create_peer(find_kind(kind))
    peer.load(path, threads, {})
    peer.bind(inputs)
    peer.run()
    (once_s,) = time_calls(peer, 1, 1)
    number = max(1, min(1000, int(budget_s / _REPEATS / max(once_s, 1e-7))))
    fastest_s = min(time_calls(peer, number, _REPEATS))
    peer.park()
    return fastest_s


def park() -> None:
    """As `Peer.park`."""
    _held[0].park()
