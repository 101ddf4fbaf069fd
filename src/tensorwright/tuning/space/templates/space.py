"""The space of templates: those of one's own first, then those that come with the package."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from tensorwright.base import Target
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.sketch import Sketch, distinct
from tensorwright.tuning.space.templates.direct import DIRECT
from tensorwright.tuning.space.templates.template import Template, own_templates

TEMPLATES: tuple[Template, ...] = (DIRECT,)
"""The templates that come with the package, in the order of asking."""


def template_sketches(
    state: ScheduleState, target: Target, algorithms: bool = True
) -> Iterator[Sketch]:
    """The sketches of all templates that apply, each made when it is asked for, no trace twice.

    algorithms   whether those are asked that compute something by another algorithm
    """
    asked = (each for each in (*own_templates(), *TEMPLATES) if each.applies(state, target))
    sketches = (sketch for each in asked for sketch in each.sketches(state, target))
    return distinct(sketches, attrgetter("trace"))
