"""What the templates of products share: a reduction in tiles of the stage that stores it.

The stage that stores the result, the host, is split into tiles; the reduction is computed inside of
them, in a buffer of a tile's size.  All loops of the innermost tile are unrolled or vectors, so
that it stays in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from tensorwright import schedule
from tensorwright.base import CpuTarget, ScheduleError
from tensorwright.expr import Axis, Index, loads_of
from tensorwright.tuning.space import steps
from tensorwright.tuning.space.accesses import count_of, lanes_for, period_along, points
from tensorwright.tuning.space.derived.derivation import fusable_consumer, is_untouched
from tensorwright.tuning.space.derived.tiled_axes import TileAxis, limit_registers, plan_axes
from tensorwright.tuning.space.register_tile import limits_of, nest
from tensorwright.tuning.space.roles import Role, only_fold
from tensorwright.tuning.space.sketch import SketchBuilder, divisors
from tensorwright.tuning.space.templates.configuration import Configuration, SplitKnob

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
        return lanes_for(self.cfg.target, self.s.state.stage(self.anchor))

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
        work = points(self.s.state.stage(self.anchor).tensor)
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
        *_, (last, length) = steps.vector_loops(self.s, name, lanes_for(self.cfg.target, stage))
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
        if count_of(axes) <= limits.whole_fold:
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
        block = period_along(loads, main) or extent
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
    if fold is None or not points(fold.tensor):
        return False
    s = SketchBuilder(state)
    try:
        open_product(s, Configuration(s, target))
    except ScheduleError:
        return False
    return True
