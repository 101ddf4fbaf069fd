"""Regions of stages that are read through quotients: a tile of channels that lie in blocks."""

from __future__ import annotations

import pytest

from tensorwright import schedule
from tensorwright.expr import Decision, compute, placeholder


def blocked(tile: int | Decision) -> schedule.ScheduleState:
    """y[c] = t[c // 16, c % 16] in tiles of y, shifted; t is computed in the tile."""
    x = placeholder("x", (16, 16))
    t = compute("t", (16, 16), lambda o, i: x[o, i] * 2.0)
    y = compute("y", (256,), lambda c: t[c // 16, c % 16] + 1.0)
    steps = (
        schedule.Split("y", "c", (tile,), schedule.Tail.SHIFT),
        schedule.ComputeAt("t", "y", "c_o"),
    )
    return schedule.replay(schedule.initial_state((y,)), steps)


@pytest.mark.parametrize(
    ("tile", "blocks"), [(4, 1), (16, 1), (32, 2), (13, 2), (17, 2), (18, 3), (40, 4)]
)
def test_a_tile_computes_the_blocks_that_it_can_touch(tile: int, blocks: int) -> None:
    nest = schedule.analyse(blocked(tile)).nests["t"]
    assert nest.region.extents[0] == blocks


def test_open_tiles_are_bounded_by_their_size() -> None:
    nest = schedule.analyse(blocked(Decision("tile"))).nests["t"]
    assert str(nest.region.extents[0]) == "((?tile + 14)//16) + 1"
