"""How busy others kept the machine during a measurement: what a strange time may be due to."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")


@dataclass(slots=True)
class ForeignLoad:
    """`share` is set when the block ends: the part of all cores that other programs used, 0 to 1.

    None where the system does not tell. Children count as ours once they have been waited for.
    """

    share: float | None = None


@contextmanager
def watch_foreign_load() -> Iterator[ForeignLoad]:
    """Measure from the start of the block to its end."""
    load = ForeignLoad()
    start, busy, own = time.monotonic(), _read_busy_s(), _read_own_s()
    yield load
    busy_after = _read_busy_s()
    if busy is not None and busy_after is not None:
        foreign_s = (busy_after - busy) - (_read_own_s() - own)
        available_s = (time.monotonic() - start) * (os.cpu_count() or 1)
        load.share = min(max(foreign_s / available_s, 0.0), 1.0)


def _read_busy_s() -> float | None:
    """Processor seconds that the whole machine has worked: all but idle and waiting for disks."""
    try:
        fields = [int(field) for field in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    idle = sum(fields[3:5])
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


def _read_own_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
