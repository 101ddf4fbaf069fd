"""Annotation, when all stages are decided: threads, placements, order of constants.

A derivation becomes several sketches of one family: the stages that feed the tiles are computed
before them, inside them at some depth, or inlined into each read.  Their choices have the same
names, so a candidate can move from one to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from tensorwright.base import ScheduleError
from tensorwright.schedule import (
    AtRoot,
    ComputeAt,
    ComputeInline,
    ForKind,
    Stage,
    Vectorize,
)
from tensorwright.tuning.space.axes.accesses import lanes_for, points
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.predicates import can_inline, contiguous_axis, is_untouched
from tensorwright.tuning.space.register_tile import nest, split_vectors
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import (
    is_cheap,
    pack_constants,
    parallelise,
    schedule_at_root,
)


class _Where(Enum):
    """Where the stages that feed a tile are computed; the value is the depth."""

    ROOT = "at the root"
    LARGE = "in large tiles"
    SMALL = "in small tiles"
    INLINE = "inlined"
    FOLD = "in the fold"


def sketches_of(derivation: Derivation) -> Iterator[Sketch]:
    """The sketches of a complete derivation, the likeliest first."""
    seen: set[object] = set()
    feeding = _feeding(derivation)
    is_fused = any(tile.host != tile.stage for tile in derivation.tiles)
    for where in _Where if feeding and is_fused else (_Where.ROOT,):
        try:
            sketch = _Annotation(derivation, feeding, where).sketch()
        except ScheduleError:
            continue  # the stages cannot be computed there
        if sketch is not None and sketch.trace not in seen:
            seen.add(sketch.trace)
            yield sketch


def _feeding(derivation: Derivation) -> tuple[str, ...]:
    """The stages that fold nothing and are only read inside one tiled stage, last first."""
    feeding: list[str] = []
    tiled = {tile.stage for tile in derivation.tiles}
    for stage in reversed(derivation.state.stages):
        if stage.tensor.reduction is not None or not is_untouched(derivation.state, stage):
            continue
        readers = {reader.name for reader in derivation.state.readers(stage.name)}
        if readers and readers <= tiled | set(feeding) and len(readers & tiled) < 2:
            feeding.append(stage.name)
    return tuple(feeding)


class _Annotation:
    """Mutable working state of one sketch."""

    def __init__(self, derivation: Derivation, feeding: tuple[str, ...], where: _Where) -> None:
        self.derivation = derivation
        self.feeding = feeding
        self.where = where
        self.builder: SketchBuilder = derivation.grow()

    def sketch(self) -> Sketch | None:
        """The sketch; None if the feeding stages cannot be computed where it wants them."""
        untouched = [s.name for s in self.builder.state.stages if self._is_open(s)]
        if self.where is not _Where.ROOT and not self._place_feeding():
            return None
        for name in untouched:
            if self.builder.state.has_stage(name):
                stage = self.builder.state.stage(name)
                if isinstance(stage.placement, AtRoot):
                    self._schedule_whole(stage)
        for tile in self.derivation.tiles:
            self._pack(tile.stage)
        family = ", ".join(self.derivation.notes) or "separate"
        where = [f"{name} {self.where.value}" for name in reversed(self.feeding)]
        name = "; ".join((family, *self.derivation.placements, *where))
        return self.builder.sketch(name, family)

    def _is_open(self, stage: Stage) -> bool:
        return is_untouched(self.builder.state, stage)

    def _place_feeding(self) -> bool:
        """Compute the feeding stages at the wanted depth; False if that is impossible."""
        for name in self.feeding:  # readers first
            if self.where is _Where.INLINE:
                is_light = is_cheap(self.builder.state.stage(name).tensor.body)
                if not is_light or not can_inline(self.builder.state, name):
                    return False
                self.builder.do(ComputeInline(name))
                continue
            loop = self._host_loop(name)
            if loop is None:
                return False
            self.builder.do(ComputeAt(name, *loop))
            axes = self.builder.state.stage(name).tensor.axes
            if axes and axes[-1].length >= 2:
                self.builder.do(Vectorize(name, axes[-1].name))
        return True

    def _host_loop(self, name: str) -> tuple[str, str] | None:
        depth = (_Where.LARGE, _Where.SMALL, _Where.FOLD).index(self.where)
        readers = {reader.name for reader in self.builder.state.readers(name)}
        for tile in self.derivation.tiles:
            inside = {tile.stage, *self.feeding}
            if readers <= inside and depth < len(tile.tile_loops):
                return tile.tile_loops[depth]
        return None

    def _schedule_whole(self, stage: Stage) -> None:
        """Schedule a stage at the root that no generator has scheduled."""
        if stage.tensor.reduction is None:
            schedule_at_root(self.builder, stage.name, self.derivation.target, stage.name)
        else:
            _fold_at_root(self.builder, stage, self.derivation)

    def _pack(self, name: str) -> None:
        """Pack the constants of a tiled stage, and prefetch those of the next tiles."""
        stage = self.builder.state.stage(name)
        folding = [x for x in stage.loops if x in stage.reduce_loops]
        loops = [x for x in folding if stage.kind(x) is ForKind.SERIAL]
        is_inside = not isinstance(stage.placement, AtRoot)
        pack_constants(self.builder, name, loops[-1:] if is_inside else ())


def _fold_at_root(builder: SketchBuilder, stage: Stage, derivation: Derivation) -> None:
    """A fold at the root: spatial loops outside and parallel, a contiguous one in lanes."""
    axes = [axis for axis in stage.tensor.axes if axis.extent != 1]
    lanes = contiguous_axis(stage.tensor, axes[-1:])
    outer = [axis.name for axis in axes if axis is not lanes]
    if lanes is not None:
        width = lanes_for(derivation.target, stage)
        vectors, vector = split_vectors(builder, stage.name, lanes.name, width)
        outer += vectors
        folds = [axis.name for axis in stage.tensor.reduce_axes]
        nest(builder, stage.name, (*outer, *folds), (), vector)
    parallelise(builder, stage.name, outer[:2], points(stage.tensor))
