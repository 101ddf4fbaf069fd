"""Numbers of reports, rounded, as plain JSON."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from tensorwright.artifacts import loop_program
from tensorwright.base import Target, TensorwrightError, read_text
from tensorwright.machine import MachineState, detect_hardware
from tensorwright.records import Setting, record_tool
from tensorwright.runtime.measuring import faster_half
from tensorwright.schedule import Workload, parse_schedule
from tensorwright.tuning.session import Comparison

_DIGITS = 5
LATE = "the seconds for the report were spent"
"""Why a measurement of a report is missing."""

Values = dict[str, Any]
"""An object of JSON: text, numbers, lists and objects."""


def short(number: float | None) -> float | None:
    """A number with five digits; None if it is not finite, because JSON has no such numbers."""
    if number is None or not math.isfinite(number):
        return None
    return float(f"{number:.{_DIGITS}g}")


def micro(seconds: float | None) -> float | None:
    """Seconds as microseconds, with five digits."""
    return None if seconds is None else short(seconds * 1e6)


def timing(samples_s: Sequence[float]) -> Values:
    """The typical time of some turns, and the range of the faster half, as microseconds."""
    half = faster_half(samples_s)
    return {"time_us": micro(median(half)), "least_us": micro(half[0]), "most_us": micro(half[-1])}


def comparison_values(compared: Comparison) -> Values:
    """The times of the untuned and the tuned schedule in turns."""
    return {
        "untuned_us": micro(compared.untuned_s),
        "tuned_us": micro(compared.tuned_s),
        "speed_up": short(compared.speed_up),
        "least": short(compared.least),
        "most": short(compared.most),
        "is_same": compared.is_same,
        "is_sure": compared.is_sure,
    }


_MOST_CHARACTERS = 12_000
_CUT = "\n... (cut: {} more characters; `tensorwright inspect --what loop` shows all)"


def nest_values(workload: Workload, target: Target, schedules: dict[str, str]) -> Values:
    """The text of the loop nest of each schedule, or the reason why it cannot be lowered."""
    texts: Values = {}
    for name, schedule in schedules.items():
        try:
            text = str(loop_program(workload, parse_schedule(schedule), target))
        except TensorwrightError as error:
            text = f"it cannot be shown: {error.reason}"
        rest = len(text) - _MOST_CHARACTERS
        texts[name] = text if rest <= 0 else text[:_MOST_CHARACTERS] + _CUT.format(rest)
    return texts


_PACKAGES = ("numpy", "llvmlite", "onnx", "lightgbm", "onnxruntime", "openvino")
_CPUINFO = Path("/proc/cpuinfo")


def machine_values(setting: Setting) -> Values:
    """This machine and the versions of the packages that ran on it."""
    hardware = detect_hardware()
    return {
        "processor": _processor(),
        "fingerprint": setting.hardware,
        "cores": hardware.cores,
        "caches": [str(cache) for cache in hardware.caches],
        "threads": setting.threads,
        "target": setting.target.name,
        "system": f"{platform.system()} {platform.release()}",
        "versions": {
            "tensorwright": record_tool(),
            "python": platform.python_version(),
            **{name: version for name in _PACKAGES if (version := _version(name))},
        },
    }


def noise_values(state: MachineState | None) -> Values | None:
    """The load of other processes during the measurement; None if it was not measured."""
    if state is None:
        return None
    return {
        "is_busy": state.load.is_busy,
        "others": str(state.load),
        "peak_share": short(state.peak_share),
        "warning": state.warning,
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    """The name of the processor, as the processor reports it."""
    lines = (line.partition(":") for line in read_text(_CPUINFO).splitlines())
    names = (value.strip() for name, _, value in lines if name.strip() == "model name")
    return next(names, platform.processor() or platform.machine())
