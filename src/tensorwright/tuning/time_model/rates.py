"""What one core of this machine can do, measured once for each target and kept.

A measured rate is worth knowing where it is far from what is assumed of all processors: some do
one multiply-add of long vectors a cycle, not two.  So only whole powers of two beside the assumed
rates are told apart: what is chosen by them is chosen again, on a machine that is busy, too.
"""

from __future__ import annotations

import hashlib
import json
import math
from functools import lru_cache
from pathlib import Path

from tensorwright.base import (
    CpuTarget,
    TensorwrightError,
    knobs,
    make_folder,
    missing_here,
    write_atomically,
)
from tensorwright.records import detect_hardware
from tensorwright.runtime import measure_bandwidth, measure_peak
from tensorwright.tuning.models import Machine, Rates, machine_of, nominal_rates

_MOST_STEPS = 4  # a rate that is 16 times as high as assumed, or a 16th, was not measured well


def this_machine(target: CpuTarget, threads: int, *, is_cold: bool = False) -> Machine:
    """The machine that runs programs for a target: this one, if it can."""
    return machine_of(target, threads, rates_of(target), is_cold=is_cold)


def rates_of(target: CpuTarget) -> Rates:
    """What one core does with the target's instructions.

    Read from the folder of the knob `home`; measured, and kept there, where it has not been: that
    takes a third of a second.  The assumed ones for a target that this machine cannot run, and
    where they cannot be measured.
    """
    return _rates_of(target, knobs.HOME.get())


@lru_cache(maxsize=64)
def _rates_of(target: CpuTarget, home: Path) -> Rates:
    if missing_here(target):
        return nominal_rates(target)
    path = home / "machine" / f"{detect_hardware().fingerprint}-{_digest(target)}.json"
    steps = _read(path)
    if steps is None:
        try:
            steps = _measure(target)
            make_folder(path.parent)
            write_atomically(path, json.dumps(dict(zip(_FIELDS, steps, strict=True))))
        except TensorwrightError:  # no libgomp, no permission: known or not, it is good enough
            steps = steps or (0, 0)
    return stepped(nominal_rates(target), *steps)


_FIELDS = ("flops_steps", "bandwidth_steps")


def stepped(nominal: Rates, flops_steps: int, bandwidth_steps: int) -> Rates:
    """Rates so many powers of two beside the nominal ones."""
    return Rates(
        nominal.flops_per_s * 2.0**flops_steps,
        nominal.bandwidth_bytes_per_s * 2.0**bandwidth_steps,
    )


def steps_of(measured: float, nominal: float) -> int:
    """The nearest power of two of one rate over the other, as an exponent."""
    if not measured > 0.0:
        return 0
    return max(-_MOST_STEPS, min(_MOST_STEPS, round(math.log2(measured / nominal))))


def _measure(target: CpuTarget) -> tuple[int, int]:
    nominal = nominal_rates(target)
    return (
        steps_of(measure_peak(target), nominal.flops_per_s),
        steps_of(measure_bandwidth(target), nominal.bandwidth_bytes_per_s),
    )


def _read(path: Path) -> tuple[int, int] | None:
    """What was kept; None where nothing was, or nothing sensible."""
    try:
        fields = json.loads(path.read_bytes())
        flops, bandwidth = (fields[name] for name in _FIELDS)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_sensible = all(type(n) is int and abs(n) <= _MOST_STEPS for n in (flops, bandwidth))
    return (flops, bandwidth) if is_sensible else None


def _digest(target: CpuTarget) -> str:
    return hashlib.sha256(target.key.encode()).hexdigest()[:8]
