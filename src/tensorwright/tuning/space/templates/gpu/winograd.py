"""Convolutions of 3 x 3 taps by Winograd's algorithm: AutoTVM's `conv2d_nchw_winograd`.

Knobs   tile_size        outputs of a tile along each direction; AutoTVM has no knob for it
        tile_b           positions of the transformed tiles: each is a product of its own blocks
        tile_y, tile_x   channels and tiles of the product, as `products.py`
        tile_rc          its terms: parts that are fetched, and the terms of a part
        auto_unroll_max_step   as `products.py`

Source:  Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
"""

from __future__ import annotations

from typing import Any

from tensorwright import schedule
from tensorwright.tuning.space.defaults.pointwise import inline_cheap
from tensorwright.tuning.space.derived.rules.batched_winograd import use_winograd
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.gpu import products
from tensorwright.tuning.space.templates.template import Template

_TABLE = products.BlockTable(
    (("tile_y", "rows", (1, 8, 4)), ("tile_x", "columns", (1, 8, 2))),
    (("tile_rc", "terms", (8,)),),
    (0, 1500, 128),
)
_TILES = (4, 2)


def conv2d_nchw_winograd(s: SketchBuilder, cfg: Configuration) -> bool:
    """Three launches: data to parts of tiles, one product for each part, parts to outputs.

    Gives whether the product is one of matrices: one tile of one image is a vector.
    """
    fold = products.find_fold(s.state)
    assert fold is not None, "the template applies"
    name, product = fold.name, f"{fold.name}_product"
    axes = s.state.stage(name).tensor.axes
    rows = next(x.length for x in axes if x.name == fold.axes["rows"])
    tile = cfg.define_knob("tile_size", _TILES if rows % 8 == 0 else tuple(reversed(_TILES)))
    inline_cheap(s, keep=schedule.reads_of(s.state.stage(name).tensor))
    transforms = use_winograd(s, name, tile)
    joined = schedule.UseAlgorithm(product, "implicit_gemm")
    if not schedule.is_legal(joined, s.state):
        return False
    s.do(joined)
    s.do(schedule.ComputeInline(product))
    s.do(schedule.FoldConstant(f"{product}_left"))
    cfg.define_split("tile_b", (tile + 2) ** 2, 4, candidates=[(1, 1, 1)])
    tensor = s.state.stage(f"{product}_product").tensor
    *_, high, wide = (axis.name for axis in tensor.axes)
    names = {"rows": high, "columns": wide, "terms": tensor.reduce_axes[0].name}
    products.compute_in_blocks(s, cfg, f"{product}_product", names, _TABLE)
    transforms.schedule(cfg.target)
    products.bind_others(s, cfg)
    return True


def _applies(state: schedule.ScheduleState, target: Any) -> bool:
    fold = products.find_fold(state)
    if fold is None or fold.form is not products.Form.CONVOLUTION:
        return False
    matched = schedule.find_convolution(state.stage(fold.name).tensor)
    return matched is not None and matched.kernel.source.name in state.constants


CONV2D_NCHW_WINOGRAD = Template(
    "conv2d_nchw_winograd", conv2d_nchw_winograd, _applies, is_other_algorithm=True
)
