"""Convolutions of 3 x 3 taps by Winograd's algorithm: AutoTVM's `conv2d_nchw_winograd`.

Knobs   tile_size        outputs of a tile along each direction; AutoTVM has no knob for it
        tile_b           positions of the transformed tiles: each is a product of its own blocks
        tile_y, tile_x   channels and tiles of the product, as `products.py`
        tile_rc          its terms: parts that are fetched, and the terms of a part
        auto_unroll_max_step   as `products.py`

Source:  Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorwright import schedule
from tensorwright.tuning.space.defaults.pointwise import deal_out
from tensorwright.tuning.space.derived.derivation import fusable_consumer
from tensorwright.tuning.space.derived.thread_tiles import stored_axes
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.gpu.block_tiles import (
    bind_others,
    inline_others,
    open_tiles,
)
from tensorwright.tuning.space.templates.gpu.products import find_image_convolution
from tensorwright.tuning.space.templates.template import Template

_STEPS = (0, 1500, 128)
_TILES = (4, 2)
_THREADS = 128  # of a block of a transform


def conv2d_nchw_winograd(s: SketchBuilder, cfg: Configuration) -> bool:
    """Three launches: data to parts of tiles, one product for each part, parts to outputs.

    Gives whether the product is one of matrices: one tile of one image is a vector.
    """
    convolution = find_image_convolution(s.state)
    assert convolution is not None, "the template applies"
    name = convolution.name
    rows = next(x.length for x in s.state.stage(name).tensor.axes if x.name == convolution.rows)
    tile = cfg.define_knob("tile_size", _TILES if rows % 8 == 0 else tuple(reversed(_TILES)))
    inline_others(s, name)
    consumer = fusable_consumer(s.state, name)
    host = name if consumer is None else consumer.name
    slides = (convolution.rows, convolution.columns)
    if host != name:
        tensors = (s.state.stage(each).tensor for each in (name, host))
        stored = {own: stored for stored, own in stored_axes(*tensors)}
        slides = (stored[slides[0]], stored[slides[1]])
    s.do(schedule.UseAlgorithm(name, f"winograd{tile}"))
    if host != name:
        s.do(schedule.ComputeInline(name))
    joined = schedule.UseAlgorithm(f"{name}_product", "implicit_gemm")
    if not schedule.is_legal(joined, s.state):
        return False
    s.do(joined)
    s.do(schedule.ComputeInline(f"{name}_product"))
    for part in ("kernel_f64", "kernel", "product_left"):
        s.do(schedule.FoldConstant(f"{name}_{part}"))
    _tile_product(s, cfg, f"{name}_product_product", (tile + 2) ** 2)
    _store(s, cfg, host, f"{name}_sums", slides, tile)
    _transform(s, cfg, name)
    bind_others(s, cfg)
    return True


def _tile_product(s: SketchBuilder, cfg: Configuration, name: str, positions: int) -> None:
    """The product of each position in blocks of threads."""
    *_, rows, columns = (axis.name for axis in s.state.stage(name).tensor.axes)
    (terms,) = (axis.name for axis in s.state.stage(name).tensor.reduce_axes)
    tiles = open_tiles(s, cfg, name)
    cfg.define_split("tile_b", positions, 4, candidates=[(1, 1, 1)])
    tiles.split("tile_y", rows, (1, 8, 4))
    tiles.split("tile_x", columns, (1, 8, 2))
    tiles.nest()
    loop = tiles.compute([tiles.split_fold("tile_rc", terms, (8,))], _STEPS)
    tiles.fetch(tiles.fold, loop)


def _store(
    s: SketchBuilder,
    cfg: Configuration,
    host: str,
    sums: str,
    slides: tuple[str, str],
    tile: int,
) -> None:
    """A thread computes the outputs of a tile; their sums are in its registers."""
    inner: list[str] = []
    outer = list(s.state.stage(host).loops)
    for loop in slides:
        step = schedule.Split(host, loop, (tile,))
        s.do(step)
        outer[outer.index(loop)] = step.children[0]
        inner.append(step.children[1])
    s.do(schedule.Reorder(host, (*outer, *inner)))
    thread = deal_out(s, host, tuple(outer), _threads(cfg))
    _unroll(s, host, inner)
    s.do(schedule.ComputeAt(sums, host, thread))
    _unroll(s, sums, ("p", "v"))


def _transform(s: SketchBuilder, cfg: Configuration, name: str) -> None:
    """A thread computes all parts of a tile of the data; what pads it is part of its reads."""
    columns, rows = f"{name}_columns", f"{name}_rows"
    for source in (f"{name}_data", *sorted(schedule.reads_of(s.state.stage(rows).tensor))):
        if s.state.has_stage(source) and schedule.is_legal(schedule.ComputeInline(source), s.state):
            s.do(schedule.ComputeInline(source))
    _, _, *others = s.state.stage(columns).loops
    s.do(schedule.Reorder(columns, (*others, "u", "v")))
    thread = deal_out(s, columns, tuple(others), _threads(cfg))
    _unroll(s, columns, ("u", "v"))
    s.do(schedule.ComputeAt(rows, columns, thread))
    first, *_, last = s.state.stage(rows).loops
    _unroll(s, rows, (first, last))


def _threads(cfg: Configuration) -> int:
    return int(min(_THREADS, cfg.target.threads_per_block))


def _unroll(s: SketchBuilder, name: str, loops: Iterable[str]) -> None:
    for loop in loops:
        s.do(schedule.Unroll(name, loop))


def _applies(state: schedule.ScheduleState, target: Any) -> bool:
    convolution = find_image_convolution(state)
    if convolution is None or convolution.is_depthwise:
        return False
    matched = schedule.find_convolution(state.stage(convolution.name).tensor)
    return matched is not None and matched.kernel.source.name in state.constants


CONV2D_NCHW_WINOGRAD = Template(
    "conv2d_nchw_winograd", conv2d_nchw_winograd, _applies, is_other_algorithm=True
)
