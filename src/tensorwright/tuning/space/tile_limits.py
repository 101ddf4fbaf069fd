"""The largest values of decisions and knobs, by kind of machine.

Larger ones have never paid.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import ByKind, TargetKind, TargetProtocol, of_kind


@dataclass(frozen=True, slots=True)
class TileLimits:
    """The greatest values for machines of a kind.

    rows         of a register tile, along one axis
    block_rows   of a block of rows, and of the tile of a window
    innermost    elements of the innermost tile along the lanes; of a thread along one axis
    whole_fold   the most terms of a reduction that is unrolled whole
    unrolled     terms of a longer one
    iterations   of a parallel loop that balance well
    """

    rows: int
    block_rows: int
    innermost: int
    whole_fold: int
    unrolled: int
    iterations: int


CPU_LIMITS = TileLimits(
    rows=28, block_rows=8, innermost=64, whole_fold=16, unrolled=16, iterations=64
)
GPU_LIMITS = TileLimits(
    rows=8, block_rows=8, innermost=8, whole_fold=16, unrolled=32, iterations=1024
)
TILE_LIMITS: ByKind[TileLimits] = {TargetKind.CPU: (CPU_LIMITS,), TargetKind.GPU: (GPU_LIMITS,)}
"""One entry for each kind."""


def limits_of(target: TargetProtocol) -> TileLimits:
    """Those of a target's kind.  Raises: MachineError if it has none."""
    (limits,) = of_kind(TILE_LIMITS, target, "limits of tiles")
    return limits
