"""Whether the machine is fit for measurements: the load of others, and its current peak."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.machine.ceilings import Ceilings
from tensorwright.machine.load import Load

_SLOWER = 0.8


@dataclass(frozen=True, slots=True)
class MachineState:
    """The state of the machine during a measurement.

    load    of other processes        now    its current rates, None if they were not measured
    kept    the rates that were kept before: by `tensorwright doctor`, or by an earlier profile
    """

    load: Load
    now: Ceilings | None = None
    kept: Ceilings | None = None

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
