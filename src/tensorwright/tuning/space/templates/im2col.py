"""Convolutions as products of matrices: windows are written out as columns first.

Knobs   tile_<axis>   as in `direct.py`
        columns_at    whether all columns are written first, or those of a thread's tiles
"""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.schedule import ScheduleState, UseAlgorithm, is_legal
from tensorwright.tuning.space.axes.roles import Role
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.direct import in_order, is_direct
from tensorwright.tuning.space.templates.product import open_product
from tensorwright.tuning.space.templates.template import Template


def im2col(s: SketchBuilder, cfg: Configuration) -> None:
    """A product of the columns, rows of its result outside."""
    step = _step(s.state)
    s.do(step)
    product = open_product(s, cfg)
    product.tile()
    is_whole = cfg.define_knob("columns_at", ("root", "band")) == "root"
    order = in_order(product, rows_first=True)
    loops = [axis for axis in order if axis.name in product.outer]
    rows = sum(axis.role not in (Role.COLUMNS, Role.LANES) for axis in loops)
    band = product.nest(order, len(loops) if is_whole else max(1, rows))
    if not is_whole:
        product.compute_at(f"{step.stage}_columns", band)
    product.compute(*product.split_fold())
    product.finish()


def _step(state: ScheduleState) -> UseAlgorithm:
    (name,) = (stage.name for stage in state.stages if stage.tensor.reduction is not None)
    return UseAlgorithm(name, "im2col")


def _applies(state: ScheduleState, target: CpuTarget) -> bool:
    return is_direct(state, target) and is_legal(_step(state), state)


IM2COL = Template("im2col", im2col, _applies)
