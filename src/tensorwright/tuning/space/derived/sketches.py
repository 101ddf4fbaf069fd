"""The sketches that are derived for a program: annotated, without doubles, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

from tensorwright.base import CpuTarget
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.derived.annotate import sketches_of
from tensorwright.tuning.space.derived.engine import derive
from tensorwright.tuning.space.sketch import Sketch, distinct

MOST_SKETCHES = 9


def derived_sketches(
    state: ScheduleState, target: CpuTarget, most: int = MOST_SKETCHES
) -> Iterator[Sketch]:
    """Up to `most` sketches: of every family the likeliest, then of every family the next.

    Each is worked out when it is asked for.
    """
    return islice(
        distinct(_in_turns(map(sketches_of, derive(state, target))), attrgetter("name")), most
    )


def _in_turns(alternatives: Iterable[Iterator[Sketch]]) -> Iterator[Sketch]:
    """The first of each, then the second of each, and so on."""
    while True:
        more: list[Iterator[Sketch]] = []
        for sketches in alternatives:
            for sketch in islice(sketches, 1):
                yield sketch
                more.append(sketches)
        if not more:
            return
        alternatives = more
