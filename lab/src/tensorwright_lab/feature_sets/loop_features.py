"""Features that are functions of loops: of candidates of a sketch, and of single programs."""

from __future__ import annotations

from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import without_collection
from tensorwright.loop import lower
from tensorwright.schedule import ScheduleState, Trace, replay
from tensorwright.tuning.features.columns import ColumnGraph, Features
from tensorwright.tuning.features.featurizer import PlansBySketch, lower_sketch
from tensorwright.tuning.space.sketch import Sketch
from tensorwright_lab.feature_sets.loop_kernel import LoopFormula
from tensorwright_lab.feature_sets.loop_plan import LoopPlan


class LoopFeatures:
    """A `FeatureSource`: a row for each statement; remembers its results for a sketch."""

    def __init__(self, state: ScheduleState, formula: LoopFormula) -> None:
        self._state = state
        self._formula = formula
        self._plans: PlansBySketch[LoopPlan] = PlansBySketch()
        self._graph = ColumnGraph()
        finalize(self, self._graph.clear)

    def plan(self, sketch: Sketch) -> LoopPlan:
        """The loops of a sketch, lowered once with its decisions open."""
        return self._plans.get(sketch, self._make_plan)

    def _make_plan(self, sketch: Sketch) -> LoopPlan:
        with without_collection():
            return LoopPlan(lower_sketch(self._state, sketch), self._graph)

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> Features:
        """As `FeatureSource.of_sketch`."""
        return self.plan(sketch).run(sketch.columns(genes), len(genes), self._formula)

    def of_trace(self, trace: Trace) -> Features:
        """As `FeatureSource.of_trace`."""
        program = lower(replay(self._state, trace))
        return LoopPlan(program).run({}, 1, self._formula)
