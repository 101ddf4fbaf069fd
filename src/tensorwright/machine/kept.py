"""Measurements of this machine on the disk: a file for each target, in the folder of `home`.

    {"flops_steps": 0, "bandwidth_steps": -1, "product_steps": {"dot2_bf16": -2},
     "2": {"_": "Ceilings", "threads": 2, "flops_per_s": 2.1e11, "levels": [...],
           "when": "2026-01-31T12:00:00.000000Z"}}

The rates of a core are powers of two times the nominal ones, and so are the speeds of instructions
that multiply short numbers; there are ceilings for each number of threads.  Where a machine is
assumed (knob `assume`), they are its own: nothing is read or written.

The load of other processes on this machine during a measurement.

Linux counts, in hundredths of a second, the time of all cores, of each process, and the time that a
hypervisor gave to other machines.  The load is the busy time of all cores without that of this
process and of those that it has started.

Whether the machine is fit for measurements: the load of others, and its current peak.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright import base
from tensorwright.machine import machine

MOST_STEPS = 4  # a measured rate that differs by more than a factor of 16 is a mistake
_STEPS = range(-MOST_STEPS, MOST_STEPS + 1)
_KINDS = base.kinds_of(machine.Ceilings, machine.Level)

Steps = tuple[int, int]
"""The powers of two by which a core's arithmetic and bandwidth differ from the nominal rates."""


def steps_from(target: base.CpuTarget, flops_per_s: float, bytes_per_s: float) -> Steps:
    """The steps that lead nearest to the rates of a core."""
    nominal = machine.nominal_rates(target)
    return (
        _nearest(flops_per_s, nominal.flops_per_s),
        _nearest(bytes_per_s, nominal.bandwidth_bytes_per_s),
    )


def _nearest(rate: float, nominal: float) -> int:
    """The nearest power of two of one rate over the other, as an exponent."""
    if not rate > 0.0:
        return 0
    return max(-MOST_STEPS, min(MOST_STEPS, round(math.log2(rate / nominal))))


def kept_steps(target: base.CpuTarget) -> Steps | None:
    """The rates of a core in the file; None without sensible ones."""
    assumed = base.knobs.assumed_machine()
    if assumed is not None:
        ceilings = machine.assumed_ceilings(assumed, target, 1)
        return steps_from(target, ceilings.flops_per_s, ceilings.levels[-1].bytes_per_s)
    match _read(_path(target)):
        case {"flops_steps": int(flops), "bandwidth_steps": int(bandwidth)}:
            return (flops, bandwidth) if max(abs(flops), abs(bandwidth)) <= MOST_STEPS else None
    return None


def keep_steps(target: base.CpuTarget, steps: Steps) -> None:
    """Write the rates of a core; without effect if the file cannot be written."""
    flops, bandwidth = steps
    _keep(target, {"flops_steps": flops, "bandwidth_steps": bandwidth})


def product_steps_from(nominal: float, speed: float) -> int:
    """The steps that lead nearest to the speed of an instruction."""
    return _nearest(speed, nominal)


def kept_product_steps(target: base.CpuTarget) -> dict[str, int] | None:
    """The powers of two by which speeds of instructions differ from their records', by name.

    None without sensible ones; an assumed machine has the speeds of the records.
    """
    if base.knobs.assumed_machine() is not None:
        return {}
    match _read(_path(target)).get("product_steps"):
        case dict() as steps if all(each in _STEPS for each in steps.values()):
            return steps
    return None


def keep_product_steps(target: base.CpuTarget, steps: Mapping[str, int]) -> None:
    """Write the steps over those before; without effect if the file cannot be written."""
    _keep(target, {"product_steps": dict(steps)})


def kept_ceilings(target: base.CpuTarget, threads: int) -> machine.Ceilings | None:
    """The ceilings for a number of threads in the file; None without sensible ones."""
    assumed = base.knobs.assumed_machine()
    if assumed is not None:
        return machine.assumed_ceilings(assumed, target, threads)
    try:
        ceilings = base.from_data(_read(_path(target)).get(str(threads)), _KINDS)
        rates = [ceilings.flops_per_s, *(level.bytes_per_s for level in ceilings.levels)]
        is_sensible = len(rates) > 1 and all(0 < rate < math.inf for rate in rates)
    except (ValueError, TypeError, AttributeError):
        return None
    return ceilings if is_sensible else None


def keep_ceilings(target: base.CpuTarget, ceilings: machine.Ceilings) -> None:
    """Write ceilings over those before; without effect if the file cannot be written."""
    _keep(target, {str(ceilings.threads): base.to_data(ceilings)})


def refine_ceilings(target: base.CpuTarget, measured: machine.Ceilings) -> machine.Ceilings:
    """The higher of each rate, measured now or kept; the result is kept."""
    kept = kept_ceilings(target, measured.threads)
    best = measured if kept is None else machine.better_of(kept, measured)
    if best != kept and best.levels:
        keep_ceilings(target, best)
    return best


def _path(target: base.CpuTarget) -> Path:
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    return (
        base.knobs.HOME.get() / "machine" / f"{machine.detect_hardware().fingerprint}-{digest}.json"
    )


def _keep(target: base.CpuTarget, fields: dict[str, object]) -> None:
    if base.knobs.assumed_machine() is not None:
        return
    path = _path(target)
    with suppress(base.TensorwrightError):
        base.make_folder(path.parent)
        base.write_atomically(path, json.dumps(_read(path) | fields, indent=1) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


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
    first = (base.read_text(proc / "stat").splitlines() or [""])[0].split()[1:]
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
        head, _, rest = base.read_text(folder / "stat").rpartition(")")
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


_SLOWER = 0.8


@dataclass(frozen=True, slots=True)
class MachineState:
    """The state of the machine during a measurement.

    load    of other processes        now    its current rates, None if they were not measured
    kept    the rates that were kept before: by `tensorwright doctor`, or by an earlier profile
    """

    load: Load
    now: machine.Ceilings | None = None
    kept: machine.Ceilings | None = None

    @property
    def peak_share(self) -> float:
        """The current share of the peak that was kept; 1 if unknown."""
        if self.now is None or self.kept is None:
            return 1.0
        return self.now.flops_per_s / self.kept.flops_per_s

    @property
    def warning(self) -> str:
        """A warning with the remedy, in lines of 80 columns; "" if all is well."""
        is_slower = self.peak_share < _SLOWER
        lines = []
        if self.load.is_busy:
            lines += [f"machine busy: {text}" for text in self.load.texts]
        if is_slower and self.kept is not None:
            peak = f"{self.kept.flops_per_s / 1e9:.0f} GFLOP/s of {self.kept.day}"
            lines.append(f"this machine reaches {self.peak_share:.0%} of the {peak}")
        if self.load.is_busy:
            lines.append("times are too long, ratios wrong: end what else runs, or measure later")
        elif is_slower:
            lines.append("its host is busy, or its clock lower; if it stays: tensorwright doctor")
        return "\n  ".join(lines)
