"""Turns of measuring: what one process of a user measures, no other one disturbs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from tensorwright.base import OutputError, hold_lock, make_home
from tensorwright.processes.job import never

_TICK_S = 0.2  # how often the wish to stop is looked at


@contextmanager
def hold_turn(should_stop: Callable[[], bool] = never) -> Iterator[bool]:
    """Be the only one of this user's tuners and benchmarks that measures, inside the block.

    The lock lies in the knob `home`; where that cannot be written, nobody can take turns with us.
    Gives False, and does not hold the turn, where `should_stop` turned true while waiting.
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
