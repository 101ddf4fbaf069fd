"""The load of other processes on this machine during a measurement.

Linux counts, in hundredths of a second, the time of all cores, of each process, and the time that a
hypervisor gave to other machines.  The load is the busy time of all cores without that of this
process and of those that it has started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorwright.base import read_text

PROC = Path("/proc")
_BUSY_CORES = 0.25
_STOLEN = 0.05
_NAME = 15
_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, interrupts; of a line of /proc/stat
_STEAL = 7
_PARENT, _USER, _LAST = 1, 11, 15  # of what follows the name in /proc/N/stat


@dataclass(frozen=True, slots=True)
class Load:
    """The average use of other processes over a time.

    cores     of `of_cores` that were busy with other processes
    stolen    share of the time that the hypervisor gave to other machines
    busiest   the process that used most of that, "python 812"; "" if there is none
    """

    cores: float = 0.0
    stolen: float = 0.0
    of_cores: int = 1
    busiest: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether times of a measurement during this load are unreliable."""
        return self.cores > _BUSY_CORES or self.stolen > _STOLEN

    @property
    def texts(self) -> tuple[str, ...]:
        """The use of other processes, and the process that uses most."""
        reasons = []
        if self.cores > _BUSY_CORES or not self.is_busy:
            most = f" (most: {self.busiest})" if self.busiest and self.is_busy else ""
            reasons.append(f"others use {self.cores:.1f} of {self.of_cores} cores{most}")
        if self.stolen > _STOLEN:
            reasons.append(f"the hypervisor takes {self.stolen:.0%} of the time")
        return tuple(reasons)

    def __str__(self) -> str:
        return ", ".join(self.texts)


@dataclass(frozen=True, slots=True)
class _Moment:
    """Ticks since the start of the machine: busy, stolen and all; and of each process."""

    at_s: float
    busy: int
    stolen: int
    own: int
    others: Mapping[int, int]
    names: Mapping[int, str]


class LoadWatch:
    """Watches the load from its creation on; mutable."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._start = _moment(proc)

    @property
    def seconds(self) -> float:
        """The time since its creation."""
        return time.monotonic() - self._start.at_s

    def load(self) -> Load:
        """The load since the creation of this object; 0 if the system does not tell it."""
        start, now = self._start, _moment(self._proc)
        ticks = max(1.0, (now.at_s - start.at_s) * os.sysconf("SC_CLK_TCK"))
        count = os.cpu_count() or 1
        cores = max(0, now.busy - start.busy - (now.own - start.own)) / ticks
        stolen = (now.stolen - start.stolen) / (ticks * count)
        used = {pid: n - start.others.get(pid, 0) for pid, n in now.others.items()}
        busiest = max(used, key=lambda pid: used[pid], default=0)
        name = f"{now.names[busiest][:_NAME]} {busiest}" if used.get(busiest) else ""
        return Load(cores, max(0.0, stolen), count, name)


def _moment(proc: Path) -> _Moment:
    at_s = time.monotonic()
    first = (read_text(proc / "stat").splitlines() or [""])[0].split()[1:]
    numbers = [int(word) for word in first] if len(first) > _STEAL else [0] * (_STEAL + 1)
    processes = _processes(proc)
    own = _family(processes, os.getpid())
    return _Moment(
        at_s,
        sum(numbers[column] for column in _BUSY),
        numbers[_STEAL],
        sum(sum(processes[pid][2]) for pid in own),
        {pid: each[2][0] + each[2][1] for pid, each in processes.items() if pid not in own},
        {pid: each[0] for pid, each in processes.items()},
    )


def _processes(proc: Path) -> dict[int, tuple[str, int, tuple[int, ...]]]:
    """Name, parent and ticks of each process: its own, and those of children that have ended."""
    processes: dict[int, tuple[str, int, tuple[int, ...]]] = {}
    for folder in proc.glob("[0-9]*"):
        head, _, rest = read_text(folder / "stat").rpartition(")")
        words = rest.split()
        if len(words) >= _LAST:
            ticks = tuple(int(word) for word in words[_USER:_LAST])
            processes[int(folder.name)] = head.partition("(")[2], int(words[_PARENT]), ticks
    return processes


def _family(processes: Mapping[int, tuple[str, int, tuple[int, ...]]], pid: int) -> set[int]:
    """A process, the processes that it has started, and those that they have started."""
    family = {pid} & processes.keys()
    while True:
        more = {each for each, (_, parent, _) in processes.items() if parent in family} - family
        if not more:
            return family
        family |= more
