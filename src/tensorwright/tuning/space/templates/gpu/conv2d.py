"""Convolutions of images, channels first: AutoTVM's `conv2d_nchw` and `depthwise_conv2d_nchw`.

Knobs   tile_f, tile_y, tile_x      channels, rows and columns of the result: blocks, virtual
                                    threads, threads, inner elements
        tile_rc, tile_ry, tile_rx   channels and taps of the reduction: parts that are fetched, and
                                    the terms of a part; `depthwise_conv2d_nchw` has none of them
        auto_unroll_max_step        inner loops that make no more steps are unrolled
        unrolled                    which of them: all terms of a part, or its taps
"""

from __future__ import annotations

from typing import Any

from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.gpu.block_tiles import (
    BlockTiles,
    bind_others,
    inline_others,
    open_tiles,
)
from tensorwright.tuning.space.templates.gpu.products import (
    ImageConvolution,
    find_image_convolution,
)
from tensorwright.tuning.space.templates.template import Template

_STEPS = (0, 1500, 512)
_DEPTHWISE_STEPS = (0, 1500, 256)
_TERMS = 8  # channels of a part of the reduction, by rule


def conv2d_nchw(s: SketchBuilder, cfg: Configuration) -> None:
    """Parts of image and kernel are fetched for each part of the reduction."""
    convolution = _opened(s.state)
    inline_others(s, convolution.name)
    tiles = open_tiles(s, cfg, convolution.name)
    _split_result(tiles, convolution)
    tiles.nest()
    names = (convolution.terms, *convolution.taps)
    whole = [1 if not name else tiles.extent(name) for name in names]
    folds = [
        tiles.split_fold(f"tile_{knob}", name, (min(size, _TERMS),))
        for knob, name, size in zip(("rc", "ry", "rx"), names, whole, strict=True)
    ]
    loop = tiles.compute(folds, _STEPS)
    tiles.fetch(tiles.fold, loop)
    bind_others(s, cfg)


def depthwise_conv2d_nchw(s: SketchBuilder, cfg: Configuration) -> None:
    """What a block reads of image and kernel is fetched before it computes."""
    convolution = _opened(s.state)
    inline_others(s, convolution.name)
    tiles = open_tiles(s, cfg, convolution.name)
    _split_result(tiles, convolution)
    block = tiles.nest()
    tiles.compute([(tap,) for tap in convolution.taps if tap], _DEPTHWISE_STEPS)
    tiles.fetch(tiles.host, block)
    bind_others(s, cfg)


def _split_result(tiles: BlockTiles, convolution: ImageConvolution) -> None:
    tiles.split("tile_f", convolution.channels, (1, 8, 2))
    tiles.split("tile_y", convolution.rows, (1, 1, 1))
    tiles.split("tile_x", convolution.columns, (1, 8, 2))


def _opened(state: ScheduleState) -> ImageConvolution:
    convolution = find_image_convolution(state)
    assert convolution is not None, "the template applies"
    return convolution


def _is_convolution(state: ScheduleState, target: Any) -> bool:
    convolution = find_image_convolution(state)
    return convolution is not None and not convolution.is_depthwise


def _is_depthwise(state: ScheduleState, target: Any) -> bool:
    convolution = find_image_convolution(state)
    return convolution is not None and convolution.is_depthwise


CONV2D_NCHW = Template("conv2d_nchw", conv2d_nchw, _is_convolution)
DEPTHWISE_CONV2D_NCHW = Template("depthwise_conv2d_nchw", depthwise_conv2d_nchw, _is_depthwise)
