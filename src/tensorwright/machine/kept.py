"""The ceilings of this machine, kept: one file for each target, in the folder of the knob `home`.

{"2": {"flops_per_s": 2.1e11, "levels": [["L2", 4194304, 3.1e11], ["memory", null, 1.4e10]],
       "when": "2026-01-31T12:00:00.000000Z"}}
"""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from tensorwright.base import CpuTarget, TensorwrightError, knobs, make_folder, write_atomically
from tensorwright.machine.ceilings import Ceilings, Level, better_of
from tensorwright.records import detect_hardware


def kept_ceilings(target: CpuTarget, threads: int) -> Ceilings | None:
    """What was kept for so many threads; None where nothing was, or nothing sensible."""
    fields = _read(_path(target)).get(str(threads))
    try:
        return None if fields is None else _from_fields(threads, fields)
    except (ValueError, TypeError, KeyError):
        return None


def keep_ceilings(target: CpuTarget, ceilings: Ceilings) -> None:
    """Keep them, in the place of those before; where that is not allowed, they are not kept."""
    path = _path(target)
    fields = _read(path) | {str(ceilings.threads): _to_fields(ceilings)}
    with suppress(TensorwrightError):
        make_folder(path.parent)
        write_atomically(path, json.dumps(fields, indent=1) + "\n")


def refine_ceilings(target: CpuTarget, measured: Ceilings) -> Ceilings:
    """What was measured now and what was kept, the higher of each rate; that is kept then."""
    kept = kept_ceilings(target, measured.threads)
    best = measured if kept is None else better_of(kept, measured)
    if best != kept and best.levels:
        keep_ceilings(target, best)
    return best


def _path(target: CpuTarget) -> Path:
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    name = f"{detect_hardware().fingerprint}-{digest}-ceilings.json"
    return knobs.HOME.get() / "machine" / name


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _to_fields(ceilings: Ceilings) -> dict[str, object]:
    levels = [
        [each.name, each.size_bytes if math.isfinite(each.size_bytes) else None, each.bytes_per_s]
        for each in ceilings.levels
    ]
    return {"flops_per_s": ceilings.flops_per_s, "levels": levels, "when": ceilings.when}


def _from_fields(threads: int, fields: Any) -> Ceilings:
    levels = tuple(
        Level(str(name), math.inf if size is None else float(size), float(rate))
        for name, size, rate in fields["levels"]
    )
    rates = [float(fields["flops_per_s"]), *(level.bytes_per_s for level in levels)]
    if not levels or not all(0 < rate < math.inf for rate in rates):
        raise ValueError("rates are finite and above zero")
    return Ceilings(threads, rates[0], levels, str(fields["when"]))
