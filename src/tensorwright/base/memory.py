"""How much memory this machine has, and a refusal of what cannot fit into it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tensorwright.base.errors import MachineError


def physical_memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
