"""Measurements of this machine on the disk: a file for each target, in the folder of `home`.

    {"flops_steps": 0, "bandwidth_steps": -1,
     "2": {"_": "Ceilings", "threads": 2, "flops_per_s": 2.1e11, "levels": [...],
           "when": "2026-01-31T12:00:00.000000Z"}}

The rates of a core are powers of two times the nominal ones; there are ceilings for each number of
threads.  Where a machine is assumed (knob `assume`), they are its own: nothing is read or written.
"""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from tensorwright.base import (
    CpuTarget,
    TensorwrightError,
    from_data,
    kinds_of,
    knobs,
    make_folder,
    to_data,
    write_atomically,
)
from tensorwright.machine.ceilings import Ceilings, Level, assumed_ceilings, better_of
from tensorwright.machine.hardware import detect_hardware
from tensorwright.machine.machine import nominal_rates

MOST_STEPS = 4  # a measured rate that differs by more than a factor of 16 is a mistake
_KINDS = kinds_of(Ceilings, Level)

Steps = tuple[int, int]
"""The powers of two by which a core's arithmetic and bandwidth differ from the nominal rates."""


def steps_from(target: CpuTarget, flops_per_s: float, bytes_per_s: float) -> Steps:
    """The steps that lead nearest to the rates of a core."""
    nominal = nominal_rates(target)
    return (
        _nearest(flops_per_s, nominal.flops_per_s),
        _nearest(bytes_per_s, nominal.bandwidth_bytes_per_s),
    )


def _nearest(rate: float, nominal: float) -> int:
    """The nearest power of two of one rate over the other, as an exponent."""
    if not rate > 0.0:
        return 0
    return max(-MOST_STEPS, min(MOST_STEPS, round(math.log2(rate / nominal))))


def kept_steps(target: CpuTarget) -> Steps | None:
    """The rates of a core in the file; None without sensible ones."""
    assumed = knobs.assumed_machine()
    if assumed is not None:
        ceilings = assumed_ceilings(assumed, target, 1)
        return steps_from(target, ceilings.flops_per_s, ceilings.levels[-1].bytes_per_s)
    match _read(_path(target)):
        case {"flops_steps": int(flops), "bandwidth_steps": int(bandwidth)}:
            return (flops, bandwidth) if max(abs(flops), abs(bandwidth)) <= MOST_STEPS else None
    return None


def keep_steps(target: CpuTarget, steps: Steps) -> None:
    """Write the rates of a core; without effect if the file cannot be written."""
    flops, bandwidth = steps
    _keep(target, {"flops_steps": flops, "bandwidth_steps": bandwidth})


def kept_ceilings(target: CpuTarget, threads: int) -> Ceilings | None:
    """The ceilings for a number of threads in the file; None without sensible ones."""
    assumed = knobs.assumed_machine()
    if assumed is not None:
        return assumed_ceilings(assumed, target, threads)
    try:
        ceilings = from_data(_read(_path(target)).get(str(threads)), _KINDS)
        rates = [ceilings.flops_per_s, *(level.bytes_per_s for level in ceilings.levels)]
        is_sensible = len(rates) > 1 and all(0 < rate < math.inf for rate in rates)
    except (ValueError, TypeError, AttributeError):
        return None
    return ceilings if is_sensible else None


def keep_ceilings(target: CpuTarget, ceilings: Ceilings) -> None:
    """Write ceilings over those before; without effect if the file cannot be written."""
    _keep(target, {str(ceilings.threads): to_data(ceilings)})


def refine_ceilings(target: CpuTarget, measured: Ceilings) -> Ceilings:
    """The higher of each rate, measured now or kept; the result is kept."""
    kept = kept_ceilings(target, measured.threads)
    best = measured if kept is None else better_of(kept, measured)
    if best != kept and best.levels:
        keep_ceilings(target, best)
    return best


def _path(target: CpuTarget) -> Path:
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    return knobs.HOME.get() / "machine" / f"{detect_hardware().fingerprint}-{digest}.json"


def _keep(target: CpuTarget, fields: dict[str, object]) -> None:
    if knobs.assumed_machine() is not None:
        return
    path = _path(target)
    with suppress(TensorwrightError):
        make_folder(path.parent)
        write_atomically(path, json.dumps(_read(path) | fields, indent=1) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}
