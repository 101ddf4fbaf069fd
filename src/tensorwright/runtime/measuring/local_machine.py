"""The rates of this machine: those of a core, measured once, and its ceilings.

A measured rate matters if it is far from the assumed rate of all processors: some processors do one
multiply-add of long vectors a cycle, not two.  So a measured rate is rounded to the assumed rate
times a power of two.  A busy machine then makes the same choices as an idle one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tensorwright.base import (
    CpuTarget,
    detect_target,
    knobs,
    missing_here,
    now_utc,
)
from tensorwright.machine import (
    MEMORY,
    Ceilings,
    Level,
    Machine,
    Rates,
    Steps,
    assumed_ceilings,
    keep_steps,
    kept_steps,
    machine_of,
    nominal_rates,
    steps_from,
)
from tensorwright.runtime.measuring.peak import measure_bandwidth, measure_peak

_PEAK_TRIES = 3
_LEAST_BYTES = 1 << 26
_MOST_BYTES = 1 << 28


def this_machine(target: CpuTarget, threads: int, *, is_cold: bool = False) -> Machine:
    """The machine that runs programs for a target: this one, if it can.

    The rates of a core are read from the folder of the knob `home`.  If they are not there, they
    are measured and kept there, which takes a third of a second.  If this machine cannot run code
    for the target, or cannot be measured, the rates are the nominal ones.  Those of a machine that
    is assumed (knob `assume`) are data.
    """
    settings = knobs.HOME.get(), knobs.ASSUME.get()
    return machine_of(target, threads, _rates_of(target, settings), is_cold=is_cold)


@lru_cache(maxsize=64)
def _rates_of(target: CpuTarget, settings: tuple[Path, str]) -> Rates:
    nominal, (_, assumed) = nominal_rates(target), settings
    if missing_here(target) and not assumed:
        return nominal
    steps = kept_steps(target)
    if steps is None:
        steps = measure_steps(target)
        keep_steps(target, steps)
    return nominal.stepped(*steps)


def measure_steps(target: CpuTarget) -> Steps:
    """The number of powers of two by which the rates of a core differ from the nominal ones."""
    return steps_from(target, measure_peak(target), measure_bandwidth(target))


def measure_ceilings(target: CpuTarget, threads: int) -> Ceilings:
    """Measure the ceilings of this machine for the code of a target, about half a second; or those
    of the assumed one.

    Raises:  MachineError if the machine cannot run it.
    """
    assumed = knobs.assumed_machine()
    if assumed is not None:
        return assumed_ceilings(assumed, target, threads)
    machine = detect_target()
    caches = (
        ("L2", machine.l2_bytes * min(threads, machine.cores)),
        ("L3", machine.l3_bytes),
    )
    far_bytes = min(_MOST_BYTES, max(_LEAST_BYTES, 4 * machine.l3_bytes))
    peak = measure_peak_alone(target, threads)
    rate = measure_bandwidth(target, threads, far_bytes)
    levels = [Level(MEMORY, float("inf"), rate)]
    for name, size_bytes in reversed(caches):
        if 0 < size_bytes < levels[0].size_bytes:
            rate = max(rate, measure_bandwidth(target, threads, size_bytes // 2))
            levels.insert(0, Level(name, float(size_bytes), rate))
    return replace(peak, levels=tuple(levels))


def measure_peak_alone(target: CpuTarget, threads: int) -> Ceilings:
    """As `measure_ceilings`, without levels: a few tenths of a second."""
    assumed = knobs.assumed_machine()
    if assumed is not None:
        return replace(assumed_ceilings(assumed, target, threads), levels=())
    peak = max(measure_peak(target, threads) for _ in range(_PEAK_TRIES))
    return Ceilings(threads, peak, (), now_utc())
