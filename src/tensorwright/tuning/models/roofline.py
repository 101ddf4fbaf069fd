"""An analytic model: the time of arithmetic and memory, from features alone.

It needs no measurement. A search starts with it, uses it if LightGBM cannot load, and trained trees
correct it (`time_model/`).  It is rough, and only meant to keep a search from hopeless programs.

    time of a statement = max(arithmetic, memory) / threads at work + starting them
                          + lines from other cores
    arithmetic          = operations / vector length, slowed where nothing is unrolled (latency of
                          chains)
    memory              = the loads that come from beyond the registers, or the lines from beyond a
                          cache, over its rate

Source:   Williams et al., Roofline, CACM 52(4), 2009.

A model without knowledge: the baseline that every other must beat.

The sum of two models: one that learned elsewhere, and an analytic one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import LINE_BYTES
from tensorwright.machine import NOMINAL, Machine
from tensorwright.tuning.features import CACHE_BYTES, FEATURE_NAMES, REGISTER_BYTES
from tensorwright.tuning.models.protocol import CostModel, Features, Sample, Scores

_MIX = np.uint64(0x9E3779B97F4A7C15)


class RandomModel(CostModel):
    """Scores in 0..1 that depend on a program's features and the seed, and on nothing else."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        flat = np.ascontiguousarray(features, np.float32).reshape(
            len(features), features[:1].size or 1
        )
        words = flat.view(np.uint32).astype(np.uint64)
        random_source = np.random.Generator(np.random.SFC64(self._seed))
        odd = random_source.integers(0, 1 << 63, words.shape[1], np.uint64) * np.uint64(2)
        mixed = words @ (odd + np.uint64(1))  # a multiply-shift hash, modulo 2^64
        mixed = (mixed ^ (mixed >> np.uint64(31))) * _MIX
        scores: Scores = (mixed >> np.uint64(11)) / float(1 << 53)
        return scores


LEVELS = ("registers", "l1", "l2", "l3")
_COSTS = {  # cycles of one vector operation; two multiply-adds take one
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
_LOAD_CYCLES = 1.5  # of 64 adjacent bytes
_LEAST_CHAINS = 8.0  # independent operations that hide their latency
_LOOP_CYCLES = 6.0  # of an iteration of the innermost loop that stays a loop

_LOOPS = ("vector_len", "auto_unroll_max_step", "outer_prod", "parallel_prod")
_OTHER = "lines_of_other_threads"
_LOADS = tuple(f"loads_beyond_{nbytes}" for nbytes in REGISTER_BYTES)
_LINES = tuple(f"lines_beyond_{nbytes}" for nbytes in CACHE_BYTES)
_USED = (*_COSTS, *_LOOPS, _OTHER, *_LOADS, *_LINES)
_PLACES = np.array([FEATURE_NAMES.index(name) for name in _USED])
_CYCLES = np.array(list(_COSTS.values()), np.float32)
_MULTIPLY_ADD = list(_COSTS).index("float_mad")

_Column = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The model's estimate of statements, in cycles.  Shapes:  (programs, statements).

    cycles       in total
    arithmetic   of one thread alone, without waiting for memory
    memory       the same for data from beyond the registers and each cache (levels, ...)
    peak         of all threads, multiply-adds alone, at the rate of the machine
    """

    cycles: _Column
    arithmetic: _Column
    memory: _Column
    peak: _Column


class RooflineModel(CostModel):
    """Scores are minus the natural logarithm of estimated cycles. Learns nothing."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        target = machine.target
        sizes = (target.vector_registers * target.vector_bytes,)
        caches = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
        memory_rate = machine.rates.bandwidth_bytes_per_s / NOMINAL.clock_hz
        rates = (*NOMINAL.cache_bytes_per_cycle, memory_rate)
        self._cycles = np.zeros((len(LEVELS), len(_LOADS) + len(_LINES)), np.float32)
        self._cycles[:1, : len(_LOADS)] = _LOAD_CYCLES * _shares(REGISTER_BYTES, sizes)
        costs = np.array([[LINE_BYTES / rate] for rate in rates])
        self._cycles[1:, len(_LOADS) :] = costs * _shares(CACHE_BYTES, caches)

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        cycles = self.estimate(features).cycles.sum(axis=1, dtype=np.float64)
        scores: Scores = -np.log(cycles)
        return scores

    def estimate(self, features: Features) -> Estimate:
        """Estimated cycles of each statement.

        Shapes:  features (programs, statements, features) -> (programs, statements)
        """
        shape = features.shape[:2]
        plain = features.reshape(-1, features.shape[2]).T[_PLACES].astype(np.float32, copy=False)
        np.exp2(plain, out=plain)
        plain -= 1.0
        first = len(_COSTS) + len(_LOOPS) + 1
        operations, loops = plain[: len(_COSTS)], plain[len(_COSTS) : first - 1]
        others, beyond = plain[first - 1], plain[first:]
        np.maximum(loops, 1.0, out=loops)
        arithmetic = self._arithmetic(operations, loops)
        memory = self._cycles @ beyond
        jobs = loops[_LOOPS.index("parallel_prod")]
        is_parallel = jobs > 1.0
        share = np.where(is_parallel, np.ceil(jobs / self._machine.threads) / jobs, 1.0)
        cycles = np.maximum(arithmetic, memory.max(axis=0)) * share
        cycles += np.where(is_parallel, NOMINAL.fork_cycles, 0.0) + 1.0
        cycles += NOMINAL.line_cycles * (1.0 - 1.0 / self._machine.threads) * others
        adds = operations[_MULTIPLY_ADD] / self._at_once(loops[0])
        return Estimate(
            cycles.astype(np.float32).reshape(shape),
            arithmetic.reshape(shape),
            memory.reshape(len(LEVELS), *shape),
            (adds / self._machine.vectors_per_cycle * share).astype(np.float32).reshape(shape),
        )

    def _arithmetic(self, operations: _Column, loops: _Column) -> _Column:
        """Shapes:  operations (kinds, statements), loops (4, statements) -> (statements,)."""
        lanes, copies, runs, _ = loops
        at_once = self._at_once(lanes)
        chains = np.minimum(copies, np.float32(_LEAST_CHAINS)) / np.float32(_LEAST_CHAINS)
        slowness = np.float32(2.0 / self._machine.vectors_per_cycle)
        slowed = slowness * (_CYCLES @ operations) / at_once / np.sqrt(chains)
        turns = runs / (lanes * copies)
        cycles: _Column = slowed + np.float32(_LOOP_CYCLES) * turns
        return cycles

    def _at_once(self, lanes: _Column) -> _Column:
        at_once: _Column = np.minimum(lanes, np.float32(self._machine.target.vector_bytes / 4))
        return at_once


def _shares(sizes: tuple[int, ...], wanted: tuple[int, ...]) -> NDArray[np.float32]:
    """How much each of some ascending sizes counts for each wanted one, between the two beside it:
    (wanted, sizes), rows of sum 1.
    """
    logs = np.log2(sizes)
    at = np.log2(np.maximum(wanted, 1))  # there are machines without a third cache
    own = [np.interp(at, logs, each) for each in np.eye(len(sizes))]
    shares: NDArray[np.float32] = np.array(own, np.float32).T
    return shares


class BlendedModel:
    """The sum of two models' scores, for models whose scores are of one kind.

    Trees trained on pairs and the roofline are: a difference of their scores is roughly a
    difference of logarithms of time. For operators that the trees had never seen, both together
    ordered 71 % of the pairs correctly, alone 65 and 67 %.
    """

    def __init__(self, first: CostModel, second: CostModel) -> None:
        self._first = first
        self._second = second

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        scores: Scores = self._first.predict(features) + self._second.predict(features)
        return scores

    def observe(self, samples: Sequence[Sample]) -> None:
        """As `CostModel.observe`."""
        self._first.observe(samples)
        self._second.observe(samples)

    def update(self) -> bool:
        """As `CostModel.update`."""
        has_first_changed = self._first.update()
        return self._second.update() or has_first_changed
