"""The machine that a folder of programs was measured on: training prices them for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tensorwright.base import RecordError, cpu_target, write_atomically
from tensorwright.machine import Machine, Rates, detect_hardware, machine_of
from tensorwright.runtime.measuring import this_machine
from tensorwright_lab.pretraining.conditions import CONDITIONS, Conditions

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
