"""Checks that drivers do not make: that a copy fits, and that a launch is a grid."""

from __future__ import annotations

from tensorwright.base import Grid, InternalError, Launch
from tensorwright.runtime.device import Memory


def check_copy(size_bytes: int, memory: Memory) -> None:
    """Check that the memory has room.  Raises: InternalError if it has not."""
    if size_bytes > memory.size_bytes:
        raise InternalError(
            stage="runtime",
            where=f"memory of {memory.size_bytes} bytes",
            reason=f"a copy of {size_bytes} bytes exceeds it",
        )


def grid_of(launch: Launch) -> Grid:
    """The launch as a grid.  Raises: InternalError for a launch on threads of a processor."""
    if not isinstance(launch, Grid):
        raise InternalError(stage="runtime", where=f"launch {launch}", reason="cards launch grids")
    return launch
