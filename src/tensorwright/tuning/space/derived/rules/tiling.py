"""Multi-level tiling: SSRSRS, alone or with the consumer fused at its tiles.

S are loops over the spatial axes, R over those of the reduction, from the outside inwards; the last
S is the register tile: unrolled, and vectors.  With fusion the consumer has the outer S loops, and
the stage is computed inside of them, in a local buffer of the size of a tile.

Constants: compute what depends on them alone when the program is built, write out small ones.

Stages that are not tiled: inlined into their readers, cached, or left.
"""

from __future__ import annotations

from math import prod

from tensorwright import schedule
from tensorwright.expr import Axis, Index, exact_div, loads_of
from tensorwright.tuning.space import accesses
from tensorwright.tuning.space.derived import derivation, tiled_axes
from tensorwright.tuning.space.register_tile import limits_of, nest
from tensorwright.tuning.space.roles import Role
from tensorwright.tuning.space.sketch import Kind, divisors
from tensorwright.tuning.space.steps import constant_stages, parallelise

FUSION_LEVELS = (2, 1)  # of the spatial tiles, the likelier first


def _is_fused(view: derivation.Derivation) -> derivation.Verdict:
    """If operands are used again and the consumer can be fused; a cache always is."""
    consumer = derivation.fusable_consumer(view.state, view.current)
    is_free = consumer is not None and not consumer.relations and not consumer.marks
    if not is_free or not derivation.has_data_reuse(view.state, view.current):
        return derivation.Verdict.NO
    if _plan(view, fuse=True) is None:
        return derivation.Verdict.NO
    is_cache = any(view.current == f"{name}_cache" for name in view.visited)
    return derivation.Verdict.YES_AND_SKIP_REST if is_cache else derivation.Verdict.YES


@derivation.rule("multi-level tiling with fusion", _is_fused)
def tile_fused(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Tile a stage with reuse and compute it in the tiles of its consumer, at level 1 or 2."""
    return tuple(_Tiling(view, level).derive() for level in FUSION_LEVELS)


def _is_tiled(view: derivation.Derivation) -> bool:
    """If operands are used again and vectors fit."""
    return derivation.has_data_reuse(view.state, view.current) and bool(_plan(view, fuse=False))


@derivation.rule("multi-level tiling", _is_tiled, is_last=True)
def tile(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Tile a stage with reuse separately: it folds into its tensor in memory."""
    return (_Tiling(view, 0).derive(),)


def _plan(view: derivation.Derivation, *, fuse: bool) -> tuple[tiled_axes.TileAxis, ...] | None:
    consumer = derivation.fusable_consumer(view.state, view.current) if fuse else None
    host = consumer.name if consumer is not None else view.current
    return tiled_axes.plan_axes(view.state, view.current, host, view.target)


class _Tiling:
    """Mutable working state while one stage is tiled; level 0: no fusion."""

    def __init__(self, view: derivation.Derivation, level: int) -> None:
        self.view = view
        self.level = level
        self.name = view.current
        self.base = self.name.removesuffix("_cache")
        consumer = derivation.fusable_consumer(view.state, self.name) if level else None
        self.host = consumer.name if consumer is not None else self.name
        axes = _plan(view, fuse=level > 0)
        assert axes is not None, "the generator has asked"
        self.axes = axes
        self.builder = view.grow()
        self.sizes: dict[str, tuple[Index, ...]] = {}

    def derive(self) -> derivation.Derivation:
        """Tile, and place what is tiled."""
        for axis in self.axes:
            if axis.is_tiled:
                names = tuple(f"{self.base}_{axis.own}_{n + 1}" for n in range(tiled_axes.LEVELS))
                self.sizes[axis.name] = self.builder.choose_rows(
                    names, axis.sizes, axis.default, Kind.TILE, self.base
                )
        width = accesses.lanes_for(self.view.target, self.view.stage)
        tiled_axes.limit_registers(self.builder, self.view.target, self.axes, self.sizes, width)
        places = self._tile_host() if self.level else []
        own_places = self._tile_stage()
        if places:  # last: later steps of a stage inside another one take longer to check
            self.builder.do(schedule.ComputeAt(self.name, *places[-1]))
        kind = "cached" if self.base != self.name else "fused" if self.level else "tiled"
        placement = f"{self.name} at {self.level}" if self.level else ""
        tile = derivation.TiledStage(self.name, self.host, (*places, *own_places))
        return self.view.then(self.builder, f"{self.base} {kind}", placement, tile)

    def _tile_host(self) -> list[tuple[str, str]]:
        """Split the consumer; the loops that hold its tiles."""
        builder, host = self.builder, self.host
        outer: list[str] = []
        middle: list[str] = []
        inner: dict[str, str] = {}
        for axis in self.axes:
            if not axis.is_tiled:
                is_whole = axis.role is Role.LANES
                inner |= {axis.name: axis.name} if is_whole else {}
                outer += [] if is_whole else [axis.name]
                continue
            sizes = self.sizes[axis.name]
            inside = prod(sizes[self.level - 1 :], start=1)
            factors = (*sizes[: self.level - 1], inside)
            step = schedule.Split(host, axis.name, factors, axis.tail)
            builder.do(step)
            outer.append(step.children[0])
            middle += step.children[1:-1]
            inner[axis.name] = step.children[-1]
        tile = [inner[axis.name] for axis in self._by_role() if axis.name in inner]
        *whole, vector = (*outer, *middle, *tile)
        nest(builder, host, whole, (), vector)
        loops = [self._parallelise(outer), *middle[-1:]]
        return [(host, loop) for loop in loops if loop]

    def _parallelise(self, outer: list[str]) -> str:
        """Let threads share the tiles; the loop that holds a largest tile, "" if there is one."""
        work = accesses.points(self.builder.state.stage(self.name).tensor)
        return parallelise(self.builder, self.host, outer, work) or (outer[-1] if outer else "")

    def _by_role(self) -> list[tiled_axes.TileAxis]:
        """Rows outside, columns inside: the columns use each read along the rows immediately."""
        order = list(Role)
        return sorted(self.axes, key=lambda axis: order.index(axis.role))

    def _tile_stage(self) -> list[tuple[str, str]]:
        """Split and order the loops of the stage; those that hold its tiles."""
        builder, name = self.builder, self.name
        spatial: list[list[str]] = [[] for _ in range(tiled_axes.LEVELS)]
        innermost: dict[str, str] = {}
        own = [axis.name for axis in self.view.stage.tensor.axes]
        for axis in sorted(self.axes, key=lambda axis: own.index(axis.own)):
            if not axis.is_tiled and axis.role is Role.LANES:
                innermost[axis.name] = axis.own
            elif not axis.is_tiled:
                spatial[0].append(axis.own)
            else:
                tail = axis.tail if axis.tail is not schedule.Tail.SHIFT else schedule.Tail.GUARD
                step = schedule.Split(name, axis.own, self.sizes[axis.name][self.level :], tail)
                builder.do(step)
                *larger, innermost[axis.name] = step.children
                for depth, loop in enumerate(reversed(larger)):
                    spatial[tiled_axes.LEVELS - 1 - depth].append(loop)
        tile = [innermost[axis.name] for axis in self._by_role() if axis.name in innermost]
        outer_fold, inner_fold, unrolled = self._split_reduction()
        loops = (*spatial[0], *spatial[1], *outer_fold, *spatial[2], *inner_fold)
        nest(builder, name, loops, (*unrolled, *tile[:-1]), tile[-1])
        held = outer_fold[-1:]
        if not self.level:
            held = [self._parallelise(spatial[0]), *spatial[1][-1:], *held]
        return [(name, loop) for loop in held if loop]

    def _split_reduction(self) -> tuple[list[str], list[str], list[str]]:
        """The loops of the reduction: (R0, R1, unrolled innermost)."""
        axes = [axis for axis in self.view.stage.tensor.reduce_axes if axis.extent != 1]
        limits = limits_of(self.view.target)
        if accesses.count_of(axes) <= limits.whole_fold:
            return [], [], [axis.name for axis in axes]
        main = max(axes, key=lambda axis: axis.length)
        extent = main.length
        blocked = accesses.period_along(loads_of(self.view.stage.tensor.body), main)
        block = blocked or max(divisors(extent, limits.unrolled))
        outer: list[str] = []
        inner: list[str] = []
        for axis in axes:
            if axis is main:
                continue
            size = self._choose_size(axis.name, axis.length, whole=blocked > 0)
            step = schedule.Split(self.name, axis.name, (size,), schedule.Tail.EXACT)
            self.builder.do(step)
            outer.append(step.children[0])
            inner.append(step.children[1])
        blocks = self._choose_size(main.name, extent // block, whole=True)
        unrolled = self.builder.choose(
            f"{self.base}_unroll",
            divisors(block, limits.unrolled),
            max(divisors(block, 4)),
            Kind.UNROLL,
            self.base,
        )
        factors = (blocks, exact_div(block, unrolled), unrolled)
        step = schedule.Split(self.name, main.name, factors, schedule.Tail.EXACT)
        self.builder.do(step)
        first, second, third, last = step.children
        return [first, *outer], [second, *inner, third], [last]

    def _choose_size(self, axis: str, extent: int, *, whole: bool) -> Index:
        """The extent of the inner loops over an axis of the reduction."""
        sizes = divisors(extent, extent)
        default = extent if whole else 1
        name = f"{self.base}_{axis}_1"
        return self.builder.choose(name, sizes, default, Kind.TILE, self.base)


_MOST_ELEMENTS = 64  # of a constant whose numbers are written out
_MOST_COPIES = 2048  # of the body


@derivation.rule(
    "fold constant", lambda view: view.current in constant_stages(view.state), is_last=True
)
def fold_constants(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Leave a stage that depends on a constant alone to the builder of the program."""
    builder = view.grow()
    builder.do(schedule.FoldConstant(view.current))
    return (view.then(builder),)


def moved_axes(view: derivation.Derivation) -> tuple[Axis, ...]:
    """The axes of the stage that a small constant moves along; none if unrolling does not pay."""
    tensor = view.stage.tensor
    small = [
        load
        for load in loads_of(tensor.body)
        if load.source.name in view.state.constants
        and accesses.elements_of(load.source) <= _MOST_ELEMENTS
    ]
    if tensor.reduction is None or not small:
        return ()
    moved = tuple(
        axis
        for axis in tensor.axes
        if axis.extent != 1 and any(accesses.reads_along(load, axis.var) for load in small)
    )
    copies = accesses.count_of((*moved, *tensor.reduce_axes))
    others = [axis for axis in tensor.axes if axis not in moved and axis.extent != 1]
    return moved if copies <= _MOST_COPIES and others else ()


@derivation.rule("simplify constant tensors", lambda view: bool(moved_axes(view)), is_last=True)
def simplify_constants(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Unroll the loops of a fold that move a small constant: the transforms of Winograd.

    Other axes lie outside, contiguous ones in lanes.
    """
    tensor = view.stage.tensor
    moved = moved_axes(view)
    others = [axis for axis in tensor.axes if axis not in moved]
    lanes = [axis for axis in others if accesses.is_contiguous(tensor, axis)][-1:]
    outer = [axis.name for axis in others if axis not in lanes]
    unrolled = [axis.name for axis in (*moved, *tensor.reduce_axes)]
    inner = [axis.name for axis in lanes]
    builder = view.grow()
    builder.do(schedule.Reorder(view.current, (*outer, *unrolled, *inner)))
    for loop in unrolled:
        builder.do(schedule.Unroll(view.current, loop))
    for loop in inner:
        builder.do(schedule.Vectorize(view.current, loop))
    return (view.then(builder, f"{view.current} unrolled"),)


@derivation.rule(
    "always inline",
    lambda view: derivation.is_strict_inlinable(view.state, view.current),
    is_last=True,
)
def always_inline(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Replace a strict inlinable stage by its definition in its readers."""
    builder = view.grow()
    builder.do(schedule.ComputeInline(view.current))
    return (view.then(builder),)


def _needs_cache(view: derivation.Derivation) -> bool:
    """If operands are used again, vectors fit, no consumer can be fused, and terms are many."""
    state, name = view.state, view.current
    if name.endswith("_rf") or not derivation.has_data_reuse(state, name):
        return False
    if derivation.has_fusable_consumer(state, name):
        return False
    return tiled_axes.plan_axes(state, name, name, view.target) is not None


@derivation.rule("add cache write", _needs_cache)
def add_cache_write(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Compute a stage with reuse into a cache, so that its tiles can be fused with the copy."""
    builder = view.grow()
    builder.do(schedule.CacheWrite(view.current))
    return (view.then(builder),)


@derivation.rule("skip", lambda view: True)
def skip(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Go on to the next stage. The placement of this one is decided at the end."""
    return (view.then(view.grow()),)


@derivation.rule("skip", lambda view: not view.current.endswith(("_cache", "_rf")))
def skip_given(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """As `skip`, but not past stages that other generators have made for themselves."""
    return (view.then(view.grow()),)
