"""The conditions of a report: machine, versions, noise."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from tensorwright.base import read_text
from tensorwright.machine import MachineState, detect_hardware
from tensorwright.records import record_tool
from tensorwright.report.numbers import Values, short
from tensorwright.tuning.session import SessionSetting

_PACKAGES = ("numpy", "llvmlite", "onnx", "lightgbm", "onnxruntime", "openvino")
_CPUINFO = Path("/proc/cpuinfo")


def machine_values(setting: SessionSetting) -> Values:
    """This machine and the versions of the packages that ran on it."""
    hardware = detect_hardware()
    return {
        "processor": _processor(),
        "fingerprint": setting.hardware or hardware.fingerprint,
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
