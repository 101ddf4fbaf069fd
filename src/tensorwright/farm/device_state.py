"""What a worker reports of its device: clock, temperature, load, and why it is set aside."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from tensorwright.base import (
    CpuTarget,
    Target,
    UsageError,
    available_cores,
    hold_lock,
    make_home,
    read_text,
    to_data,
)
from tensorwright.farm.farm import Device
from tensorwright.farm.unit import Payload
from tensorwright.machine import detect_hardware

_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
_CPUINFO = Path("/proc/cpuinfo")
_THERMAL = Path("/sys/class/thermal")

_NAMES: list[str] = []
"""The names that this process was given; the last one holds."""

_REASONS: list[str] = []
"""Why this worker's device is set aside; the last reason holds, until the process ends."""


def name_worker(name: str) -> None:
    """Set the name of this process in the farm."""
    _NAMES.append(name)


def worker_name() -> str:
    """The name of this process in the farm; "" if it is not a worker."""
    return _NAMES[-1] if _NAMES else ""


def device_for(target: Target) -> Device:
    """The device of this machine that runs programs for a target."""
    hardware = detect_hardware().fingerprint
    kind = hardware if isinstance(target, CpuTarget) else f"{hardware}+{target.key}"
    return Device(kind, hardware, json.dumps(to_data(target)), available_cores())


def set_aside(payload: Payload, _: Callable[[], bool]) -> Payload:
    """Let this worker report that its device must not measure: {"reason": why}."""
    _REASONS.append(str(payload.data["reason"]))
    return Payload()


def now(device: Device) -> Device:
    """A device with its present clock, temperature and load."""
    return replace(
        device,
        clock_mhz=_clock_mhz(),
        celsius=_celsius(),
        load=round(os.getloadavg()[0], 2),
        set_aside=_REASONS[-1] if _REASONS else "",
    )


def _clock_mhz() -> float:
    text = read_text(_CLOCK).strip()
    if text.isdigit():
        return int(text) / 1000
    lines = [line for line in read_text(_CPUINFO).splitlines() if line.startswith("cpu MHz")]
    return float(lines[0].partition(":")[2]) if lines else 0.0


def _celsius() -> float:
    texts = [read_text(path).strip() for path in _THERMAL.glob("thermal_zone*/temp")]
    return max((int(text) / 1000 for text in texts if text.lstrip("-").isdigit()), default=0.0)


@contextmanager
def own_device(target: Target, *, must: bool) -> Iterator[bool]:
    """Be the only worker of this user and machine that measures on a device, inside the block.

    must   whether another worker that measures on it is an error; else the block gets False
    Raises:  UsageError.
    """
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    path = make_home() / f"device-{digest}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        try:
            stack.enter_context(hold_lock(descriptor, 0.0))
        except TimeoutError:
            if must:
                raise UsageError(
                    stage="farm",
                    where=f"device {target}",
                    reason="another worker of this machine measures on it",
                    remedy="end that worker, or give --device none: this one then only builds",
                ) from None
            yield False
            return
        yield True
