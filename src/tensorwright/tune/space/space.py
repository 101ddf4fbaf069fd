"""The space of a program: the sketches of every rule that applies, best guess first."""

from __future__ import annotations

from tensorwright.base import InternalError, Target
from tensorwright.schedule import ScheduleState
from tensorwright.tune.space.pointwise import pointwise_sketches
from tensorwright.tune.space.rows import row_sketches
from tensorwright.tune.space.sketch import Space
from tensorwright.tune.space.tile import tile_sketches
from tensorwright.tune.space.winograd import winograd_sketches

RULES = (tile_sketches, row_sketches, pointwise_sketches)
ALGORITHM_RULES = (winograd_sketches,)


def space_of(state: ScheduleState, target: Target) -> Space:
    """The schedules to try, the default first: those of the first rule that applies, then those
    that compute something by another algorithm.
    """
    for rule in RULES:
        sketches = rule(state, target)
        if sketches:
            others = (each for more in ALGORITHM_RULES for each in more(state, target))
            return Space((*sketches, *others))
    raise InternalError(stage="tune", where="space", reason="no rule applies to the program")
