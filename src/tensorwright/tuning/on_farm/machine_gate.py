"""The gate of a machine of a farm: many builds at once, or one measurement alone.

All workers of a user on a machine share two locks, in the folder of the knob `home`.  The turn of
`processes.hold_turn` is held by a measurement.  Builds share a lock that a measurement takes
exclusively; a measurement that waits lets no further build begin.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tensorwright.base import make_home
from tensorwright.machine import LoadWatch
from tensorwright.processes import hold_turn

_TICK_S = 0.02
_QUIET_S = 0.1
_QUIET_LIMIT_S = 30.0


@contextmanager
def while_building() -> Iterator[None]:
    """Build inside the block; waits for measurements to end."""
    with _locked("builds.waiting", fcntl.LOCK_SH) as _:
        pass
    with _locked("builds.lock", fcntl.LOCK_SH):
        yield


@contextmanager
def while_measuring(should_stop: Callable[[], bool]) -> Iterator[bool]:
    """Measure inside the block, alone on this machine as far as this user goes.

    Gives False if `should_stop` turned true while waiting.
    """
    with ExitStack() as stack:
        is_held = stack.enter_context(hold_turn(should_stop))
        if is_held:
            stack.enter_context(_locked("builds.waiting", fcntl.LOCK_EX, should_stop))
            is_held = stack.enter_context(_locked("builds.lock", fcntl.LOCK_EX, should_stop))
        yield is_held


@contextmanager
def _locked(
    name: str, kind: int, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[bool]:
    path = make_home() / name
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not should_stop():
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_TICK_S)
                continue
            yield True
            return
        yield False
    finally:
        os.close(descriptor)


class QuietCheck:
    """Looks whether others use the machine; mutable.

    A look takes a tenth of a second, so the load since the last look counts where that was longer.
    """

    def __init__(self, limit_s: float = _QUIET_LIMIT_S) -> None:
        self._limit_s = limit_s
        self._watch = LoadWatch()

    def wait(self, should_stop: Callable[[], bool]) -> str:
        """Wait until the machine is quiet; "" then, else what used it all the time."""
        deadline = time.monotonic() + self._limit_s
        while True:
            if self._watch.seconds < _QUIET_S:
                time.sleep(_QUIET_S - self._watch.seconds)
            load = self._watch.load()
            self._watch = LoadWatch()
            if not load.is_busy:
                return ""
            if should_stop() or time.monotonic() > deadline:
                return str(load)
