"""Examples for a proposing model from records: the ways that good schedules took.

Of each workload, the schedules that came close to its best are followed decision by decision.  At
each, what they took is put beside what else could have been taken there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.records import Record, Status
from tensorwright.tuning.models import lightgbm_grow
from tensorwright.tuning.models.protocol import GrowthSettings
from tensorwright_lab.proposing.decisions import COLUMNS, DecisionTables, Matrix, Prefix
from tensorwright_lab.proposing.model import ProposingModel

_NEAR = 1.3  # schedules within this factor of the best are followed
_MOST = 8  # of a workload
_STEEPNESS = 6.0  # one that is slower by a share x counts exp(-6 x)
_WAYS = 40  # the most ways of an example; of more, some are drawn


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Decisions and the ways that each could have gone, those of one next to each other.

    rows     (ways, columns)                    counts    (decisions,) how many ways each has
    taken    (ways,) what share of the weight of the decision took the way; their sum is 1
    weights  (decisions,) how much each counts
    """

    rows: Matrix
    counts: NDArray[np.int64]
    taken: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        """Those of several workloads."""
        empty = cls(
            np.empty((0, len(COLUMNS)), np.float32),
            np.empty(0, np.int64),
            np.empty(0),
            np.empty(0),
        )
        every = [empty, *parts]
        return cls(
            np.concatenate([part.rows for part in every]),
            np.concatenate([part.counts for part in every]),
            np.concatenate([part.taken for part in every]),
            np.concatenate([part.weights for part in every]),
        )

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def owner(self) -> NDArray[np.int64]:
        """(ways,): the number of the decision that a way belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def likelihood(self, scores: NDArray[np.float64]) -> float:
        """The geometric mean of the probability of what was taken, by scores (ways,)."""
        if not len(self):
            return math.nan
        logs = np.log(np.maximum(shares_of(self.counts, scores), 1e-30))
        each = np.add.reduceat(self.taken * logs, np.cumsum(self.counts) - self.counts)
        return float(np.exp((self.weights * each).sum() / self.weights.sum()))


def shares_of(counts: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The softmax of scores (ways,) over the ways of each decision; there is at least one."""
    starts = np.cumsum(counts) - counts
    most = np.repeat(np.maximum.reduceat(scores, starts), counts)
    weights = np.exp(scores - most)
    shares: NDArray[np.float64] = weights / np.repeat(np.add.reduceat(weights, starts), counts)
    return shares


def examples_of(
    decisions: DecisionTables, records: Iterable[Record], random: Generator
) -> Examples:
    """The examples from the records of one workload; its decisions weigh 1 in all, those of each
    kind of way alike.
    """
    good = _good(decisions, records)
    if not good:
        return Examples.joined(())
    parts: list[Examples] = []
    total = sum(weight for _, _, weight in good)
    followed = np.zeros(len(decisions.structures))
    for number, genes, weight in good:
        followed[number] += weight / total
        parts += _choices(decisions, number, genes, weight / total, random)
    if len(followed) > 1:
        parts.append(_decision(decisions.structures, followed, 1.0, random))
    return Examples.joined(parts)


def _good(
    decisions: DecisionTables, records: Iterable[Record]
) -> list[tuple[int, tuple[int, ...], float]]:
    """Sketch, rows and weight of the schedules that are followed."""
    times_s: dict[str, float] = {}
    by_trace: dict[str, Record] = {}
    for record in records:
        if record.status is Status.OK:
            by_trace[record.trace] = record
            times_s[record.trace] = min(times_s.get(record.trace, math.inf), *record.times_s)
    ordered = sorted(times_s, key=times_s.__getitem__)[:_MOST]
    good: list[tuple[int, tuple[int, ...], float]] = []
    for trace in ordered:
        slower = times_s[trace] / times_s[ordered[0]] - 1.0
        location = decisions.space.locate(trace, dict(by_trace[trace].decisions))
        if slower < _NEAR - 1.0 and location is not None:
            good.append((*location, math.exp(-_STEEPNESS * slower)))
    return good


def _choices(
    decisions: DecisionTables,
    number: int,
    genes: Sequence[int],
    weight: float,
    random: Generator,
) -> list[Examples]:
    table = decisions.sketch(number)
    prefix = Prefix.begun(table, 1)
    choices: list[Examples] = []
    for position, choice in enumerate(table.choices):
        rows = decisions.rows(number, position, prefix)[0]
        taken = np.zeros(len(rows))
        taken[genes[position]] = 1.0
        choices.append(_decision(rows, taken, weight, random))
        prefix = prefix.then(choice, np.array(genes[position : position + 1], np.int64))
    return choices


def _decision(
    rows: Matrix, taken: NDArray[np.float64], weight: float, random: Generator
) -> Examples:
    if len(rows) > _WAYS:
        others = np.flatnonzero(taken == 0)
        room = max(_WAYS - int((taken > 0).sum()), 1)
        kept = np.sort(np.concatenate([np.flatnonzero(taken), random.permutation(others)[:room]]))
        rows, taken = rows[kept], taken[kept]
    counts = np.array([len(rows)], np.int64)
    return Examples(rows, counts, taken / taken.sum(), np.array([weight]))


_LEAST_HESSIAN = 1e-4


@dataclass(frozen=True, slots=True)
class WayTreeSettings(GrowthSettings):
    """As `GrowthSettings`.

    Good schedules of 690 workloads that were held out decided about tiles and the like with a
    likelihood of 0.332 by 400 trees, 0.326 by 150 (evenly 0.163); about structures with 0.260 and
    0.248 (0.174).
    """

    rounds: int = 300
    learning_rate: float = 0.1
    least_rows: int = 30
    l2: float = 2.0
    feature_share: float = 0.3
    threads: int = 1


def fit(
    examples: Examples,
    settings: WayTreeSettings | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> ProposingModel:
    """Trees under whose scores what was taken is likely.

    Raises:  MachineError where LightGBM cannot be loaded.
    """
    settings = settings or WayTreeSettings()
    weights = np.repeat(examples.weights, examples.counts)

    def slopes(values: Any, _: Any) -> Any:
        """Of the cross entropy of what was taken, decision by decision."""
        shares = shares_of(examples.counts, values)
        gradient = weights * (shares - examples.taken)
        hessian = weights * np.maximum(shares * (1.0 - shares), _LEAST_HESSIAN)
        return gradient, hessian

    more = {"min_sum_hessian_in_leaf": 0.01, "num_threads": settings.threads}
    forest = lightgbm_grow("proposing model")(examples.rows, slopes, settings, more)
    return ProposingModel(forest.rounded, statistics or {})
