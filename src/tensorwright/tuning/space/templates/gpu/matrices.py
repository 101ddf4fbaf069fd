"""Products of matrices: AutoTVM's `dense_large_batch`, `dense_small_batch`, `batch_matmul`.

Knobs   tile_x, tile_y         rows and columns of a result of many rows: blocks, virtual threads,
                               threads, inner elements; of `batch_matmul` columns and rows: blocks,
                               threads, inner elements
        tile_k                 the reduction: parts that are fetched, parts of these, terms; of
                               `dense_small_batch` terms of a thread, and threads
        auto_unroll_max_step   of `batch_matmul`, as `conv2d.py`
"""

from __future__ import annotations

from typing import Any

from tensorwright.schedule import (
    Bind,
    ComputeAt,
    ForKind,
    Fuse,
    Rfactor,
    ScheduleState,
    Scope,
    SetScope,
)
from tensorwright.tuning.space.derived.predicates import fusable_consumer
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.gpu.block_tiles import (
    bind_others,
    inline_others,
    open_tiles,
)
from tensorwright.tuning.space.templates.gpu.products import DenseProduct, find_dense_product
from tensorwright.tuning.space.templates.template import Template
from tensorwright.tuning.space.templates.values import Sizes

_STEPS = (0, 64, 32, 16, 8)
_VIRTUAL = frozenset(1 << n for n in range(1, 7))
_THREADS = frozenset(1 << n for n in range(3, 7))
_TILES = (64, 128)


def dense_large_batch(s: SketchBuilder, cfg: Configuration) -> None:
    """Tiles of 64 or 128 rows and columns, where these divide the result; else of any size."""
    product = _opened(s.state)
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
    product = _opened(s.state)
    inline_others(s, product.name)
    tiles = open_tiles(s, cfg, product.name)
    tiles.split("tile_y", product.rows, (8, 2))
    tiles.split("tile_x", product.columns, (8, 2))
    tiles.nest()
    loop = tiles.compute([tiles.split_fold("tile_k", product.terms, (4,))], _STEPS)
    tiles.fetch(tiles.fold, loop)
    bind_others(s, cfg)


def dense_small_batch(s: SketchBuilder, cfg: Configuration) -> None:
    """A block computes one element: each thread sums some terms, one thread sums the sums."""
    name, terms = _opened(s.state).name, _opened(s.state).terms
    inline_others(s, name)
    consumer = fusable_consumer(s.state, name)
    extent = next(x.length for x in s.state.stage(name).tensor.reduce_axes if x.name == terms)
    knob = cfg.define_split("tile_k", extent, default=(64,), node=name)
    _, threads = knob.apply(s, name, terms)
    step = Rfactor(name, threads)
    s.do(step)
    host = name if consumer is None else consumer.name
    fuse = Fuse(host, tuple(axis.name for axis in s.state.stage(host).tensor.axes))
    s.do(fuse)
    s.do(Bind(host, fuse.fused, ForKind.BLOCK_X))
    for stage in (name, step.partial):
        if stage != host:
            s.do(ComputeAt(stage, host, fuse.fused))
    s.do(SetScope(step.partial, Scope.SHARED))
    s.do(Bind(step.partial, threads, ForKind.THREAD_X))
    bind_others(s, cfg)


def _opened(state: ScheduleState) -> DenseProduct:
    product = find_dense_product(state)
    assert product is not None, "the template applies"
    return product


def _is_single(state: ScheduleState, target: Any) -> bool:
    product = find_dense_product(state)
    return product is not None and not product.is_batched


def _is_batched(state: ScheduleState, target: Any) -> bool:
    product = find_dense_product(state)
    return product is not None and product.is_batched


DENSE_LARGE_BATCH = Template("dense_large_batch", dense_large_batch, _is_single)
DENSE_SMALL_BATCH = Template("dense_small_batch", dense_small_batch, _is_single)
BATCH_MATMUL = Template("batch_matmul", batch_matmul, _is_batched)
