"""The pointwise rule: nothing is folded; what is stored is spread over threads and lanes."""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.base import Target
from tensorwright.schedule import AtRoot, ScheduleState
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import inline_elementwise, spread


def pointwise_sketches(state: ScheduleState, target: Target) -> Iterator[Sketch]:
    """The sketch of the pointwise rule; none where something is folded."""
    if any(stage.tensor.reduction is not None for stage in state.stages):
        return
    builder = SketchBuilder(state)
    inline_elementwise(builder)
    for stage in builder.state.stages:
        if isinstance(stage.placement, AtRoot):
            spread(builder, stage.name, target, stage.name)
    yield builder.sketch("pointwise")
