"""How much memory this machine has, and a refusal of what cannot fit into it."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path

from tensorwright.base.errors import MachineError


def physical_memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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


def check_fits(sizes: Mapping[str, int]) -> None:
    """Refuse tensors that are in memory at once and need more than there is.

    sizes    the bytes of each
    Raises:  MachineError that names the largest.
    """
    total, there = sum(sizes.values()), physical_memory_bytes()
    if total <= there:
        return
    largest = max(sizes, key=lambda name: sizes[name])
    among = "" if len(sizes) == 1 else f", with what is needed beside it {_gibibytes(total)}"
    raise MachineError(
        stage="memory",
        where=f"tensor {largest}",
        reason=f"it takes {_gibibytes(sizes[largest])}{among}; "
        f"this machine has {_gibibytes(there)}",
        remedy="give the inputs smaller shapes, or compile on a machine with more memory",
    )


def _gibibytes(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GiB"
