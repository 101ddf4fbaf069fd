"""The folds of AutoTVM's templates: convolutions of images, and products of matrices.

Convolutions of images, channels first: AutoTVM's `conv2d_nchw` and `depthwise_conv2d_nchw`.

Knobs   tile_f, tile_y, tile_x      channels, rows and columns of the result: blocks, virtual
                                    threads, threads, inner elements
        tile_rc, tile_ry, tile_rx   channels and taps of the reduction: parts that are fetched, and
                                    the terms of a part; `depthwise_conv2d_nchw` has none of them
        auto_unroll_max_step        inner loops that make no more steps are unrolled
        unrolled                    which of them: all terms of a part, or its taps

Products of matrices: AutoTVM's `dense_large_batch`, `dense_small_batch`, `batch_matmul`.

Knobs   tile_x, tile_y         rows and columns of a result of many rows: blocks, virtual threads,
                               threads, inner elements; of `batch_matmul` columns and rows: blocks,
                               threads, inner elements
        tile_k                 the reduction: parts that are fetched, parts of these, terms; of
                               `dense_small_batch` terms of a thread, and threads
        auto_unroll_max_step   of `batch_matmul`, as `products.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorwright import expr, schedule
from tensorwright.tuning.space.derived.derivation import fusable_consumer
from tensorwright.tuning.space.roles import only_fold
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration, Sizes
from tensorwright.tuning.space.templates.gpu.block_tiles import (
    BlockTiles,
    bind_others,
    inline_others,
    open_tiles,
)
from tensorwright.tuning.space.templates.template import Template


@dataclass(frozen=True, slots=True)
class ImageConvolution:
    """A convolution of images: names of its axes.

    channels, rows, columns   of the result     images   the other one
    terms, taps               of the reduction: channels, rows and columns of the kernel; "" where
                              there are none
    """

    name: str
    channels: str
    rows: str
    columns: str
    terms: str
    taps: tuple[str, str]

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel of the result reads one of the image."""
        return not self.terms


@dataclass(frozen=True, slots=True)
class DenseProduct:
    """A product of matrices, or of many: names of its axes."""

    name: str
    rows: str
    columns: str
    terms: str
    is_batched: bool


def find_image_convolution(state: schedule.ScheduleState) -> ImageConvolution | None:
    """The axes of a program that is a convolution NCHW, not grouped, or depthwise; or None."""
    fold = only_fold(state)
    loads = expr.multiplied_loads(fold.tensor) if fold is not None else None
    if fold is None or loads is None or not _has_plain_extents(fold.tensor):
        return None
    for data, kernel in (loads, loads[::-1]):
        convolution = _as_convolution(fold.tensor, data, kernel)
        if convolution is not None:
            return convolution
    return None


def _as_convolution(
    tensor: expr.Compute, data: expr.Load, kernel: expr.Load
) -> ImageConvolution | None:
    if not len(tensor.axes) == len(data.indices) == len(kernel.indices) == 4:
        return None
    images, channels, rows, columns = tensor.axes
    taps = [_tap(tensor, kernel.indices[n], data.indices[n]) for n in (2, 3)]
    slides = [axis.var in expr.free_vars(data.indices[n]) for n, axis in ((2, rows), (3, columns))]
    if data.indices[0] != images.var or kernel.indices[0] != channels.var or not all(slides):
        return None
    names: dict[expr.Index, str] = {axis.var: axis.name for axis in tensor.reduce_axes}
    terms = ""
    if data.indices[1] != channels.var:
        if data.indices[1] != kernel.indices[1] or data.indices[1] not in names:
            return None
        terms = names[data.indices[1]]
    elif kernel.indices[1] != 0:
        return None
    used = [name for name in (terms, *taps) if name]
    if len(used) != len(names) or None in taps:
        return None
    first, second = (tap or "" for tap in taps)
    return ImageConvolution(
        tensor.name, channels.name, rows.name, columns.name, terms, (first, second)
    )


def _tap(tensor: expr.Compute, in_kernel: expr.Index, in_data: expr.Index) -> str | None:
    """The axis of the reduction along one direction of the kernel, "" for one tap, None if none."""
    if in_kernel == 0:
        return ""
    names = {axis.var: axis.name for axis in tensor.reduce_axes}
    if not isinstance(in_kernel, expr.Var) or in_kernel not in expr.free_vars(in_data):
        return None
    return names.get(in_kernel)


def find_dense_product(state: schedule.ScheduleState) -> DenseProduct | None:
    """The axes of a program that is a product of matrices; or None."""
    fold = only_fold(state)
    loads = expr.multiplied_loads(fold.tensor) if fold is not None else None
    if fold is None or loads is None or not _has_plain_extents(fold.tensor):
        return None
    tensor = fold.tensor
    if len(tensor.axes) not in (2, 3) or len(tensor.reduce_axes) != 1:
        return None
    *batch, rows, columns = tensor.axes
    (terms,) = tensor.reduce_axes
    for left, right in (loads, loads[::-1]):
        along = [_plain_axes(tensor, load) for load in (left, right)]
        own = [{*(each or ())} - {axis.name for axis in batch} for each in along]
        if own == [{rows.name, terms.name}, {columns.name, terms.name}]:
            return DenseProduct(tensor.name, rows.name, columns.name, terms.name, bool(batch))
    return None


def _plain_axes(tensor: expr.Compute, load: expr.Load) -> tuple[str, ...] | None:
    """The axes that are the indices of a load; None if one is something else."""
    names: dict[expr.Index, str] = {a.var: a.name for a in (*tensor.axes, *tensor.reduce_axes)}
    indices = [index for index in load.indices if index != 0]
    if not all(index in names for index in indices):
        return None
    return tuple(names[index] for index in indices)


def _has_plain_extents(tensor: expr.Compute) -> bool:
    axes: tuple[expr.Axis, ...] = (*tensor.axes, *tensor.reduce_axes)
    return all(isinstance(axis.extent, int) and axis.extent > 0 for axis in axes)


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


def _opened(state: schedule.ScheduleState) -> ImageConvolution:
    convolution = find_image_convolution(state)
    assert convolution is not None, "the template applies"
    return convolution


def _is_convolution(state: schedule.ScheduleState, target: Any) -> bool:
    convolution = find_image_convolution(state)
    return convolution is not None and not convolution.is_depthwise


def _is_depthwise(state: schedule.ScheduleState, target: Any) -> bool:
    convolution = find_image_convolution(state)
    return convolution is not None and convolution.is_depthwise


CONV2D_NCHW = Template("conv2d_nchw", conv2d_nchw, _is_convolution)
DEPTHWISE_CONV2D_NCHW = Template("depthwise_conv2d_nchw", depthwise_conv2d_nchw, _is_depthwise)


_MATRIX_STEPS = (0, 64, 32, 16, 8)
_VIRTUAL = frozenset(1 << n for n in range(1, 7))
_THREADS = frozenset(1 << n for n in range(3, 7))
_TILES = (64, 128)


def dense_large_batch(s: SketchBuilder, cfg: Configuration) -> None:
    """Tiles of 64 or 128 rows and columns, where these divide the result; else of any size."""
    product = _opened_product(s.state)
    inline_others(s, product.name)
    tiles = open_tiles(s, cfg, product.name)
    is_regular = all(
        tiles.extent(axis) % _TILES[0] == 0 for axis in (product.rows, product.columns)
    )
    passes = _is_large if is_regular else None
    tiles.split("tile_x", product.rows, (2, 8, 4), passes)
    tiles.split("tile_y", product.columns, (2, 8, 4), passes)
    tiles.nest()
    loop = tiles.compute([tiles.split_fold("tile_k", product.terms, (4, 2))], ())
    tiles.fetch(tiles.fold, loop)
    bind_others(s, cfg)


def _is_large(sizes: Sizes) -> bool:
    _, virtual, threads, inner = sizes
    return virtual in _VIRTUAL and threads in _THREADS and virtual * threads * inner in _TILES


def batch_matmul(s: SketchBuilder, cfg: Configuration) -> None:
    """Tiles of each product; a block computes one."""
    product = _opened_product(s.state)
    inline_others(s, product.name)
    tiles = open_tiles(s, cfg, product.name)
    tiles.split("tile_y", product.rows, (8, 2))
    tiles.split("tile_x", product.columns, (8, 2))
    tiles.nest()
    loop = tiles.compute([tiles.split_fold("tile_k", product.terms, (4,))], _MATRIX_STEPS)
    tiles.fetch(tiles.fold, loop)
    bind_others(s, cfg)


def dense_small_batch(s: SketchBuilder, cfg: Configuration) -> None:
    """A block computes one element: each thread sums some terms, one thread sums the sums."""
    name, terms = _opened_product(s.state).name, _opened_product(s.state).terms
    inline_others(s, name)
    consumer = fusable_consumer(s.state, name)
    extent = next(x.length for x in s.state.stage(name).tensor.reduce_axes if x.name == terms)
    knob = cfg.define_split("tile_k", extent, default=(64,), node=name)
    _, threads = knob.apply(s, name, terms)
    step = schedule.Rfactor(name, threads)
    s.do(step)
    host = name if consumer is None else consumer.name
    fuse = schedule.Fuse(host, tuple(axis.name for axis in s.state.stage(host).tensor.axes))
    s.do(fuse)
    s.do(schedule.Bind(host, fuse.fused, schedule.ForKind.BLOCK_X))
    for stage in (name, step.partial):
        if stage != host:
            s.do(schedule.ComputeAt(stage, host, fuse.fused))
    s.do(schedule.SetScope(step.partial, schedule.Scope.SHARED))
    s.do(schedule.Bind(step.partial, threads, schedule.ForKind.THREAD_X))
    bind_others(s, cfg)


def _opened_product(state: schedule.ScheduleState) -> DenseProduct:
    product = find_dense_product(state)
    assert product is not None, "the template applies"
    return product


def _is_single(state: schedule.ScheduleState, target: Any) -> bool:
    product = find_dense_product(state)
    return product is not None and not product.is_batched


def _is_batched(state: schedule.ScheduleState, target: Any) -> bool:
    product = find_dense_product(state)
    return product is not None and product.is_batched


DENSE_LARGE_BATCH = Template("dense_large_batch", dense_large_batch, _is_single)
DENSE_SMALL_BATCH = Template("dense_small_batch", dense_small_batch, _is_single)
BATCH_MATMUL = Template("batch_matmul", batch_matmul, _is_batched)
