"""Keep a forked child from hanging in its first parallel region.

libgomp's worker threads do not survive a fork, and libgomp does not notice: a child whose parent
has run a parallel region waits for them forever. So after such a fork the child's calls run on one
thread. A server that loads a model, forks, and then runs it keeps its threads.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import ClassVar, Protocol


class Teamed(Protocol):
    """A user of the runtime's threads."""

    def run_alone(self) -> None:
        """Ask for one thread from now on."""


class _State:
    """The state of this process; guarded by the lock."""

    lock: ClassVar[threading.Lock] = threading.Lock()
    members: ClassVar[weakref.WeakSet[Teamed]] = weakref.WeakSet()
    has_teamed: ClassVar[bool] = False
    has_forked_late: ClassVar[bool] = False


def join(member: Teamed, threads: int) -> int:
    """Register a member that wants some threads, and return how many it may have."""
    if threads <= 1:
        return threads
    with _State.lock:
        if _State.has_forked_late:
            return 1
        _State.has_teamed = True
        _State.members.add(member)
    return threads


def _after_fork_in_child() -> None:
    _State.lock = threading.Lock()  # another thread of the parent may have held it
    _State.has_forked_late = _State.has_teamed
    for member in tuple(_State.members):
        member.run_alone()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
