"""How a tile fetches its operands: how far ahead, by which copies, and with which memory layout.

These are structure, not numbers, so each combination is a sketch of the same family.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.base import GpuTarget
from tensorwright.schedule import (
    At,
    CopyMechanism,
    Layout,
    LayoutKind,
    Pipeline,
    Trace,
    fetched_in,
    is_legal,
)
from tensorwright.tuning.space.derived.derivation import Derivation, TiledStage
from tensorwright.tuning.space.sketch import SketchBuilder

_Ahead = tuple[int, CopyMechanism]
_RowsLayout = tuple[LayoutKind, int]

_COPIES, _REGISTERS = (3, CopyMechanism.CP_ASYNC), (2, CopyMechanism.REGISTERS)
_VARIANTS: tuple[tuple[_Ahead | None, _RowsLayout | None], ...] = (
    (_COPIES, None),
    (_REGISTERS, None),
    (_COPIES, (LayoutKind.PADDED, 4)),
    (_REGISTERS, (LayoutKind.PADDED, 4)),
    (_COPIES, (LayoutKind.XOR, 128)),
    (_REGISTERS, (LayoutKind.XOR, 128)),
    ((2, CopyMechanism.CP_ASYNC), None),
    ((4, CopyMechanism.CP_ASYNC), None),
    (None, None),
)
"""The likeliest first: asynchronous copies take no registers of the threads."""


def fetch_variants(derivation: Derivation) -> Iterator[tuple[str, SketchBuilder]]:
    """Each way to fetch the operands of the tiles: its name, and the steps up to there.

    If operands are computed while they are fetched, and on cards without asynchronous copies,
    threads copy.
    """
    fetches = [tile for tile in derivation.tiles if len(tile.tile_loops) > 1]
    seen: set[Trace] = set()
    for ahead, rows_layout in _VARIANTS if fetches else ((None, None),):
        builder = derivation.grow()
        words = [_fetch_ahead(builder, derivation.target, tile, ahead) for tile in fetches]
        if ahead is not None and not any(words):
            continue
        if rows_layout is not None:
            words += [_lay_out(builder, tile.tile_loops[1], rows_layout) for tile in fetches]
        steps = tuple(builder.steps)
        if steps not in seen:
            seen.add(steps)
            yield ", ".join(filter(None, words)), builder


def _fetch_ahead(
    builder: SketchBuilder, target: GpuTarget, tile: TiledStage, ahead: _Ahead | None
) -> str:
    """Pipeline the loop over the parts of a tile if that is possible; "" if it is not."""
    if ahead is None:
        return ""
    stages, mechanism = ahead
    fetch = tile.tile_loops[1]
    can_copy = target.copies_ahead and tile.copies
    if mechanism is CopyMechanism.CP_ASYNC and not can_copy:
        return ""
    here = At(*fetch)
    fetched = [stage for stage in builder.state.stages if stage.placement == here]
    step = Pipeline(*fetch, stages, mechanism)
    is_whole = len(fetched_in(builder.state, *fetch, mechanism)) == len(fetched)
    if not fetched or not is_whole or not is_legal(step, builder.state):
        return ""
    builder.do(step)
    return f"{stages} stages by {mechanism.value}"


def _lay_out(builder: SketchBuilder, fetch: tuple[str, str], rows_layout: _RowsLayout) -> str:
    """Lay out what a tile fetches in one way."""
    kind, amount = rows_layout
    here = At(*fetch)
    for stage in builder.state.stages:
        if stage.placement == here:
            builder.do(Layout(stage.name, kind, amount))
    return kind.value
