"""Stream elements through threads, without memory of a block: elementwise and moving programs.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.2 (what no rule tiles is split and bound).
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import ComputeInline, ScheduleState
from tensorwright.tuning.space.defaults.grid import inline_cheap
from tensorwright.tuning.space.derived.derivation import Derivation, TiledStage
from tensorwright.tuning.space.derived.predicates import (
    fusable_consumer,
    is_strict_inlinable,
    is_untouched,
)
from tensorwright.tuning.space.derived.rule import Verdict
from tensorwright.tuning.space.derived.rules.window_tiling import sliding_axes
from tensorwright.tuning.space.derived.streams import can_stream, stream
from tensorwright.tuning.space.derived.thread_tiles import plan_threads


@dataclass(frozen=True, slots=True)
class WaitForTile:
    """Leave a stage to the fold that it reads: the threads of the fold may store its tiles."""

    name: str = "wait for a tile"

    def applies(self, view: Derivation) -> Verdict:
        """If another rule tiles such a fold, after the stages between them are inlined."""
        if view.stage.tensor.reduction is not None:
            return Verdict.NO
        state = _inlined(view)
        tensor = state.stage(view.current).tensor
        folds = [state.stage(name) for name in _tiled_by(state, view.current)]
        pays = any(
            plan_threads(fold.tensor, tensor, view.target) or sliding_axes(state, fold)
            for fold in folds
        )
        return Verdict.YES if pays else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The same state at the next stage."""
        return (view.then(view.grow()),)


def _inlined(view: Derivation) -> ScheduleState:
    """The program after `AlwaysInline` has decided about each stage, as a bias before a ReLU."""
    builder = view.grow()
    for stage in reversed(view.state.stages):
        if is_strict_inlinable(builder.state, stage.name):
            builder.do(ComputeInline(stage.name))
    return builder.state


def _tiled_by(state: ScheduleState, name: str) -> tuple[str, ...]:
    """The folds whose only reader a stage is, one to one."""
    return tuple(
        stage.name
        for stage in state.stages
        if stage.tensor.reduction is not None
        and (reader := fusable_consumer(state, stage.name)) is not None
        and reader.name == name
    )


@dataclass(frozen=True, slots=True)
class Streaming:
    """Divide the elements of a stage among blocks and threads, all sizes open."""

    name: str = "streaming"

    def applies(self, view: Derivation) -> Verdict:
        """Always, except for stages that other rules have made for themselves."""
        return Verdict.NO if view.current.endswith(("_cache", "_rf")) else Verdict.YES

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """In the thread of its only reader, or in separate blocks; else unchanged."""
        builder = view.grow()
        if not can_stream(view.stage) or not is_untouched(view.state, view.stage):
            return (view.then(builder),)
        inline_cheap(builder)
        if not builder.state.has_stage(view.current):
            return (view.then(builder),)
        element_loop = stream(builder, view.current, view.target, view.elements)
        tile = TiledStage(view.current, element_loop[0], (element_loop,), is_element=True)
        note = f"{view.current} streamed" if element_loop[0] == view.current else ""
        return (view.then(builder, note, tile=tile),)
