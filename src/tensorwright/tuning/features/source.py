"""What gives the features of the programs of one workload."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tensorwright.schedule import Trace
from tensorwright.tuning.features.cell_tables import Features
from tensorwright.tuning.space.sketch import Sketch


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
