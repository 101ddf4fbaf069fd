"""The sketches that are derived for a program: annotated, without doubles, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from tensorwright.base import Target
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.derived.annotate import sketches_of
from tensorwright.tuning.space.derived.engine import derive
from tensorwright.tuning.space.sketch import Sketch

MOST_SKETCHES = 9


def derived_sketches(
    state: ScheduleState, target: Target, most: int = MOST_SKETCHES
) -> tuple[Sketch, ...]:
    """Up to `most` sketches: of every family the likeliest, then of every family the next."""
    ways = [sketches_of(derivation) for derivation in derive(state, target)]
    found: dict[str, Sketch] = {}
    for sketch in _in_turns(ways):
        found.setdefault(sketch.name, sketch)
        if len(found) == most:
            break
    return tuple(found.values())


def _in_turns(ways: Sequence[Iterator[Sketch]]) -> Iterator[Sketch]:
    """The first of each, then the second of each, and so on."""
    for row in zip_longest(*ways):
        yield from (sketch for sketch in row if sketch is not None)
