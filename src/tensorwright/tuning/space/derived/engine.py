"""The derivation: every generator that applies, stage by stage, until all stages are decided.

Its sketches are annotated, without doubles, the likeliest first.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.1.

Annotation, when all stages are decided: threads, placements, order of constants.

A derivation becomes several sketches of one family: the stages that feed the tiles are computed
before them, inside them at some depth, or inlined into each read.  Their choices have the same
names, so a candidate can move from one to another.

Sketches for graphics processors: stages without a decision are bound to blocks and threads.

What the device would refuse becomes limits of the decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice
from operator import attrgetter

from tensorwright import base, schedule
from tensorwright.tuning.space import steps
from tensorwright.tuning.space.accesses import lanes_for
from tensorwright.tuning.space.defaults.pointwise import bind_rest, inline_cheap
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    SketchRule,
    Verdict,
    can_inline,
    contiguous_axis,
    is_untouched,
    own_rules,
)
from tensorwright.tuning.space.derived.device_limits import keep_to_device
from tensorwright.tuning.space.derived.row_program import stream
from tensorwright.tuning.space.derived.rules import GENERATORS, WINOGRAD_RULES
from tensorwright.tuning.space.derived.thread_tiles import fetch_variants
from tensorwright.tuning.space.register_tile import nest, split_vectors
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder, distinct


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
        except base.ScheduleError:
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
        untouched = [
            s.name for s in self.builder.state.stages if is_untouched(self.builder.state, s)
        ]
        if self.where is not _Where.ROOT and not self._place_feeding():
            return None
        for name in untouched:
            if self.builder.state.has_stage(name):
                stage = self.builder.state.stage(name)
                if not isinstance(stage.placement, schedule.AtRoot):
                    continue
                if stage.tensor.reduction is None:
                    steps.schedule_at_root(self.builder, name, self.derivation.target, name)
                else:
                    _fold_at_root(self.builder, stage, self.derivation)
        for tile in self.derivation.tiles:
            self._pack(tile.stage)
        family = ", ".join(self.derivation.notes) or "separate"
        where = [f"{name} {self.where.value}" for name in reversed(self.feeding)]
        name = "; ".join((family, *self.derivation.placements, *where))
        return self.builder.sketch(name, family)

    def _place_feeding(self) -> bool:
        """Compute the feeding stages at the wanted depth; False if that is impossible."""
        for name in self.feeding:  # readers first
            if self.where is _Where.INLINE:
                is_light = steps.is_cheap(self.builder.state.stage(name).tensor.body)
                if not is_light or not can_inline(self.builder.state, name):
                    return False
                self.builder.do(schedule.ComputeInline(name))
                continue
            loop = self._host_loop(name)
            if loop is None:
                return False
            self.builder.do(schedule.ComputeAt(name, *loop))
            axes = self.builder.state.stage(name).tensor.axes
            if axes and axes[-1].length >= 2:
                self.builder.do(schedule.Vectorize(name, axes[-1].name))
        return True

    def _host_loop(self, name: str) -> tuple[str, str] | None:
        depth = (_Where.LARGE, _Where.SMALL, _Where.FOLD).index(self.where)
        readers = {reader.name for reader in self.builder.state.readers(name)}
        for tile in self.derivation.tiles:
            inside = {tile.stage, *self.feeding}
            if readers <= inside and depth < len(tile.tile_loops):
                return tile.tile_loops[depth]
        return None

    def _pack(self, name: str) -> None:
        """Pack the constants of a tiled stage, and prefetch those of the next tiles."""
        stage = self.builder.state.stage(name)
        folding = [x for x in stage.loops if x in stage.reduce_loops]
        loops = [x for x in folding if stage.kind(x) is schedule.ForKind.SERIAL]
        is_inside = not isinstance(stage.placement, schedule.AtRoot)
        steps.pack_constants(self.builder, name, loops[-1:] if is_inside else ())


def _fold_at_root(builder: SketchBuilder, stage: schedule.Stage, derivation: Derivation) -> None:
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
    steps.parallelise(builder, stage.name, outer[:2], steps.element_work(stage.tensor))


def bound_sketches(derivation: Derivation) -> Iterator[Sketch]:
    """The sketches of a complete derivation, by each way to fetch operands; none beyond limits."""
    family = ", ".join(derivation.notes) or "streamed"
    for words, builder in fetch_variants(derivation):
        inline_cheap(builder)  # then what no rule has decided is streamed
        decided = (each for each in builder.state.stages if not is_untouched(builder.state, each))
        bind_rest(builder, derivation.target, frozenset(each.name for each in decided), stream)
        is_plain = not builder.choices and not derivation.tiles
        if is_plain or keep_to_device(builder, derivation.target):
            yield builder.sketch(f"{family}; {words}" if words else family, family)


_MOST_COMPLETE = 64  # ways to decide about everything; the first found are kept
MOST_SKETCHES = 9
_MOST_OF_ALGORITHM = 6

FINISHERS: base.ByKind[Callable[[Derivation], Iterator[Sketch]]] = {
    base.TargetKind.CPU: (sketches_of,),
    base.TargetKind.GPU: (bound_sketches,),
}
"""What makes sketches of a complete derivation, the likeliest first; one for each kind."""


def derive(
    state: schedule.ScheduleState, target: base.Target, rules: Sequence[SketchRule] | None = None
) -> Iterator[Derivation]:
    """Every way to decide about all stages, those of the first generators first, none twice.

    rules   those that are asked, in order; a user's and then those of the target's kind if None
    """
    if rules is None:
        rules = (*own_rules(), *base.of_kind(GENERATORS, target, "sketch generators"))
    partial = [Derivation.start(state, target)]
    seen: set[tuple[str, schedule.Trace]] = set()
    complete = 0
    while partial and complete < _MOST_COMPLETE:
        view = partial.pop()
        key = view.current, view.steps
        if key in seen:
            continue
        seen.add(key)
        if view.is_complete:
            complete += 1
            yield view
        else:
            partial += reversed(list(_next(view, rules)))


def _next(view: Derivation, rules: Sequence[SketchRule]) -> Iterator[Derivation]:
    """The derivations that every applicable generator makes of a partial sketch."""
    for rule in rules:
        verdict = rule.applies(view)
        if verdict is Verdict.NO:
            continue
        try:
            yield from rule.derive(view)
        except base.ScheduleError:
            continue  # an illegal step: the generators after it are asked
        if verdict is Verdict.YES_AND_SKIP_REST:
            return


def derived_sketches(
    state: schedule.ScheduleState, target: base.Target, most: int = MOST_SKETCHES
) -> Iterator[Sketch]:
    """Up to `most` sketches: of every family the likeliest, then of every family the next.

    Each is worked out when it is asked for.
    """
    (finish,) = base.of_kind(FINISHERS, target, "finishers of sketches")
    return islice(distinct(_in_turns(map(finish, derive(state, target))), attrgetter("name")), most)


def tiled_sketches(
    state: schedule.ScheduleState,
    target: base.Target,
    rules: Sequence[SketchRule] | None = None,
    most: int = MOST_SKETCHES,
) -> Iterator[Sketch]:
    """As `derived_sketches`, of the derivations that tile something.

    rules   as in `derive`
    """
    (finish,) = base.of_kind(FINISHERS, target, "finishers of sketches")
    tiled = (each for each in derive(state, target, rules) if each.tiles)
    return islice(_in_turns(map(finish, tiled)), most)


def likeliest_sketch(state: schedule.ScheduleState, target: base.Target) -> Iterator[Sketch]:
    """The first of the derived sketches: the schedule of an untuned program."""
    return islice(derived_sketches(state, target), 1)


def batched_winograd_sketches(
    state: schedule.ScheduleState, target: base.Target
) -> Iterator[Sketch]:
    """Those for graphics processors that compute a convolution by Winograd's algorithm."""
    sketches = tiled_sketches(state, target, WINOGRAD_RULES, _MOST_OF_ALGORITHM)
    return (sketch for sketch in sketches if schedule.uses_algorithm(sketch.trace))


def _in_turns(alternatives: Iterable[Iterator[Sketch]]) -> Iterator[Sketch]:
    """The first of each, then the second of each, and so on."""
    while True:
        more: list[Iterator[Sketch]] = []
        for sketches in alternatives:
            for sketch in islice(sketches, 1):
                yield sketch
                more.append(sketches)
        if not more:
            return
        alternatives = more
