"""An advisory lock on a file, between threads and processes; it ends with its holder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hold_lock(descriptor: int, wait_s: float | None = None) -> Iterator[None]:
    """Hold the file's lock inside the block.

    wait_s  the seconds after which to give up; None waits without a limit.
    Raises:  TimeoutError when another holder kept it.
    """
    _acquire(descriptor, wait_s)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _acquire(descriptor: int, wait_s: float | None) -> None:
    if wait_s is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError("the lock is held by another process") from None
            time.sleep(0.005)


def is_same_file(descriptor: int, path: str | os.PathLike[str]) -> bool:
    """Whether the open file still is the one of that name."""
    try:
        named = Path(path).stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)
