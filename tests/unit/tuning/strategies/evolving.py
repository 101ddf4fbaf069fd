"""A made-up space with families, limits and nodes, and landscapes over it, for searches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tests.unit.tuning.helpers import doubled

from tensorwright.expr import Decision
from tensorwright.records import Record, Status
from tensorwright.schedule import Split
from tensorwright.tuning.population import Candidate, Population
from tensorwright.tuning.space import Choice, Kind, Limit, Sketch, Space, factorisations
from tensorwright.tuning.strategies import Outcome
from tensorwright.tuning.task import Task

TASK = Task(doubled())
TILES = Choice(("m0", "m1"), factorisations(48, 2, 16), (4, 4), Kind.TILE, "c")
COLUMNS = Choice(("n0", "n1"), factorisations(64, 2, 16), (2, 16), Kind.TILE, "c")
REDUCTION = Choice.of("k", (1, 2, 4, 8, 16, 32), 4, Kind.UNROLL, "c")
WIDTH = Choice.of("w", (1, 2, 4, 8, 16), 16, Kind.TILE, "pad")
DEPTH = Choice.of("d", (1, 2, 3, 4), 1, Kind.PARALLEL, "pad")
FEWER = Choice.of("w", (2, 4, 8), 8, Kind.TILE, "pad")
LIMIT = Limit(Decision("m1") * Decision("n1"), 64)


def _sketch(name: str, family: str, choices: tuple[Choice, ...], limited: bool) -> Sketch:
    names = [name for choice in choices for name in choice.names]
    step = Split("y", name, tuple(Decision(each) for each in names))
    return Sketch(name, (step,), choices, (LIMIT,) if limited else (), family)


SPACE = Space(
    (
        _sketch("root", "tiled", (TILES, COLUMNS, REDUCTION, WIDTH, DEPTH), True),
        _sketch("band", "tiled", (WIDTH, TILES, COLUMNS, REDUCTION), True),
        _sketch("tile", "tiled", (TILES, COLUMNS, REDUCTION, FEWER), True),
        _sketch("plain", "plain", (REDUCTION, WIDTH), False),
        _sketch("fixed", "fixed", (), False),
    )
)


def decisions_at(population: Population, row: int, space: Space = SPACE) -> dict[str, int]:
    sketch = space.sketches[int(population.sketch[row])]
    genes = population.genes[row]
    assert not genes[len(sketch.choices) :].any()
    return sketch.decisions_of(tuple(int(gene) for gene in genes[: len(sketch.choices)]))


_BEST = {"m0": 3, "m1": 4, "n0": 2, "n1": 16, "k": 8, "w": 8, "d": 2}
_SKETCH = {"root": 1.6, "band": 1.0, "tile": 1.2, "plain": 3.0, "fixed": 4.0}


def time_s(sketch: str, decisions: dict[str, int]) -> float:
    """Milliseconds; the best program is one of the sketch "band", and single steps lead to it."""
    away = [abs(np.log2(value / _BEST[name])) for name, value in decisions.items()]
    worst = max(away, default=0.0)
    return float(1e-3 * _SKETCH[sketch] * (1.0 + 0.15 * sum(away) + 0.1 * worst**2))


BEST_S = time_s("band", {name: value for name, value in _BEST.items() if name != "d"})


def times_of(population: Population, space: Space = SPACE) -> NDArray[np.float64]:
    names = [space.sketches[int(one)].name for one in population.sketch]
    rows = range(len(population))
    return np.array([time_s(names[row], decisions_at(population, row, space)) for row in rows])


class Oracle:
    """A guide that knows the landscape, but for noise that is the same every time."""

    def __init__(self, noise: float = 0.0, space: Space = SPACE) -> None:
        self.noise = noise
        self.space = space
        self.learnt: list[Outcome] = []

    def refresh(self) -> None:
        pass

    def scores(self, population: Population) -> NDArray[np.float64]:
        wobble = (population.keys % np.uint64(1009)).astype(np.float64) / 1009 - 0.5
        return -np.log(times_of(population, self.space)) + self.noise * wobble

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        self.learnt += outcomes


def record_of(candidate: Candidate, status: Status = Status.OK) -> Record:
    times_s = (time_s(candidate.sketch, dict(candidate.decisions)),) if status.is_timed else ()
    return Record(
        "doubled", "t", "h", 1, candidate.trace, times_s, status, decisions=candidate.decisions
    )
