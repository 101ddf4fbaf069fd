"""Convolutions of 3 x 3 taps by Winograd's algorithm; the steps are those of the heuristic.

Knobs   tile_size, place   outputs of a tile along each direction, and where stages are computed
        and those of `defaults/winograd/stages.py`
"""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.defaults.winograd import (
    VARIANTS,
    Portion,
    schedule_winograd,
    winograd_anchor,
)
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.template import Template


def winograd(s: SketchBuilder, cfg: Configuration) -> bool:
    """The transforms and the product, for a band of tiles at a time or one after the other."""
    tile = cfg.define_knob("tile_size", tuple(dict.fromkeys(tile for tile, _ in VARIANTS)))
    portion = cfg.define_knob(
        "place", tuple(dict.fromkeys(portion.value for _, portion in VARIANTS))
    )
    return schedule_winograd(s, cfg.target, tile, Portion(portion))


def _applies(state: ScheduleState, target: CpuTarget) -> bool:
    return winograd_anchor(state, target) is not None


WINOGRAD = Template("winograd", winograd, _applies, is_other_algorithm=True)
