"""The part of a result file about the machine and the measured versions."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tensorwright.base import CpuTarget, knobs, now_utc
from tensorwright.cli.arguments.machine import warn_if_unfit
from tensorwright.machine import Ceilings, LoadWatch, MachineState, detect_hardware, kept_ceilings
from tensorwright.runtime.measuring import measure_bandwidth, measure_peak

_PACKAGES = (
    *("tensorwright", "llvmlite", "numpy", "onnx"),
    *("onnxruntime", "openvino", "torch", "apache-tvm"),
)
_PEAK_TRIES = 5


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The ceiling of this machine on some threads: flop/s, and bytes per second from memory."""

    threads: int
    peak: float
    bandwidth: float


def measure_ceiling(target: CpuTarget, threads: int, former: Ceiling | None = None) -> Ceiling:
    """The best of a few measurements, of a former ceiling, and of the kept one of this machine.

    Other processes can only lower a measurement. A warning says, once, that the
    machine is busy, or reaches less than was kept of it.
    """
    least = former or Ceiling(threads, 0.0, 0.0)
    kept = kept_ceilings(target, threads)
    watch = LoadWatch()
    peak = max(measure_peak(target, threads) for _ in range(_PEAK_TRIES))
    bandwidth = measure_bandwidth(target, threads)
    warn_if_unfit(MachineState(watch.load(), Ceilings(threads, peak, ()), kept))
    known_peaks = (least.peak, kept.flops_per_s) if kept is not None else (least.peak,)
    return Ceiling(threads, max(peak, *known_peaks), max(bandwidth, least.bandwidth))


def describe_machine(target: CpuTarget, ceiling: Ceiling) -> dict[str, object]:
    """Machine, ceiling and versions, for JSON."""
    versions: dict[str, str] = {}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    hardware = detect_hardware()
    return {
        "started": now_utc(),
        "machine": str(hardware).splitlines(),
        "fingerprint": hardware.fingerprint,
        "target": target.name,
        "threads": ceiling.threads,
        "peak_gflops": ceiling.peak / 1e9,
        "bandwidth_gbytes_per_s": ceiling.bandwidth / 1e9,
        "versions": versions,
    }


def peak_memory_bytes() -> int:
    """The most memory that this process has had at once.

    Where the kernel says it of the program alone: what `getrusage` says begins with that of the
    process by which this one was started.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def threads_of(threads: int | None) -> int:
    """The threads that were asked for, else those of the knob."""
    return knobs.THREADS.get() if threads is None else threads
