"""An analytic model: how long arithmetic and memory would take, from features alone.

It needs no measurement: the cold start of a search, and what is left where LightGBM cannot load.
It is rough, and only meant to keep a search away from hopeless programs.

    time of a statement = max(arithmetic, memory) / threads at work + starting them
    arithmetic          = operations / vector length, slowed where nothing is unrolled (latency of
                          chains)
    memory              = for the registers and each cache, lines that come from beyond it / its
                          rate; what is touched again before it is thrown out comes once

Source:   Williams et al., Roofline, CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import Target
from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models.protocol import Features, Sample, Scores

_PLACES = {name: place for place, name in enumerate(FEATURE_NAMES)}
_BUFFERS = 5
_LINE_BYTES = 64.0
_COSTS = {  # cycles of one vector operation
    "float_mad": 0.5,
    "float_addsub": 0.5,
    "float_mul": 0.5,
    "float_divmod": 8.0,
    "float_cmp": 0.5,
    "float_mathfunc": 12.0,
    "float_otherfunc": 6.0,
    "int_addsub": 0.25,
    "int_mul": 0.5,
    "int_divmod": 4.0,
    "select_op": 0.5,
}
_LEAST_CHAINS = 8.0  # so many independent operations hide their latency
_REGION_CYCLES = 6000.0  # to start the threads of a parallel loop, and to wait for them
_LOOP_CYCLES = 4.0  # of an iteration of the innermost loop that stays a loop

_Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Level:
    """Registers or a cache: its size, and the bytes per cycle that come from beyond it."""

    size_bytes: float
    rate: float


class RooflineModel:
    """Scores are minus the natural logarithm of estimated cycles. Learns nothing."""

    def __init__(self, target: Target, threads: int) -> None:
        self._threads = float(threads)
        self._levels = (
            _Level(target.vector_registers * target.vector_bytes, 64.0),
            _Level(target.l1_bytes, 32.0),
            _Level(target.l2_bytes, 12.0),
            _Level(target.l3_bytes, 4.0),
        )

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        scores: Scores = -np.log(self.cycles(features).sum(axis=1))
        return scores

    def observe(self, samples: Sequence[Sample]) -> None:
        """Nothing is learned."""

    def update(self) -> bool:
        """Nothing changes."""
        return False

    def cycles(self, features: Features) -> _Column:
        """Estimated cycles of each statement.

        Shapes:  features (programs, statements, features) -> (programs, statements)
        """
        busy = np.maximum(self._arithmetic(features), self._memory(features))
        jobs = _plain(features, "parallel_prod")
        is_parallel = jobs > 1.0
        rounds = np.ceil(np.maximum(jobs, 1.0) / self._threads)
        share = np.where(is_parallel, rounds / np.maximum(jobs, 1.0), 1.0)
        found: _Column = busy * share + np.where(is_parallel, _REGION_CYCLES, 0.0) + 1.0
        return found

    def _arithmetic(self, features: Features) -> _Column:
        operations = np.zeros(features.shape[:2])
        for name, cost in _COSTS.items():
            operations += cost * _plain(features, name)
        lanes = np.maximum(_plain(features, "vector_len"), 1.0)
        copies = np.maximum(_plain(features, "auto_unroll_max_step"), 1.0)
        chains = np.minimum(copies, _LEAST_CHAINS) / _LEAST_CHAINS
        slowed = operations / lanes / np.sqrt(chains)
        turns = _plain(features, "outer_prod") / (lanes * copies)
        found: _Column = slowed + _LOOP_CYCLES * turns
        return found

    def _memory(self, features: Features) -> _Column:
        """The dearest of the levels: what comes from beyond it, over its rate."""
        found = np.zeros(features.shape[:2])
        for level in self._levels:
            moved = np.zeros(features.shape[:2])
            for buffer in range(_BUFFERS):
                moved += _LINE_BYTES * _lines_beyond(features, buffer, level.size_bytes)
            found = np.maximum(found, moved / level.rate)
        return found


def _lines_beyond(features: Features, buffer: int, size_bytes: float) -> _Column:
    """The lines of a buffer that come from beyond a cache."""
    lines = _plain(features, f"buffer{buffer}_lines")
    unique = _plain(features, f"buffer{buffer}_unique_lines")
    again = np.maximum(_plain(features, f"buffer{buffer}_reuse_count"), 1.0)
    distance = _plain(features, f"buffer{buffer}_reuse_distance_bytes")
    stays = distance <= size_bytes
    fits = _plain(features, f"buffer{buffer}_unique_bytes") <= 0.5 * size_bytes
    moved = np.where(stays, np.maximum(lines / again, unique), lines)
    found: _Column = np.where(fits, 0.0, moved)
    return found


def _plain(features: Features, name: str) -> _Column:
    """A feature without its logarithm (programs, statements)."""
    column = features[:, :, _PLACES[name]].astype(np.float64)
    found: _Column = np.exp2(column) - 1.0
    return found
