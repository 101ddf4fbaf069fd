"""The tables of a space for populations: they turn work on candidates into indexing.

Everything is made once for a space. A cell is a choice of a sketch: row `sketch`, column `position`
of arrays (sketches, width). Cells of equal choices share their rows in the flat tables, where a row
of a cell stands at `base + gene`.

Which rows of a choice are next to each other: the steps of mutation and of local refinement.

Two rows are neighbours if one factor moves between two levels (the product of both columns stays),
or if one column alone changes, which moves a factor between that level and the outermost loop; and
if no other row lies between them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.population.population import Genes, Population, Sketches, by_sketch
from tensorwright.tuning.space.sketch import Choice, Kind, Space

Pairs = NDArray[np.int64]


def neighbour_pairs(table: NDArray[np.int64]) -> Pairs:
    """All pairs (row, neighbour), each once in both directions, ascending.

    Shapes:  table (rows, names) -> (pairs, 2)
    """
    count, levels = table.shape
    parts = [_adjacent(np.delete(table, level, 1), table[:, level]) for level in range(levels)]
    for one, other in itertools.combinations(range(levels), 2):
        product = table[:, one] * table[:, other]
        fixed = np.column_stack([np.delete(table, (one, other), 1), product])
        parts.append(_adjacent(fixed, table[:, one]))
    pairs = np.concatenate([*parts, np.empty((0, 2), np.int64)])
    both = np.concatenate([pairs, pairs[:, ::-1]])
    numbers = np.unique(both[:, 0] * count + both[:, 1])
    return np.column_stack([numbers // count, numbers % count])


def _adjacent(fixed: NDArray[np.int64], moving: NDArray[np.int64]) -> Pairs:
    """Pairs of rows that agree in all fixed columns and follow each other in the moving one."""
    order = np.lexsort((moving, *fixed.T))
    sorted_rows = fixed[order]
    is_same = np.all(sorted_rows[1:] == sorted_rows[:-1], axis=1)
    return np.column_stack([order[:-1], order[1:]])[is_same]


Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Weights:
    """How likely a mutation is about choices of each kind.

    is_shared   the weight of a kind is shared out among the choices of a sketch that are of it;
                else each of them has it

    The published weights of Ansor for processors (Zheng et al., OSDI 2020, and its source).
    """

    tile: float = 0.90
    unroll: float = 0.04
    location: float = 0.05
    parallel: float = 0.01
    other: float = 0.05
    is_shared: bool = True

    def of(self, kind: Kind) -> float:
        """The weight of a kind."""
        match kind:
            case Kind.TILE:
                return self.tile
            case Kind.UNROLL:
                return self.unroll
            case Kind.PARALLEL:
                return self.parallel
            case _:
                return self.other


@dataclass(frozen=True, slots=True)
class SpaceTables:
    """The tables of a space.

    Cells, shapes (sketches, width); beyond a sketch's own choices: one row, slot and node last
        counts      how many rows            defaults   the row chosen by rule
        base        where the rows of the cell begin in the flat tables
        slot        number of the choice's name within its family
        node        number of the stage that the choice is about, within its family
        back        where the cell's rows begin in `gene_of`
    Flat tables
        degree, start, target    neighbours of a row: target[start : start + degree]
        common                   number of the row's values among all values of its slot
        gene_of                  the row with these values, -1 where the cell has none such
    Sketches
        family      number of the family     siblings   how many others there are in it
        member_index  position of the sketch within its family
        members     (families, most siblings) positions of the sketches
        chances     (sketches, width + 1) summed probability that a mutation is about a choice;
                    the last is that of moving to a sibling
    slots, nodes    how many a family has at most, and one more for what is beyond
    """

    space: Space
    counts: Ints
    defaults: Ints
    base: Ints
    slot: Ints
    node: Ints
    back: Ints
    degree: Ints
    start: Ints
    target: Ints
    common: Ints
    gene_of: Ints
    family: Ints
    siblings: Ints
    member_index: Ints
    members: Ints
    chances: NDArray[np.float64]
    slots: int
    nodes: int

    @property
    def width(self) -> int:
        """The columns of a population."""
        return int(self.counts.shape[1])

    def valid(self, population: Population) -> NDArray[np.bool_]:
        """Which candidates keep to the limits of their sketches."""
        is_valid = np.ones(len(population), np.bool_)
        for number, rows in by_sketch(population.sketch):
            sketch = self.space.sketches[number]
            if sketch.limits:
                genes = population.genes[rows, : len(sketch.choices)]
                is_valid[rows] = sketch.valid(genes, self.space.cut)
        return is_valid

    def carried(self, population: Population, to: Sketches) -> Genes:
        """The genes of candidates moved to siblings of their sketches, which `to` names.

        Choices of one name keep their values; values that a sibling lacks are chosen by rule.
        """
        count = np.arange(len(population))[:, None]
        values = np.full((len(population), self.slots), -1, np.int64)
        rows = self.base[population.sketch] + population.genes
        values[count, self.slot[population.sketch]] = self.common[rows]
        wanted = values[count, self.slot[to]]
        carried = np.where(wanted >= 0, self.gene_of[self.back[to] + np.maximum(wanted, 0)], -1)
        genes: Genes = np.where(carried >= 0, carried, self.defaults[to])
        return genes

    def starts(self) -> Population:
        """Every sketch with the decisions chosen by rule; first that of an untuned program."""
        count = len(self.defaults)
        return Population(np.arange(count, dtype=np.int32), self.defaults.copy())


def make_space_tables(space: Space, weights: Weights | None = None) -> SpaceTables:
    """The tables of a space, at least one sketch."""
    return _Maker(space, weights or Weights()).make()


class _Maker:
    """Grows the tables; mutable, used inside one function."""

    def __init__(self, space: Space, weights: Weights) -> None:
        self.space = space
        self.weights = weights
        self.width = max(1, *(len(sketch.choices) for sketch in space.sketches))
        self.families = list(dict.fromkeys(sketch.family for sketch in space.sketches))
        self.values = [self._values(family) for family in self.families]
        choices: dict[str, list[Choice]] = {family: [] for family in self.families}
        for sketch in space.sketches:
            choices[sketch.family] += sketch.choices
        self.stages = [list(dict.fromkeys(map(_stage_of, own))) for own in choices.values()]
        self.shared: dict[tuple[int, tuple[str, ...], object], tuple[int, int]] = {}
        self.degree: list[Ints] = [np.zeros(1, np.int64)]  # the row 0 is that of no choice
        self.target: list[Ints] = []
        self.common: list[Ints] = [np.zeros(1, np.int64)]
        self.gene_of: list[Ints] = [np.zeros(1, np.int64)]
        self.rows = 1
        self.backs = 1

    def make(self) -> SpaceTables:
        shape = (len(self.space.sketches), self.width)
        slots = max(len(values) for values in self.values)
        nodes = max(len(stages) for stages in self.stages)
        counts, defaults = np.ones(shape, np.int64), np.zeros(shape, np.int64)
        base, back = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        slot, node = np.full(shape, slots, np.int64), np.full(shape, nodes, np.int64)
        for number, sketch in enumerate(self.space.sketches):
            family = self.families.index(sketch.family)
            for position, choice in enumerate(sketch.choices):
                cell = (number, position)
                counts[cell] = len(choice.values)
                defaults[cell] = choice.values.index(choice.default)
                base[cell], back[cell] = self._rows(family, choice)
                slot[cell] = list(self.values[family]).index(choice.names)
                node[cell] = self.stages[family].index(_stage_of(choice))
        degree = np.concatenate(self.degree)
        target = np.concatenate([*self.target, np.zeros(1, np.int64)])
        kin = self._kin()
        return SpaceTables(
            self.space, counts, defaults, base, slot, node, back,
            degree, np.cumsum(degree) - degree, target,
            np.concatenate(self.common), np.concatenate(self.gene_of),
            *kin, self._chances(kin[1]), slots + 1, nodes + 1,
        )  # fmt: skip

    def _values(self, family: str) -> dict[tuple[str, ...], dict[tuple[int, ...], int]]:
        """For each name of a choice in the family, the number of every value it may take."""
        values: dict[tuple[str, ...], dict[tuple[int, ...], int]] = {}
        for sketch in self.space.sketches:
            for choice in sketch.choices if sketch.family == family else ():
                numbers = values.setdefault(choice.names, {})
                for row in choice.values:
                    numbers.setdefault(row, len(numbers))
        return values

    def _rows(self, family: int, choice: Choice) -> tuple[int, int]:
        """The offsets of a choice's rows in the flat tables, and in `gene_of`."""
        key = (family, choice.names, choice.values)
        if key not in self.shared:
            self.shared[key] = (self.rows, self.backs)
            values = self.values[family][choice.names]
            common = np.array([values[row] for row in choice.values], np.int64)
            gene_of = np.full(len(values), -1, np.int64)
            gene_of[common] = np.arange(len(common))
            pairs = _pairs_of(choice.values)
            self.degree.append(np.bincount(pairs[:, 0], minlength=len(common)))
            self.target.append(pairs[:, 1])
            self.common.append(common)
            self.gene_of.append(gene_of)
            self.rows += len(common)
            self.backs += len(values)
        return self.shared[key]

    def _kin(self) -> tuple[Ints, Ints, Ints, Ints]:
        numbers = [self.families.index(sketch.family) for sketch in self.space.sketches]
        family = np.array(numbers, np.int64)
        sizes = np.bincount(family)
        members = np.zeros((len(self.families), int(sizes.max())), np.int64)
        member_index = np.zeros(len(family), np.int64)
        for number in range(len(self.families)):
            own = np.flatnonzero(family == number)
            members[number, : len(own)] = own
            member_index[own] = np.arange(len(own))
        return family, sizes[family] - 1, member_index, members

    def _chances(self, siblings: Ints) -> NDArray[np.float64]:
        chances = np.zeros((len(self.space.sketches), self.width + 1))
        for number, sketch in enumerate(self.space.sketches):
            kinds = [choice.kind for choice in sketch.choices]
            for position, kind in enumerate(kinds):
                share = kinds.count(kind) if self.weights.is_shared else 1
                chances[number, position] = self.weights.of(kind) / share
            if siblings[number]:
                chances[number, -1] = self.weights.location
        sums = np.cumsum(chances, axis=1)
        total: NDArray[np.float64] = np.maximum(sums[:, -1:], np.finfo(np.float64).tiny)
        return sums / total


@lru_cache(maxsize=4096)
def _pairs_of(values: tuple[tuple[int, ...], ...]) -> Ints:
    """The neighbours among the rows of a choice: many choices have the same rows."""
    return neighbour_pairs(np.array(values, np.int64))


def _stage_of(choice: Choice) -> str:
    """The stage that a choice is about; its own names if it has none."""
    return choice.node or " ".join(choice.names)
