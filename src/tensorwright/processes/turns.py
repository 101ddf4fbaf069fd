"""Turns of measuring: only one process of a user measures at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from tensorwright.base import OutputError, hold_lock, make_home
from tensorwright.processes.job import never

_TICK_S = 0.2  # between two calls of `should_stop`


@contextmanager
def hold_turn(should_stop: Callable[[], bool] = never) -> Iterator[bool]:
    """Be the only tuner or benchmark of this user that measures, inside the block.

    The lock is a file in the folder of the knob `home`; if that cannot be written, there is no
    lock.  The block gets False, and does not hold the turn, if `should_stop` became true first.
    """
    try:
        path = make_home() / "turn.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (OSError, OutputError):
        yield True
        return
    is_held = False
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        while not is_held and not should_stop():
            with suppress(TimeoutError):
                stack.enter_context(hold_lock(descriptor, _TICK_S))
                is_held = True
        yield is_held
