"""Products of bytes, by the instructions that a target has. Read `dots.py` first."""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.base import CpuTarget
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.defaults.byte_products.dots import byte_dot_sketches
from tensorwright.tuning.space.defaults.byte_products.tiles import byte_tile_sketches
from tensorwright.tuning.space.sketch import Sketch

__all__ = ["byte_product_sketches"]

_SKETCHES = (byte_tile_sketches, byte_dot_sketches)


def byte_product_sketches(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketches, the best guess first; none if the target has no instruction that suits the
    program.
    """
    for each in _SKETCHES:
        yield from each(state, target)
