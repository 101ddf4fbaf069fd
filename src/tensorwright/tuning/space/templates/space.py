"""The space of templates: those of a user first, then those that come with the package.

Reductions along rows: softmax, normalisation, sums and maxima of rows.

All that a block of rows needs is computed inside a loop over blocks, so the input is read from
memory once.  A reduction along the contiguous axis is factored: its partial results fill vectors.

Knobs   block     rows of a block           vectors   partial results of a row, in vectors

Convolutions of 3 x 3 taps by Winograd's algorithm; the steps are those of the heuristic.

Knobs   tile_size, place   outputs of a tile along each direction, and where stages are computed
        and those of `defaults/winograd.py`
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from tensorwright import base, schedule
from tensorwright.tuning.space.accesses import is_contiguous, points
from tensorwright.tuning.space.defaults.products import is_product, shared_rows
from tensorwright.tuning.space.defaults.rows import schedule_rows
from tensorwright.tuning.space.defaults.winograd import VARIANTS, schedule_winograd, winograd_anchor
from tensorwright.tuning.space.defaults.winograd_sizes import Portion
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder, distinct
from tensorwright.tuning.space.steps import inline_elementwise
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.cpu import DIRECT, IM2COL, SPATIAL_PACK, WINDOW
from tensorwright.tuning.space.templates.gpu import GPU_TEMPLATES
from tensorwright.tuning.space.templates.template import Template, own_templates


def rows(s: SketchBuilder, cfg: Configuration) -> bool:
    """Blocks of rows on all threads, as the heuristic makes them."""
    return schedule_rows(s, cfg.target, cfg.define_knob("vectors", (1, 2, 4)))


def _applies(state: schedule.ScheduleState, target: base.CpuTarget) -> bool:
    """To programs whose rows need nothing of each other, with sums along the last axis."""
    folds = [stage.tensor for stage in state.stages if stage.tensor.reduction is not None]
    s = SketchBuilder(state)
    inline_elementwise(s)
    return (
        any(is_contiguous(tensor, tensor.reduce_axes[-1]) for tensor in folds)
        and not any(is_product(stage) for stage in state.stages)
        and all(points(tensor) for tensor in folds)
        and bool(shared_rows(s.state))
    )


ROWS = Template("rows", rows, _applies)


def winograd(s: SketchBuilder, cfg: Configuration) -> bool:
    """The transforms and the product, for a band of tiles at a time or one after the other."""
    tile = cfg.define_knob("tile_size", tuple(dict.fromkeys(tile for tile, _ in VARIANTS)))
    portion = cfg.define_knob(
        "place", tuple(dict.fromkeys(portion.value for _, portion in VARIANTS))
    )
    return schedule_winograd(s, cfg.target, tile, Portion(portion))


WINOGRAD = Template(
    "winograd",
    winograd,
    lambda state, target: winograd_anchor(state, target) is not None,
    is_other_algorithm=True,
)


TEMPLATES: base.ByKind[Template] = {
    base.TargetKind.CPU: (DIRECT, SPATIAL_PACK, IM2COL, WINOGRAD, WINDOW, ROWS),
    base.TargetKind.GPU: GPU_TEMPLATES,
}
"""The templates that come with the package, in the order of asking."""


def template_sketches(
    state: schedule.ScheduleState, target: base.Target, algorithms: bool = True
) -> Iterator[Sketch]:
    """The sketches of all templates that apply, each made when it is asked for, none twice.

    algorithms   whether templates with other algorithms are asked
    """
    listed = base.of_kind(TEMPLATES, target, "templates")
    allowed = [each for each in listed if algorithms or not each.is_other_algorithm]
    asked = (each for each in (*own_templates(), *allowed) if each.applies(state, target))
    sketches = (sketch for each in asked for sketch in each.sketches(state, target))
    return distinct(sketches, attrgetter("trace", "limits"))
