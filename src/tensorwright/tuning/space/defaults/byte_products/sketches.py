"""Schedules of a product of bytes, by each instruction that a target has; the best guess first."""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.base import CpuTarget
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.defaults.byte_products.dots import byte_dot_sketches
from tensorwright.tuning.space.defaults.byte_products.tiles import byte_tile_sketches
from tensorwright.tuning.space.sketch import Sketch

_SKETCHES = (byte_tile_sketches, byte_dot_sketches)


def byte_product_sketches(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketches; none if the target has no instruction that suits the program."""
    for each in _SKETCHES:
        yield from each(state, target)
