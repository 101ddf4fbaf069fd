"""An analytic model: how long arithmetic and memory would take, from features alone.

It needs no measurement: the cold start of a search, what is left where LightGBM cannot load, and
what trained trees correct (`time_model/`).  It is rough, and only meant to keep a search away from
hopeless programs.

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

from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models.machine import CLOCK_HZ, Machine
from tensorwright.tuning.models.protocol import Features, Sample, Scores

LEVELS = ("registers", "l1", "l2", "l3")
_BUFFERS = 5
_LINE_BYTES = 64.0
_COSTS = {  # cycles of one vector operation, where two multiply-adds are done in one
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

_LOOPS = ("vector_len", "auto_unroll_max_step", "outer_prod", "parallel_prod")
_FIELDS = ("lines", "unique_lines", "reuse_count", "reuse_distance_bytes", "unique_bytes")
_USED = (
    *_COSTS,
    *_LOOPS,
    *(f"buffer{buffer}_{field}" for field in _FIELDS for buffer in range(_BUFFERS)),
)
_PLACES = np.array([FEATURE_NAMES.index(name) for name in _USED])
_CYCLES = np.array(list(_COSTS.values()), np.float32)

_Column = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Level:
    """Registers or a cache: its size, and the bytes per cycle that come from beyond it."""

    size_bytes: float
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What the model says of statements, in cycles.  Shapes:  (programs, statements).

    cycles       all in all
    arithmetic   of one thread alone, nothing waiting for memory
    memory       the same for what comes from beyond the registers and each cache (levels, ...)
    """

    cycles: _Column
    arithmetic: _Column
    memory: _Column


class RooflineModel:
    """Scores are minus the natural logarithm of estimated cycles. Learns nothing."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._levels = (
            _Level(
                machine.vector_registers * machine.vector_bytes,
                min(64.0, 2.0 * machine.vector_bytes),
            ),
            _Level(machine.l1_bytes, 32.0),
            _Level(machine.l2_bytes, 12.0),
            _Level(machine.l3_bytes, machine.rates.bandwidth_bytes_per_s / CLOCK_HZ),
        )

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        cycles = self.estimate(features).cycles.sum(axis=1, dtype=np.float64)
        scores: Scores = -np.log(cycles)
        return scores

    def observe(self, samples: Sequence[Sample]) -> None:
        """Nothing is learned."""

    def update(self) -> bool:
        """Nothing changes."""
        return False

    def estimate(self, features: Features) -> Estimate:
        """Estimated cycles of each statement.

        Shapes:  features (programs, statements, features) -> (programs, statements)
        """
        shape = features.shape[:2]
        plain = features.reshape(-1, features.shape[2]).T[_PLACES].astype(np.float32, copy=False)
        np.exp2(plain, out=plain)
        plain -= 1.0
        operations, loops = plain[: len(_COSTS)], plain[len(_COSTS) : len(_COSTS) + len(_LOOPS)]
        buffers = plain[len(_COSTS) + len(_LOOPS) :].reshape(len(_FIELDS), _BUFFERS, -1)
        np.maximum(loops, 1.0, out=loops)
        arithmetic = self._arithmetic(operations, loops)
        memory = self._memory(buffers)
        jobs = loops[_LOOPS.index("parallel_prod")]
        is_parallel = jobs > 1.0
        share = np.where(is_parallel, np.ceil(jobs / self._machine.threads) / jobs, 1.0)
        cycles = np.maximum(arithmetic, memory.max(axis=0)) * share
        cycles += np.where(is_parallel, _REGION_CYCLES, 0.0) + 1.0
        return Estimate(
            cycles.astype(np.float32).reshape(shape),
            arithmetic.reshape(shape),
            memory.reshape(len(LEVELS), *shape),
        )

    def _arithmetic(self, operations: _Column, loops: _Column) -> _Column:
        """Shapes:  operations (kinds, statements), loops (4, statements) -> (statements,)."""
        lanes, copies, runs, _ = loops
        at_once = np.minimum(lanes, np.float32(self._machine.vector_bytes / 4))
        chains = np.minimum(copies, np.float32(_LEAST_CHAINS)) / np.float32(_LEAST_CHAINS)
        slowness = np.float32(2.0 / self._machine.vectors_per_cycle)
        slowed = slowness * (_CYCLES @ operations) / at_once / np.sqrt(chains)
        turns = runs / (lanes * copies)
        found: _Column = slowed + np.float32(_LOOP_CYCLES) * turns
        return found

    def _memory(self, buffers: _Column) -> _Column:
        """(fields, buffers, statements) -> (levels, statements): what comes from beyond each level,
        over its rate.
        """
        lines, unique_lines, again, distance, unique_bytes = buffers
        once = np.maximum(lines / np.maximum(again, 1.0), unique_lines)
        found = np.empty((len(self._levels), lines.shape[1]), np.float32)
        for number, level in enumerate(self._levels):
            moved = np.where(distance <= level.size_bytes, once, lines)
            moved[unique_bytes <= 0.5 * level.size_bytes] = 0.0
            found[number] = moved.sum(axis=0) * np.float32(_LINE_BYTES / level.rate)
        return found
