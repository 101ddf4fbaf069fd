"""Stages of a compilation say how long they take: always in the log, to everybody if that is long.

with stage("schedules of 42 kernels"):
...
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOG = logging.getLogger("tensorwright.compile")
LONG_S = 10.0


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Log how long the block takes; at the level of warnings from `LONG_S` on."""
    start_s = time.perf_counter()
    try:
        yield
    finally:
        took_s = time.perf_counter() - start_s
        level = logging.WARNING if took_s >= LONG_S else logging.INFO
        LOG.log(level, "%s: %.1f s", what, took_s)
