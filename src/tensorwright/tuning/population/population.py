"""A population: many candidates of one space as two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.population.candidate import Candidate, candidate_of
from tensorwright.tuning.space.sketch import Space

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
