"""AutoTVM's templates for graphics processors: tables of knobs over the levels of a tiled fold.

A block computes a tile of the result.  A knob says for each axis into how many blocks, positions
(virtual threads), threads and elements it is split; these divide the extent.  `tiled_fold.py` says
what these are, and takes the steps.

Knobs   tile_f, tile_y, tile_x      of convolutions: channels, rows and columns of the result
        tile_rc, tile_ry, tile_rx   of convolutions: channels and taps of the reduction, in parts
                                    that are fetched, and the terms of a part
        tile_x, tile_y              of products: rows and columns; of batches columns and rows
        tile_k                      of products: the reduction, as tile_rc; of `dense_small_batch`
                                    terms of a thread, and threads
        auto_unroll_max_step        inner loops that make no more steps are unrolled
        unrolled                    which of them: all terms of a part, or its taps

Convolutions of 3 x 3 taps may be Winograd's, too: three launches, of which the second is a product
for each part of the tiles.

Knobs   tile_size        outputs of a tile along each direction; AutoTVM has no knob for it
        tile_b           positions of the transformed tiles: each is a product of its own blocks
        tile_y, tile_x   channels and tiles of the product
        tile_rc          its terms: parts that are fetched, and the terms of a part

Source:  Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018; the templates of its
         program, TVM, for CUDA, whose names the knobs have; Lavin and Gray, Fast Algorithms for
         Convolutional Neural Networks, CVPR 2016.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any

from tensorwright import expr, schedule
from tensorwright.base import GpuTarget
from tensorwright.tuning.space.accesses import has_numbers
from tensorwright.tuning.space.defaults.pointwise import bind_rest, inline_cheap
from tensorwright.tuning.space.derived.derivation import fusable_consumer, is_untouched
from tensorwright.tuning.space.derived.rules.batched_winograd import use_winograd
from tensorwright.tuning.space.derived.tiled_fold import TiledFold
from tensorwright.tuning.space.roles import only_fold
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration, Filter, Sizes
from tensorwright.tuning.space.templates.template import Applies, Template

_UNROLL = "auto_unroll_max_step"
_Knob = tuple[str, str, Sizes]
"""Its name, the axis that it splits, and by rule the sizes of all parts but the first."""


@dataclass(frozen=True, slots=True)
class BlockTable:
    """The knobs of a template.

    result   of the axes of the result       passes   which of their sizes are tried
    terms    of the axes of the reduction; none: a block fetches all that it reads at once
    steps    values of the knob that says how much is unrolled besides the tile of a thread
    """

    result: tuple[_Knob, ...]
    terms: tuple[_Knob, ...] = ()
    steps: Sizes = ()
    passes: Filter | None = None


def compute_in_blocks(
    s: SketchBuilder, cfg: Configuration, name: str, axes: Mapping[str, str], table: BlockTable
) -> None:
    """Compute a fold in tiles of blocks whose sizes are knobs.

    axes   of the fold by their names in the table; "" if the program has none (the taps of 1 x 1):
           there is a knob, and no loop
    """
    tiled = TiledFold.of(s, name)
    tensor = s.state.stage(tiled.fold).tensor
    extents = {axis.name: axis.length for axis in (*tensor.axes, *tensor.reduce_axes)}
    for knob, axis, default in table.result:
        loop, extent = axes[axis], extents[axes[axis]]
        split = cfg.define_split(
            knob, extent, len(default) + 1, filter=table.passes, default=default, node=tiled.fold
        )
        if extent > 1:
            tiled.split(loop, (tiled.stored[loop],), split.sizes)
    tiled.store()
    terms: dict[tuple[str, ...], expr.Index] = {}
    if not table.terms:
        terms = {(axis.name,): axis.extent for axis in tensor.reduce_axes}
    for knob, axis, default in table.terms:
        extent = extents.get(axes[axis], 1)
        parts = len(default) + 1
        split = cfg.define_split(knob, extent, parts, default=default, node=tiled.fold)
        if extent > 1:
            terms[split.apply(s, tiled.fold, axes[axis])] = split.sizes[-1]
    middle = [loop for loops in terms for loop in loops[1:-1]]
    unrolled = _unrolled(cfg, tiled, {loops[-1]: size for loops, size in terms.items()}, table)
    part = tiled.sum(list(terms), (*middle, *unrolled))
    fetched_at = (tiled.fold, part) if table.terms else (tiled.host, tiled.block)
    for source in dict.fromkeys(load.source.name for load in expr.loads_of(tensor.body)):
        tiled.fetch(source, *fetched_at)


def _unrolled(
    cfg: Configuration, tiled: TiledFold, terms: Mapping[str, expr.Index], table: BlockTable
) -> Sequence[str]:
    """The unrolled inner loops of the reduction: all or taps, up to the steps of a knob."""
    most = cfg.define_knob(_UNROLL, table.steps) if table.steps else 0
    if not most:
        return ()
    is_whole = len(terms) < 2 or cfg.define_knob("unrolled", ("terms", "taps")) == "terms"
    loops = list(terms)[not is_whole :]
    tiled.builder.limit(prod((*tiled.accumulators, *(terms[loop] for loop in loops))), most)
    return loops


def bind_others(s: SketchBuilder, cfg: Configuration) -> None:
    """Bind what no step of a template has scheduled: a thread computes an element."""
    assert isinstance(cfg.target, GpuTarget), "a template of this kind gets no other target"
    done = frozenset(x.name for x in s.state.stages if not is_untouched(s.state, x))
    bind_rest(s, cfg.target, done)


class Form(Enum):
    """The programs that the templates are for."""

    CONVOLUTION = "convolution of images"
    DEPTHWISE = "depthwise convolution of images"
    PRODUCT = "product of matrices"
    PRODUCTS = "products of matrices"


@dataclass(frozen=True, slots=True)
class NamedFold:
    """A fold of one of the forms, and its axes by their names in the tables."""

    name: str
    form: Form
    axes: Mapping[str, str]


def find_fold(state: schedule.ScheduleState) -> NamedFold | None:
    """The fold of a program that is one of the forms; or None."""
    fold = only_fold(state)
    loads = expr.multiplied_loads(fold.tensor) if fold is not None else None
    if fold is None or loads is None or not has_numbers(fold.tensor):
        return None
    for pair in (loads, loads[::-1]):
        for find in (_as_convolution, _as_product):
            named = find(fold.tensor, *pair)
            if named is not None:
                return named
    return None


def _as_convolution(tensor: expr.Compute, data: expr.Load, kernel: expr.Load) -> NamedFold | None:
    """A convolution NCHW, not grouped, or depthwise."""
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
    axes = {"channels": channels.name, "rows": rows.name, "columns": columns.name, "terms": terms}
    axes |= {"tap rows": taps[0] or "", "tap columns": taps[1] or ""}
    return NamedFold(tensor.name, Form.CONVOLUTION if terms else Form.DEPTHWISE, axes)


def _tap(tensor: expr.Compute, in_kernel: expr.Index, in_data: expr.Index) -> str | None:
    """The axis of the reduction along one direction of the kernel, "" for one tap, None if none."""
    if in_kernel == 0:
        return ""
    names = {axis.var: axis.name for axis in tensor.reduce_axes}
    if not isinstance(in_kernel, expr.Var) or in_kernel not in expr.free_vars(in_data):
        return None
    return names.get(in_kernel)


def _as_product(tensor: expr.Compute, left: expr.Load, right: expr.Load) -> NamedFold | None:
    """A product of matrices, or one for each of a batch."""
    if len(tensor.axes) not in (2, 3) or len(tensor.reduce_axes) != 1:
        return None
    *batch, rows, columns = tensor.axes
    (terms,) = tensor.reduce_axes
    along = [_plain_axes(tensor, load) for load in (left, right)]
    own = [{*(each or ())} - {axis.name for axis in batch} for each in along]
    if own != [{rows.name, terms.name}, {columns.name, terms.name}]:
        return None
    axes = {"rows": rows.name, "columns": columns.name, "terms": terms.name}
    return NamedFold(tensor.name, Form.PRODUCTS if batch else Form.PRODUCT, axes)


def _plain_axes(tensor: expr.Compute, load: expr.Load) -> tuple[str, ...] | None:
    """The axes that are the indices of a load; None if one is something else."""
    names: dict[expr.Index, str] = {a.var: a.name for a in (*tensor.axes, *tensor.reduce_axes)}
    indices = [index for index in load.indices if index != 0]
    if not all(index in names for index in indices):
        return None
    return tuple(names[index] for index in indices)


_RESULT = (("tile_f", "channels", (1, 8, 2)), ("tile_y", "rows", (1, 1, 1)))
_IMAGE = (*_RESULT, ("tile_x", "columns", (1, 8, 2)))
_TERMS = (("tile_rc", "terms", (8,)), ("tile_ry", "tap rows", (8,)))
_CONVOLUTION = BlockTable(_IMAGE, (*_TERMS, ("tile_rx", "tap columns", (8,))), (0, 1500, 512))
_DEPTHWISE = BlockTable(_IMAGE, (), (0, 1500, 256))
_DENSE = BlockTable(
    (("tile_x", "rows", (2, 8, 4)), ("tile_y", "columns", (2, 8, 4))),
    (("tile_k", "terms", (4, 2)),),
)
_BATCH = BlockTable(
    (("tile_y", "rows", (8, 2)), ("tile_x", "columns", (8, 2))),
    (("tile_k", "terms", (4,)),),
    (0, 64, 32, 16, 8),
)
_VIRTUAL = frozenset(1 << n for n in range(1, 7))
_THREADS = frozenset(1 << n for n in range(3, 7))
_TILES = (64, 128)


def _is_large(sizes: Sizes) -> bool:
    _, virtual, threads, inner = sizes
    return virtual in _VIRTUAL and threads in _THREADS and virtual * threads * inner in _TILES


def dense_large_batch(s: SketchBuilder, cfg: Configuration) -> None:
    """Tiles of 64 or 128 rows and columns, where these divide the result; else of any size."""
    product = _opened(s.state)
    sides = (product.axes["rows"], product.axes["columns"])
    extents = (x.length for x in s.state.stage(product.name).tensor.axes if x.name in sides)
    is_regular = all(extent % _TILES[0] == 0 for extent in extents)
    _in_blocks(s, cfg, replace(_DENSE, passes=_is_large) if is_regular else _DENSE)


def dense_small_batch(s: SketchBuilder, cfg: Configuration) -> None:
    """A block computes one element: each thread sums some terms, one thread sums the sums."""
    name, terms = _opened(s.state).name, _opened(s.state).axes["terms"]
    inline_cheap(s, keep=schedule.reads_of(s.state.stage(name).tensor))
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


def _opened(state: schedule.ScheduleState) -> NamedFold:
    fold = find_fold(state)
    assert fold is not None, "the template applies"
    return fold


def _in_blocks(s: SketchBuilder, cfg: Configuration, table: BlockTable) -> None:
    fold = _opened(s.state)
    inline_cheap(s, keep=schedule.reads_of(s.state.stage(fold.name).tensor))
    compute_in_blocks(s, cfg, fold.name, fold.axes, table)
    bind_others(s, cfg)


def _is(form: Form) -> Applies:
    def applies(state: schedule.ScheduleState, target: Any) -> bool:
        fold = find_fold(state)
        return fold is not None and fold.form is form

    return applies


def _of_table(name: str, form: Form, table: BlockTable) -> Template:
    return Template(name, lambda s, cfg: _in_blocks(s, cfg, table), _is(form))


CONV2D_NCHW = _of_table("conv2d_nchw", Form.CONVOLUTION, _CONVOLUTION)
DEPTHWISE_CONV2D_NCHW = _of_table("depthwise_conv2d_nchw", Form.DEPTHWISE, _DEPTHWISE)
DENSE_LARGE_BATCH = Template("dense_large_batch", dense_large_batch, _is(Form.PRODUCT))
DENSE_SMALL_BATCH = Template("dense_small_batch", dense_small_batch, _is(Form.PRODUCT))
BATCH_MATMUL = _of_table("batch_matmul", Form.PRODUCTS, _BATCH)


_WINOGRAD = BlockTable(
    (("tile_y", "rows", (1, 8, 4)), ("tile_x", "columns", (1, 8, 2))),
    (("tile_rc", "terms", (8,)),),
    (0, 1500, 128),
)
_OUTPUTS = (4, 2)


def conv2d_nchw_winograd(s: SketchBuilder, cfg: Configuration) -> bool:
    """Three launches: data to parts of tiles, one product for each part, parts to outputs.

    Gives whether the product is one of matrices: one tile of one image is a vector.
    """
    fold = find_fold(s.state)
    assert fold is not None, "the template applies"
    name, product = fold.name, f"{fold.name}_product"
    axes = s.state.stage(name).tensor.axes
    rows = next(x.length for x in axes if x.name == fold.axes["rows"])
    tile = cfg.define_knob("tile_size", _OUTPUTS if rows % 8 == 0 else tuple(reversed(_OUTPUTS)))
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
    compute_in_blocks(s, cfg, f"{product}_product", names, _WINOGRAD)
    transforms.schedule(cfg.target)
    bind_others(s, cfg)
    return True


def _is_winograd(state: schedule.ScheduleState, target: Any) -> bool:
    fold = find_fold(state)
    if fold is None or fold.form is not Form.CONVOLUTION:
        return False
    matched = schedule.find_convolution(state.stage(fold.name).tensor)
    return matched is not None and matched.kernel.source.name in state.constants


CONV2D_NCHW_WINOGRAD = Template(
    "conv2d_nchw_winograd", conv2d_nchw_winograd, _is_winograd, is_other_algorithm=True
)
GPU_TEMPLATES = (
    CONV2D_NCHW,
    CONV2D_NCHW_WINOGRAD,
    DEPTHWISE_CONV2D_NCHW,
    DENSE_LARGE_BATCH,
    DENSE_SMALL_BATCH,
    BATCH_MATMUL,
)
"""In the order of asking."""
