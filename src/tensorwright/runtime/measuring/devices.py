"""What the devices of this machine are, and how fast bytes move to, on and from them.

`python -m tensorwright.runtime.measuring.devices cuda` (or `opencl`) prints it as JSON: whoever
only wants to know asks another process, because drivers may end theirs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from tensorwright.base import GpuApi, override
from tensorwright.runtime import cuda, opencl
from tensorwright.runtime.device import Device, DeviceFacts

_COPIED_BYTES = 1 << 24
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """How fast bytes move, in bytes per second; the seconds until a short copy is done."""

    to_device: float
    on_device: float
    from_device: float
    round_trip_s: float


@dataclass(frozen=True, slots=True)
class MeasuredDevice:
    """A device, and its rates."""

    facts: DeviceFacts
    rates: DeviceRates


def measure_rates(device: Device) -> DeviceRates:
    """Copy some megabytes in each direction; the best of a few times counts."""
    array = np.zeros(_COPIED_BYTES, np.uint8)
    one, other = device.allocate(array.nbytes), device.allocate(array.nbytes)
    short = np.zeros(64, np.uint8)
    to_s = _best(lambda: device.copy_in(array, one))
    on_s = min(device.time(lambda: device.copy(one, other)) for _ in range(_REPEATS))
    from_s = _best(lambda: device.copy_out(other, array))
    trip_s = _best(lambda: device.copy_in(short, one))
    to, on, back = (array.nbytes / max(each, 1e-9) for each in (to_s, on_s, from_s))
    return DeviceRates(to, on, back, trip_s)


def measure_devices(api: GpuApi) -> tuple[MeasuredDevice, ...]:
    """All devices of a driver, the preferred one first; none without the driver."""
    if api is GpuApi.CUDA:
        cards = cuda.cuda_devices()
        return tuple(MeasuredDevice(facts, measure_rates(cuda.DEVICE)) for facts in cards)
    measured: list[MeasuredDevice] = []
    for facts in opencl.opencl_devices():
        with override(opencl_device=facts.name):
            measured.append(MeasuredDevice(facts, measure_rates(opencl.DEVICE)))
    return tuple(measured)


def _best(work: Callable[[], object]) -> float:
    """The least seconds of a few calls that are done on return."""
    times_s: list[float] = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - start)
    return min(times_s)


if __name__ == "__main__":
    print(json.dumps([asdict(each) for each in measure_devices(GpuApi(sys.argv[1]))]))
