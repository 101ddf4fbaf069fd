"""New candidates from nothing and from others: sampling, mutation, crossover, neighbourhoods.

All of them work on columns: no Python loop runs over candidates. Whatever they return keeps to the
limits of its sketch.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.tuning.population.population import Population
from tensorwright.tuning.population.space_tables import SpaceTables

_SAMPLE_ROUNDS = 40
_RETRIES = 4
DRAWS = 4

Mask = NDArray[np.bool_]


def sample(
    tables: SpaceTables, count: int, random: Generator, allowed: NDArray[np.int64] | None = None
) -> Population:
    """Candidates drawn from all within the limits: a family, a sketch of it, then its choices.

    allowed   the sketches to draw from; all if None

    Each of the three is drawn uniformly, by rejection. Fewer than `count` come back where hardly
    anything keeps to the limits; equal ones may be among them.
    """
    everything = np.arange(len(tables.family)) if allowed is None else allowed
    families = tables.family[everything]
    shares = 1.0 / np.bincount(families)[families]
    chances = shares / shares.sum()
    drawn = random.choice(everything, size=count, p=chances).astype(np.int32)
    genes = np.zeros((count, tables.width), np.int64)
    open_rows = np.arange(count)
    for _ in range(_SAMPLE_ROUNDS):
        sketch = drawn[open_rows]
        counts = tables.counts[sketch]
        genes[open_rows] = (random.random(counts.shape) * counts).astype(np.int64)
        is_valid = tables.valid(Population(sketch, genes[open_rows]))
        open_rows = open_rows[~is_valid]
        if not len(open_rows):
            break
    kept = np.ones(count, np.bool_)
    kept[open_rows] = False
    return Population(drawn, genes).take(kept)


def mutate(
    tables: SpaceTables, parents: Population, random: Generator, leap: float = 0.2
) -> Population:
    """A child for each parent that differs in one decision: a choice, or where a stage is computed.

    leap   the share of mutations that draw any row of the choice; the others take a neighbour

    What a mutation is about is drawn by kind (`Weights`). A child that would not keep to the limits
    is drawn again a few times, then it is its parent.
    """
    children = Population(parents.sketch.copy(), parents.genes.copy())
    open_rows = np.arange(len(parents))
    for _ in range(_RETRIES):
        drawn = random.random((DRAWS, len(open_rows)))
        tried = step_from(tables, parents.take(open_rows), drawn, leap)
        is_valid = tables.valid(tried)
        good = open_rows[is_valid]
        children.sketch[good] = tried.sketch[is_valid]
        children.genes[good] = tried.genes[is_valid]
        open_rows = open_rows[~is_valid]
        if not len(open_rows):
            break
    return children


def step_from(
    tables: SpaceTables, parents: Population, drawn: NDArray[np.float64], leap: float
) -> Population:
    """One step from each parent, within the limits or not: a function of numbers in [0, 1).

    Shapes:  drawn (DRAWS, n): what the step is about, its row, whether it leaps, the sibling
    """
    count = np.arange(len(parents))
    position = (drawn[0][:, None] >= tables.chances[parents.sketch]).sum(axis=1)
    moves = position >= tables.width
    position = np.minimum(position, tables.width - 1)
    genes = parents.genes.copy()
    old = genes[count, position]
    row = tables.base[parents.sketch, position] + old
    degree = tables.degree[row]
    step = (drawn[1] * degree).astype(np.int64)
    near = tables.target[np.minimum(tables.start[row] + step, len(tables.target) - 1)]
    rows = tables.counts[parents.sketch, position]
    other = (drawn[1] * (rows - 1)).astype(np.int64)
    far = np.where(rows > 1, other + (other >= old), old)
    genes[count, position] = np.where((degree == 0) | (drawn[2] < leap), far, near)
    sketch = np.where(moves, _sibling(tables, parents, drawn[3]), parents.sketch).astype(np.int32)
    moved = tables.carried(parents, sketch)
    return Population(sketch, np.where(moves[:, None], moved, genes))


def _sibling(
    tables: SpaceTables, parents: Population, drawn: NDArray[np.float64]
) -> NDArray[np.int64]:
    """For each parent another sketch of its family; its own if it has no siblings."""
    others = tables.siblings[parents.sketch]
    member_index = (drawn * others).astype(np.int64)
    member_index += (member_index >= tables.member_index[parents.sketch]) & (others > 0)
    sketches: NDArray[np.int64] = tables.members[tables.family[parents.sketch], member_index]
    return sketches


def cross(
    tables: SpaceTables,
    first: Population,
    second: Population,
    random: Generator,
    by_choice: float = 0.5,
) -> tuple[Population, Mask]:
    """A child for each pair of parents of one family, and which of them took from both.

    by_choice   the share of pairs of which each choice is inherited for itself

    Of the others, the choices about one stage come from one parent, so that what makes sense
    together stays together; but in a family with one stage, each choice is for itself. The child
    is of the first parent's sketch; a choice of the second counts by its name. Pairs of two
    families, and pairs whose children keep breaking the limits, give back the first parent.

    Worth:   little. On three sets of eight made-up landscapes over the sketches of two convolutions
             the best found in 200 to 256 trials was as fast, 2 and 6 % faster with crossover; with
             another setting of the restarts 5 % slower. That is what other seeds give, too.
    """
    is_kin = tables.family[first.sketch] == tables.family[second.sketch]
    genes = first.genes.copy()
    other = tables.carried(second.take(is_kin), first.sketch[is_kin])
    nodes = _groups(tables, first.sketch, random.random(len(first)) < by_choice)
    open_rows = np.flatnonzero(is_kin)
    given = np.zeros_like(genes)
    given[open_rows] = other
    for _ in range(_RETRIES):
        if not len(open_rows):
            break
        coins = random.random((len(open_rows), max(tables.nodes, tables.width + 1))) < 0.5
        takes = np.take_along_axis(coins, nodes[open_rows], axis=1)
        tried = np.where(takes, given[open_rows], genes[open_rows])
        is_valid = tables.valid(Population(first.sketch[open_rows], tried))
        differs = np.any(tried != first.genes[open_rows], axis=1)
        differs &= np.any(tried != given[open_rows], axis=1)
        good = is_valid & differs
        genes[open_rows[good]] = tried[good]
        open_rows = open_rows[~good]
    took = is_kin
    took[open_rows] = False
    return Population(first.sketch.copy(), genes), took


def _groups(tables: SpaceTables, sketch: NDArray[np.int32], is_alone: Mask) -> NDArray[np.int64]:
    """The groups of choices that are inherited together: stages, or single choices of one stage."""
    nodes = tables.node[sketch]
    real = np.where(nodes < tables.nodes - 1, nodes, -1)
    is_one = real.max(axis=1) <= 0
    alone = np.broadcast_to(np.arange(tables.width), nodes.shape)
    return np.where((is_one | is_alone)[:, None], alone, nodes)


def neighbourhood(tables: SpaceTables, sketch: int, genes: NDArray[np.int64]) -> Population:
    """All candidates one step from this one: a choice at a neighbouring row, or a sibling sketch.

    Shapes:  genes (width,)
    """
    parts: list[NDArray[np.int64]] = []
    for position in range(len(tables.space.sketches[sketch].choices)):
        row = tables.base[sketch, position] + genes[position]
        near = tables.target[tables.start[row] : tables.start[row] + tables.degree[row]]
        steps = np.tile(genes, (len(near), 1))
        steps[:, position] = near
        parts.append(steps)
    steps = np.concatenate([np.empty((0, tables.width), np.int64), *parts])
    own = Population(np.full(len(steps), sketch, np.int32), steps)
    members = tables.members[tables.family[sketch], : tables.siblings[sketch] + 1]
    others = members[members != sketch].astype(np.int32)
    here = Population(np.full(len(others), sketch, np.int32), np.tile(genes, (len(others), 1)))
    moved = Population(others, tables.carried(here, others))
    both = Population.joined([own, moved])
    return both.take(tables.valid(both))


def everything(tables: SpaceTables, most: int) -> Population:
    """All programs of the sketches, as many as hold no more than `most` together, in order."""
    parts = [Population.empty(tables.width)]
    for number, counts in enumerate(tables.counts):
        size = float(np.prod(counts.astype(np.float64)))
        if size > most:
            continue
        most -= int(size)
        genes = np.stack(np.unravel_index(np.arange(int(size)), tuple(counts)), axis=1)
        whole = Population(np.full(len(genes), number, np.int32), genes.astype(np.int64))
        parts.append(whole.take(tables.valid(whole)))
    return Population.joined(parts)
