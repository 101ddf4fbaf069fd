"""What the templates of products share: a reduction in tiles of the stage that stores it.

The stage that stores the result, the host, is split into tiles; the reduction is computed inside of
them, in a buffer of a tile's size.  All loops of the innermost tile are unrolled or vectors, so
that it stays in registers.

Products computed directly: convolutions of one to three dimensions, grouped, transposed; matmul.

Knobs   tile_<axis>   of the axes along which an operand is used again: tiles, and tiles in them
        tile_<axis>   of the longest axis of the reduction: how many of its terms are unrolled
        order         which operand stays in the cache while the other moves past it
        unroll_taps   whether the last axis of a window is unrolled, too

Convolutions as products of matrices: windows are written out as columns first.

Knobs   tile_<axis>   as above
        columns_at    whether all columns are written first, or those of a thread's tiles

Products whose activations are copied, tile by tile, into the order in which tiles read them.

Of a convolution a thread copies (or pads) the rows of its tiles; of a product of two activations
the columns.  What is copied for a tile stays in the cache while everything moves past it.

Knobs   tile_<axis>   as above
        pack_at       whether a copy serves a thread's share of the tiles, or one tile
        ann_reduce    which taps of a window are unrolled
        reorder_0     which loops of the reduction are outside

Windows that share no operand between rows: depthwise convolutions, pooling, sums of columns.

They are bound by memory: a tile is small, and what is beside the image is padded before, in the
tile, or not at all but decided tap by tap.

Knobs   tile_<axis>   of the lanes, and of the last two axes beside them
        padding       where what feeds the window is computed
        tile_<axis>   of the longest axis of the reduction: how many of its terms are unrolled
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tensorwright import schedule
from tensorwright.base import CpuTarget, ScheduleError
from tensorwright.expr import Axis, Index, loads_of
from tensorwright.tuning.space import accesses, steps
from tensorwright.tuning.space.derived.derivation import can_inline, fusable_consumer, is_untouched
from tensorwright.tuning.space.derived.tiled_axes import (
    TileAxis,
    limit_registers,
    plan_axes,
    row_tiles,
)
from tensorwright.tuning.space.knobs import Annotation, Order
from tensorwright.tuning.space.register_tile import limits_of, nest
from tensorwright.tuning.space.roles import Anchor, Role, only_fold
from tensorwright.tuning.space.sketch import SketchBuilder, divisors
from tensorwright.tuning.space.templates.configuration import INLINE, ROOT, Configuration, SplitKnob
from tensorwright.tuning.space.templates.template import Template

_MOST_WITH_TAPS = 32  # of a window whose taps are unrolled, too
_PARTS = 3  # loops over tiles, over tiles inside them, and in a tile


@dataclass(slots=True)
class Product:
    """A reduction and the stage that stores it; mutable while its template runs.

    axes      of the host, what each is for, and the tiles that make sense
    feeding   stages that the anchor reads, readers first
    outer, middle, inner   the host's loops, once it is split: over tiles, tiles inside, in a tile
    tile_loop   the host's loop that holds a tile, after nesting
    """

    s: SketchBuilder
    cfg: Configuration
    anchor: str
    host: str
    axes: tuple[TileAxis, ...]
    feeding: tuple[str, ...]
    outer: dict[str, str] = field(default_factory=dict)
    middle: dict[str, str] = field(default_factory=dict)
    inner: dict[str, str] = field(default_factory=dict)
    tile_loop: str = ""

    @property
    def width(self) -> int:
        """The number of elements of a vector."""
        return accesses.lanes_for(self.cfg.target, self.s.state.stage(self.anchor))

    def of(self, *roles: Role) -> list[TileAxis]:
        """The axes of some roles: rows before columns before lanes."""
        return sorted(
            (axis for axis in self.axes if axis.role in roles),
            key=lambda axis: list(Role).index(axis.role),
        )

    def tile(self) -> None:
        """Split the host's axes, each by a knob `tile_<axis>` of three parts."""
        sizes: dict[str, tuple[Index, ...]] = {}
        for axis in self.axes:
            if axis.is_tiled:
                knob = self._define_tile(axis)
                sizes[axis.name] = knob.sizes
                loops = knob.apply(self.s, self.host, axis.name)
                self.outer[axis.name], self.middle[axis.name], self.inner[axis.name] = loops
            elif axis.role is Role.LANES:
                self.inner[axis.name] = axis.name
            else:
                self.outer[axis.name] = axis.name
        limit_registers(self.s, self.cfg.target, self.axes, sizes, self.width)

    def _define_tile(self, axis: TileAxis) -> SplitKnob:
        rows = {row[1:] for row in axis.sizes if row[0] == 1}
        extents = {a.name: a.length for a in self.s.state.stage(self.host).tensor.axes}
        return self.cfg.define_split(
            f"tile_{axis.own}",
            extents[axis.name],
            _PARTS,
            candidates=sorted(rows),
            default=axis.default[1:],
            tail=axis.tail,
            node=self.anchor,
        )

    def nest(self, order: Sequence[TileAxis], shared: int) -> str:
        """Order the host's loops, and let threads share the first `shared` of those over tiles.

        Gives the loop that holds a thread's share, "" if nothing is shared.
        """
        outer = [self.outer[axis.name] for axis in order if axis.name in self.outer]
        middle = [self.middle[axis.name] for axis in order if axis.name in self.middle]
        roles = (Role.ROWS, Role.COLUMNS, Role.LANES)
        inner = [self.inner[axis.name] for axis in self.of(*roles) if axis.name in self.inner]
        nest(self.s, self.host, (*outer, *middle), inner[:-1], inner[-1])
        work = accesses.points(self.s.state.stage(self.anchor).tensor)
        band = steps.parallelise(self.s, self.host, outer[:shared], work)
        band = band or (outer[shared - 1] if outer else "")
        self.tile_loop = next(iter((*middle[-1:], *outer[shared:][-1:], band)))
        if self.tile_loop:
            self.s.do(schedule.ComputeAt(self.anchor, self.host, self.tile_loop))
        return band

    def compute_at(self, name: str, loop: str) -> None:
        """Compute what the anchor reads in a loop of the host, in vectors."""
        self.s.do(schedule.ComputeAt(name, self.host, loop))
        stage = self.s.state.stage(name)
        *_, (last, length) = steps.vector_loops(
            self.s, name, accesses.lanes_for(self.cfg.target, stage)
        )
        if length > 1:
            self.s.do(schedule.Vectorize(name, last))

    def split_fold(self, unrolled: Sequence[str] = ()) -> tuple[list[str], list[str]]:
        """Split the longest axis of the reduction by a knob, so that some terms are unrolled.

        unrolled   the axes of taps that are unrolled whole
        Gives the loops and the unrolled loops of the reduction, outermost first.
        """
        stage = self.s.state.stage(self.anchor)
        axes = [axis for axis in stage.tensor.reduce_axes if axis.extent != 1]
        limits = limits_of(self.cfg.target)
        if accesses.count_of(axes) <= limits.whole_fold:
            return [], [axis.name for axis in axes]
        taps = prod(axis.length for axis in axes if axis.name in unrolled)
        main = max(
            (axis for axis in axes if axis.name not in unrolled),
            key=lambda axis: axis.length,
        )
        others = [a.name for a in axes if a is not main and a.name not in unrolled]
        most = limits.unrolled if taps == 1 else max(1, _MOST_WITH_TAPS // taps)
        loops, last = self._split_main(main, min(limits.unrolled, most))
        return [*others, *loops], [*unrolled, last]

    def _split_main(self, main: Axis, most: int) -> tuple[list[str], str]:
        """The loops over an axis of the reduction, the last of which is to be unrolled."""
        loads = loads_of(self.s.state.stage(self.anchor).tensor.body)
        extent = main.length
        block = accesses.period_along(loads, main) or extent
        knob = self.cfg.define_split(
            f"tile_{main.name}",
            block,
            candidates=[(size,) for size in divisors(block, most)],
            default=(4,),
            node=self.anchor,
        )
        loops: list[str] = []
        loop = main.name
        if block < extent:
            step = schedule.Split(self.anchor, loop, (block,))
            self.s.do(step)
            blocks, loop = step.children
            loops.append(blocks)
        outer, last = knob.apply(self.s, self.anchor, loop)
        return [*loops, outer], last

    def compute(self, folding: Sequence[str], unrolled: Sequence[str]) -> None:
        """Nest the loops of the reduction: a tile in registers inside, its constants packed."""
        s, name = self.s, self.anchor
        stage = s.state.stage(name)
        own = [axis.own for axis in self.of(Role.ROWS, Role.COLUMNS) if axis.name in self.inner]
        (lanes,) = (axis.own for axis in self.of(Role.LANES))
        vector = lanes
        if any(axis.is_tiled for axis in self.of(Role.LANES)):
            step = schedule.Split(name, lanes, (self.width,))
            s.do(step)
            wide, vector = step.children
            own.append(wide)
        rest = [a.name for a in stage.tensor.axes if a.name not in own and a.name != lanes]
        nest(s, name, (*rest, *folding), (*unrolled, *own), vector)
        steps.pack_constants(s, name, folding[-1:])

    def finish(self) -> None:
        """Schedule the other stages, before and after the product."""
        own = {self.anchor, self.host}
        for stage in self.s.state.stages:
            if stage.name not in own and is_untouched(self.s.state, stage):
                steps.schedule_at_root(self.s, stage.name, self.cfg.target, stage.name)


def open_product(s: SketchBuilder, cfg: Configuration) -> Product:
    """Find the reduction, inline cheap stages around it, and give it a stage that stores it.

    Raises:  ScheduleError if there is no such product, or no axis for vectors.
    """
    (anchor,) = (stage.name for stage in s.state.stages if stage.tensor.reduction is not None)
    for name in steps.constant_stages(s.state):
        s.do(schedule.FoldConstant(name))
    read = schedule.reads_of(s.state.stage(anchor).tensor)
    feeding = tuple(stage.name for stage in s.state.stages if stage.name in read)
    steps.inline_elementwise(s, keep=frozenset(feeding))
    reader = fusable_consumer(s.state, anchor)
    host = anchor if reader is None else reader.name
    if reader is None:
        s.do(schedule.CacheWrite(anchor))
        anchor = schedule.CacheWrite(anchor).cached
    axes = plan_axes(s.state, anchor, host, cfg.target)
    if axes is None:
        raise ScheduleError(
            stage="tune",
            where=f"template for {host}",
            step=f"open_product({host})",
            reason="no vectors fit: every operand is read across its rows",
            remedy="let the template apply only where has_product holds",
        )
    return Product(s, cfg, anchor, host, axes, feeding)


def has_product(state: schedule.ScheduleState, target: CpuTarget) -> bool:
    """Whether a program has one output and one reduction, whose elements can be vectors."""
    fold = only_fold(state)
    if fold is None or not accesses.points(fold.tensor):
        return False
    s = SketchBuilder(state)
    try:
        open_product(s, Configuration(s, target))
    except ScheduleError:
        return False
    return True


def is_direct(state: schedule.ScheduleState, target: CpuTarget) -> bool:
    """To a product of two operands, each of which is used again along some axis."""
    return has_product(state, target) and any(accesses.has_reuse(s.tensor) for s in state.stages)


def direct(s: SketchBuilder, cfg: Configuration) -> None:
    """Tiles of the result on all threads; what feeds the product is computed before."""
    product = open_product(s, cfg)
    product.tile()
    order = cfg.define_knob("order", ("columns outside", "rows outside"))
    product.nest(in_order(product, rows_first=order == "rows outside"), shared=len(product.outer))
    folding, unrolled = product.split_fold(unrolled_taps(product))
    product.compute(folding, unrolled)
    product.finish()


def in_order(product: Product, *, rows_first: bool) -> list[TileAxis]:
    """The host's axes as its loops are nested: those along which everything moves outside."""
    rows, columns = product.of(Role.ROWS), product.of(Role.COLUMNS, Role.LANES)
    inside = (*rows, *columns) if rows_first else (*columns, *rows)
    return [*product.of(Role.BATCH), *inside]


def unrolled_taps(product: Product) -> tuple[str, ...]:
    """The last short axis of a reduction over several, where the knob says that it is unrolled."""
    axes = [a for a in product.s.state.stage(product.anchor).tensor.reduce_axes if a.extent != 1]
    most = limits_of(product.cfg.target).unrolled // 2
    if len(axes) < 2 or not 1 < axes[-1].length <= most:
        return ()
    is_unrolled = product.cfg.define_knob("unroll_taps", (False, True))
    return (axes[-1].name,) if is_unrolled else ()


DIRECT = Template("direct", direct, is_direct)


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


def _step(state: schedule.ScheduleState) -> schedule.UseAlgorithm:
    (name,) = (stage.name for stage in state.stages if stage.tensor.reduction is not None)
    return schedule.UseAlgorithm(name, "im2col")


IM2COL = Template(
    "im2col",
    im2col,
    lambda state, target: is_direct(state, target) and schedule.is_legal(_step(state), state),
)


def spatial_pack(s: SketchBuilder, cfg: Configuration) -> None:
    """Copies of activations in tiles of the result."""
    product = open_product(s, cfg)
    copy, is_wide = _copied(product)
    product.tile()
    order = in_order(product, rows_first=not is_wide)
    inside = (Role.ROWS,) if is_wide else (Role.COLUMNS, Role.LANES)
    loops = [axis for axis in order if axis.name in product.outer]
    shared = sum(axis.role not in inside for axis in loops)
    band = product.nest(order, max(1, shared))
    places = {"band": band, "tile": product.tile_loop}
    product.compute_at(copy, places[cfg.define_knob("pack_at", tuple(places))])
    folding, unrolled = product.split_fold(_unrolled_taps(product))
    if len(folding) > 1:
        orders = (folding, [folding[-1], *folding[:-1]])
        knob = cfg.define_reorder("reorder_0", folding, Order.CANDIDATES, candidates=orders)
        folding = list(knob.loops)
    product.compute(folding, unrolled)
    product.finish()


def _copied(product: Product) -> tuple[str, bool]:
    """The stage that is the copy of an activation, and whether it is that of the lanes."""
    anchor = Anchor(product.s.state, product.anchor, product.host)
    (lanes,) = (axis.name for axis in product.of(Role.LANES))
    (var,) = (axis.var for axis in anchor.axes if axis.name == lanes)
    given = [operand.load for operand in anchor.operands if not operand.is_constant]
    given.sort(key=lambda load: accesses.reads_along(load, var))
    name = given[-1].source.name
    is_wide = accesses.reads_along(given[-1], var)
    if name in product.feeding and anchor.state.has_stage(name):
        return name, is_wide
    step = schedule.CacheRead(name, product.anchor)
    product.s.do(step)
    return step.copy, is_wide


def _unrolled_taps(product: Product) -> tuple[str, ...]:
    """The taps that the knob says are unrolled, of the last two axes of a window."""
    axes = [a for a in product.s.state.stage(product.anchor).tensor.reduce_axes if a.extent != 1]
    most = limits_of(product.cfg.target).unrolled // 2
    taps = [a for a in axes[1:][-2:] if a.length <= most]
    if not taps:
        return ()
    names = [axis.name for axis in taps]
    words = (Annotation.NONE, Annotation.UNROLL)
    knob = product.cfg.define_annotate("ann_reduce", names, words)
    return tuple(
        loop
        for loop, word in zip(names, knob.annotations, strict=True)
        if word is Annotation.UNROLL
    )


SPATIAL_PACK = Template("spatial_pack", spatial_pack, is_direct)


def window(s: SketchBuilder, cfg: Configuration) -> None:
    """Small tiles, all taps of a small window unrolled."""
    product = open_product(s, cfg)
    inlined = [name for name in product.feeding if can_inline(s.state, name)]
    places = (INLINE, ROOT, "band") if inlined else (ROOT,)
    padding = cfg.define_knob("padding", places)
    if padding == INLINE:
        for name in inlined:
            s.do(schedule.ComputeInline(name))
    product.axes = _with_rows(product)
    product.tile()
    band = product.nest(in_order(product, rows_first=True), max(1, len(product.outer)))
    if padding == "band":
        for name in reversed(inlined):
            product.compute_at(name, band)
    product.compute(*product.split_fold(unrolled_taps(product)))
    product.finish()


def _with_rows(product: Product) -> tuple[TileAxis, ...]:
    """The axes, with tiles along the last two of those that have none, lanes aside."""
    extents = {a.name: a.length for a in product.s.state.stage(product.host).tensor.axes}
    others = [axis.name for axis in product.axes if axis.role is Role.BATCH][-2:]
    limits = limits_of(product.cfg.target)
    axes: list[TileAxis] = []
    for axis in product.axes:
        if axis.name in others:
            rows = row_tiles(extents[axis.name], most=limits.rows)
            rows = tuple(row for row in rows if row[-1] <= limits.block_rows)
            default = min(rows, key=lambda row: (row[:-1], abs(row[-1] - 2)))
            axis = replace(axis, role=Role.ROWS, sizes=rows, default=default)
        axes.append(axis)
    return tuple(axes)


WINDOW = Template(
    "window",
    window,
    lambda state, target: has_product(state, target) and not is_direct(state, target),
)
