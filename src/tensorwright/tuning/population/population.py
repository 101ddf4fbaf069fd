"""A population: many candidates of one space as two arrays.

A candidate: one schedule of a space.

Selection of parents, and of the candidates that are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.schedule import format_trace
from tensorwright.tuning.space.sketch import Sketch, Space


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule to be measured: its text, and how it came about, for learning.

    sketch      name of the sketch, "" for a trace from elsewhere
    decisions   sorted pairs (name, value)
    predicted_s what its proposer expects, as `Prediction.seconds`; None if it expects nothing
    """

    trace: str
    sketch: str = ""
    decisions: tuple[tuple[str, int], ...] = ()
    predicted_s: float | None = field(default=None, compare=False)


def candidate_of(sketch: Sketch, decisions: tuple[tuple[str, int], ...]) -> Candidate:
    """The candidate of a sketch and its decisions."""
    return Candidate(format_trace(sketch.bound(dict(decisions))), sketch.name, decisions)


def default_candidate(space: Space) -> Candidate:
    """The schedule of an untuned program."""
    sketch = space.sketches[0]
    return candidate_of(sketch, tuple(sorted(sketch.defaults.items())))


Genes = NDArray[np.int64]
Sketches = NDArray[np.int32]
Keys = NDArray[np.uint64]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class Population:
    """Candidates of one space, one a row.

    Shapes:  sketch (n,): positions in `Space.sketches`; genes (n, width): for each choice of the
             sketch the number of a row of it, 0 beyond the sketch's own choices.
    """

    sketch: Sketches
    genes: Genes

    @classmethod
    def empty(cls, width: int) -> Population:
        """A population without candidates."""
        return cls(np.empty(0, np.int32), np.empty((0, width), np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Population]) -> Population:
        """Populations one after the other; at least one."""
        return cls(
            np.concatenate([part.sketch for part in parts]),
            np.concatenate([part.genes for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.sketch)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Population:
        """Some of the candidates: by number, or by a mask."""
        return Population(self.sketch[rows], self.genes[rows])

    @property
    def keys(self) -> Keys:
        """A hash for each candidate: equal ones have equal keys.

        Shapes:  (n,); 64 bits, mixed over the columns, so collisions are most unlikely
        """
        mixed = self.sketch.astype(np.uint64) + np.uint64(1)
        for column in self.genes.T.astype(np.uint64):
            mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX + column
        mixed ^= mixed >> _SHIFT
        return mixed * _MIX

    def first_of_each(self) -> NDArray[np.int64]:
        """The numbers of the candidates without an equal one before them, ascending."""
        _, first = np.unique(self.keys, return_index=True)
        return np.sort(first)

    def candidates(self, space: Space) -> tuple[Candidate, ...]:
        """Every row as a candidate with its trace: for the few that are measured."""
        return tuple(
            candidate_at(space, int(sketch), genes)
            for sketch, genes in zip(self.sketch, self.genes, strict=True)
        )


def candidate_at(space: Space, sketch: int, genes: Genes) -> Candidate:
    """The candidate of a sketch and a row of genes, padded or not."""
    chosen = space.sketches[sketch]
    rows = tuple(int(gene) for gene in genes[: len(chosen.choices)])
    return candidate_of(chosen, tuple(sorted(chosen.decisions_of(rows).items())))


def by_sketch(sketch: Sketches) -> list[tuple[int, NDArray[np.int64]]]:
    """The sketches that occur, ascending, each with the numbers of its candidates."""
    order = np.argsort(sketch, kind="stable")
    occurring, starts = np.unique(sketch[order], return_index=True)
    ends = [*starts[1:], len(order)]
    return [(int(one), order[a:b]) for one, a, b in zip(occurring, starts, ends, strict=False)]


Numbers = NDArray[np.int64]


def draw_parents(
    scores: NDArray[np.float64], count: int, pressure: float, random: Generator
) -> Numbers:
    """Numbers of candidates, drawn in proportion to how they rank.

    pressure   the best is drawn exp(pressure) times as often as the worst

    Ranks, not scores: models differ in what a difference of scores means, and a model that is
    fitted anew changes it.
    """
    ranks = np.empty(len(scores), np.float64)
    ranks[np.argsort(-scores, kind="stable")] = np.linspace(0.0, 1.0, len(scores))
    chances = np.exp(-pressure * ranks)
    chances[~np.isfinite(scores)] = 0.0
    total = chances.sum()
    if not total:
        return random.integers(0, len(scores), count)
    return random.choice(len(scores), size=count, p=chances / total)


def find_new(population: Population, seen: Keys) -> Population:
    """The candidates whose keys are not in `seen`, each once."""
    once = population.take(population.first_of_each())
    return once.take(~np.isin(once.keys, seen))


def likeness(population: Population, one: int) -> NDArray[np.float64]:
    """How similar each is to one of them: the share of equal choices, 0 in other sketches."""
    is_kin = population.sketch == population.sketch[one]
    alike: NDArray[np.float64] = (population.genes == population.genes[one]).mean(axis=1)
    alike[~is_kin] = 0.0
    return alike


def pick_diverse(
    population: Population, scores: NDArray[np.float64], count: int, variety: float
) -> Numbers:
    """The numbers of some candidates with high scores that are unlike each other, best first.

    variety   how many ranks, as a share of all, a candidate loses that is like one picked before

    Greedy: each takes the best of rank and unlikeness to all that were picked.
    """
    ranks = np.empty(len(scores), np.float64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores)) / max(len(scores), 1)
    likest = np.zeros(len(scores))
    picked: list[int] = []
    for _ in range(min(count, len(scores))):
        worth = ranks + variety * likest**4
        worth[picked] = np.inf
        one = int(np.argmin(worth))
        picked.append(one)
        likest = np.maximum(likest, likeness(population, one))
    return np.array(picked, np.int64)
