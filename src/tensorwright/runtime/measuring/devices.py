"""The rates of moving bytes to a device, on it, and from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tensorwright.runtime.device import Device

_COPIED_BYTES = 1 << 24
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """How fast bytes move, in bytes per second; the seconds until a short copy is done."""

    to_device: float
    on_device: float
    from_device: float
    round_trip_s: float


def measure_rates(device: Device) -> DeviceRates:
    """Copy some megabytes in each direction, and take the best of a few times."""
    array = np.zeros(_COPIED_BYTES, np.uint8)
    one, other = device.allocate(array.nbytes), device.allocate(array.nbytes)
    short = np.zeros(64, np.uint8)
    to_s = _best(lambda: device.copy_in(array, one))
    on_s = min(device.time(lambda: device.copy(one, other)) for _ in range(_REPEATS))
    from_s = _best(lambda: device.copy_out(other, array))
    trip_s = _best(lambda: device.copy_in(short, one))
    to, on, back = (array.nbytes / max(each, 1e-9) for each in (to_s, on_s, from_s))
    return DeviceRates(to, on, back, trip_s)


def _best(work: Callable[[], object]) -> float:
    """The least seconds of a few calls, each of which is done on return."""
    times_s: list[float] = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - start)
    return min(times_s)
