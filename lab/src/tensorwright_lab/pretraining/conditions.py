"""The conditions under which programs are measured for the time model, and the machine.

Training prices the programs of a folder for the machine that they were measured on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tensorwright.base import CpuTarget, RecordError, cpu_target, write_atomically
from tensorwright.machine import Machine, Rates, detect_hardware, machine_of
from tensorwright.runtime.measuring import this_machine

_COLD_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Conditions:
    """A target, a number of threads, and whether constants come from memory or from the caches.

    Example
        >>> Conditions.parse("x86-64-avx2-2t-cold")
        Conditions(target_name='x86-64-avx2', threads=2, is_cold=True)
    """

    target_name: str
    threads: int
    is_cold: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` writes.  Raises: RecordError for anything else."""
        parts = text.rsplit("-", 2)
        is_right = len(parts) == 3 and parts[2] in ("cold", "warm") and parts[1][-1:] == "t"
        if not is_right or not parts[1][:-1].isdecimal():
            raise RecordError(
                stage="time model",
                where=f"file {text!r}",
                reason="its name does not say target, threads and cold or warm",
                remedy="give the folder that `tensorwright pretrain collect` fills",
            )
        return cls(parts[0], int(parts[1][:-1]), parts[2] == "cold")

    def __str__(self) -> str:
        kind = "cold" if self.is_cold else "warm"
        return f"{self.target_name}-{self.threads}t-{kind}"

    @property
    def target(self) -> CpuTarget:
        """The target itself."""
        return cpu_target(self.target_name)

    @property
    def cold_bytes(self) -> int:
        """How much memory the places of constants take, see `MeasureOptions`."""
        return _COLD_BYTES if self.is_cold else 0


CONDITIONS: tuple[tuple[Conditions, float], ...] = (
    (Conditions("native", 2, is_cold=True), 0.36),
    (Conditions("x86-64-avx2", 2, is_cold=True), 0.30),
    (Conditions("native", 1, is_cold=True), 0.10),
    (Conditions("x86-64-avx2", 1, is_cold=True), 0.10),
    (Conditions("native", 2, is_cold=False), 0.07),
    (Conditions("x86-64-avx2", 2, is_cold=False), 0.07),
)
"""What networks are measured under, with the share of each."""


def draw_conditions(seed: int) -> Conditions:
    """The conditions of the network of a seed."""
    drawn = random.Random(f"conditions {seed}").random()
    for conditions, share in CONDITIONS:
        drawn -= share
        if drawn < 0:
            return conditions
    return CONDITIONS[0][0]


FILE = "machine.json"


@dataclass(frozen=True, slots=True)
class MeasuringMachine:
    """A machine by its fingerprint, and the rates of one core by the names of targets."""

    fingerprint: str
    rates: Mapping[str, Rates]

    @classmethod
    def this(cls) -> Self:
        """The machine that this runs on."""
        names = sorted({conditions.target_name for conditions, _ in CONDITIONS})
        rates = {name: this_machine(cpu_target(name), 1).rates for name in names}
        return cls(detect_hardware().fingerprint, rates)

    @classmethod
    def of(cls, folder: Path) -> Self:
        """That of a folder; this one where the folder says nothing.

        Raises:  RecordError for a file that is damaged.
        """
        path = folder / FILE
        if not path.exists():
            return cls.this()
        try:
            fields = json.loads(path.read_bytes())
            rates = {name: _rates(numbers) for name, numbers in fields["rates"].items()}
            return cls(str(fields["fingerprint"]), rates)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise RecordError(
                stage="time model",
                where=f"file {path}",
                reason=f"it does not describe a machine: {error}",
                remedy="remove it if this machine has measured the folder",
            ) from None

    def write(self, folder: Path) -> None:
        """Note it in a folder.

        Raises:  RecordError for a folder that another machine has measured; OutputError.
        """
        if (folder / FILE).exists():
            other = self.of(folder).fingerprint
            if other != self.fingerprint:
                raise RecordError(
                    stage="time model",
                    where=f"folder {folder}",
                    reason=f"another machine has measured it, {other}",
                    remedy="give a new folder; training takes several",
                )
            return
        rates = {name: asdict(one) for name, one in self.rates.items()}
        text = json.dumps({"fingerprint": self.fingerprint, "rates": rates}, indent=1)
        write_atomically(folder / FILE, text + "\n")

    def under(self, conditions: Conditions) -> Machine:
        """The machine as it is used under some conditions."""
        rates = self.rates.get(conditions.target_name)
        return machine_of(conditions.target, conditions.threads, rates, is_cold=conditions.is_cold)


def _rates(numbers: Mapping[str, Any]) -> Rates:
    rates = Rates(float(numbers["flops_per_s"]), float(numbers["bandwidth_bytes_per_s"]))
    if not (rates.flops_per_s > 0.0 and rates.bandwidth_bytes_per_s > 0.0):
        raise ValueError("rates are above zero")
    return rates
