"""The protocol for the features of the programs of one workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tensorwright.schedule import Trace
from tensorwright.tuning.features.cell_tables import Features
from tensorwright.tuning.space.sketch import Sketch

PlanT = TypeVar("PlanT")


class FeatureSource(Protocol):
    """Describes candidates, and single programs, in the same columns."""

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> Features:
        """Shapes:  genes (candidates, choices) -> (candidates, rows, columns)

        Raises:  TensorwrightError for a sketch that cannot be described.
        """

    def of_trace(self, trace: Trace) -> Features:
        """A trace without open decisions.  Shapes:  (1, rows, columns).

        Raises:  TensorwrightError for a trace that cannot be described.
        """


class PlansBySketch(Generic[PlanT]):
    """The plans of sketches; mutable.

    Sketches of equal traces share a plan.  A lookup by identity comes first: comparing traces takes
    longer than describing a few candidates.
    """

    def __init__(self) -> None:
        self._by_trace: dict[Trace, PlanT] = {}
        self._by_identity: dict[int, tuple[Sketch, PlanT]] = {}  # it keeps them alive

    def get(self, sketch: Sketch, make: Callable[[Sketch], PlanT]) -> PlanT:
        """The plan of a sketch, made if it is the first of its trace."""
        pair = self._by_identity.get(id(sketch))
        if pair is None:
            if sketch.trace not in self._by_trace:
                self._by_trace[sketch.trace] = make(sketch)
            pair = self._by_identity[id(sketch)] = (sketch, self._by_trace[sketch.trace])
        return pair[1]
