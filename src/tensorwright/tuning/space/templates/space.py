"""The space of templates: those of a user first, then those that come with the package."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from tensorwright.base import ByKind, Target, TargetKind, of_kind
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.sketch import Sketch, distinct
from tensorwright.tuning.space.templates.direct import DIRECT
from tensorwright.tuning.space.templates.gpu import GPU_TEMPLATES
from tensorwright.tuning.space.templates.im2col import IM2COL
from tensorwright.tuning.space.templates.rows import ROWS
from tensorwright.tuning.space.templates.spatial_pack import SPATIAL_PACK
from tensorwright.tuning.space.templates.template import Template, own_templates
from tensorwright.tuning.space.templates.window import WINDOW
from tensorwright.tuning.space.templates.winograd import WINOGRAD

TEMPLATES: ByKind[Template] = {
    TargetKind.CPU: (DIRECT, SPATIAL_PACK, IM2COL, WINOGRAD, WINDOW, ROWS),
    TargetKind.GPU: GPU_TEMPLATES,
}
"""The templates that come with the package, in the order of asking."""


def template_sketches(
    state: ScheduleState, target: Target, algorithms: bool = True
) -> Iterator[Sketch]:
    """The sketches of all templates that apply, each made when it is asked for, none twice.

    algorithms   whether templates with other algorithms are asked
    """
    listed = of_kind(TEMPLATES, target, "templates")
    allowed = [each for each in listed if algorithms or not each.is_other_algorithm]
    asked = (each for each in (*own_templates(), *allowed) if each.applies(state, target))
    sketches = (sketch for each in asked for sketch in each.sketches(state, target))
    return distinct(sketches, attrgetter("trace", "limits"))
