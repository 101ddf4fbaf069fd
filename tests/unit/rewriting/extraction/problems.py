"""Small extraction problems, and the cheapest selection of each by trying all."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from tests.draws import first_seed

from tensorwright.rewriting.extraction import ExtractionProblem, Selection


def random_problem(
    seed: int, classes: int = 7, most_nodes: int = 3, costs: tuple[int, int] = (0, 5)
) -> ExtractionProblem:
    """Some nodes of each class over any classes; loops are frequent, and one class is a leaf."""
    source = random.Random(first_seed() + seed)
    nodes: list[tuple[int, float, tuple[int, ...]]] = [(classes - 1, 1.0, ())]
    for name in range(classes - 1):
        for _ in range(source.randint(1, most_nodes)):
            below = tuple(source.randrange(classes) for _ in range(source.randint(1, 3)))
            nodes.append((name, float(source.randint(*costs)), below))
    return ExtractionProblem.of(nodes, (0, 1))


def joined(seed: int) -> ExtractionProblem:
    """Two of a few tensors, and what is made of each, joined in many forms and made the same of.

    Loops are frequent: some tensors are also had from what is joined.
    """
    source = random.Random(first_seed() + seed)
    tensors = range(1, 3)
    nodes: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, (5, source.choice((3, 6))))]
    for tensor in tensors:
        nodes += [(tensor, float(source.randint(1, 3)), ()), (tensor + 2, 1.0, (tensor,))]
    name = 7
    for left in (1, 3):
        for right in (2, 4):
            if source.random() < 0.8:
                nodes += [(name, float(source.randint(2, 3)), (left, right))]
                nodes += [(source.choice((5, 5, 6)), 1.0, (name,))]
                if source.random() < 0.4:
                    nodes.append((source.choice((left, right)), 0.0, (name,)))
                name += 1
    nodes.append((6, 2.0, (source.randint(3, name - 1),)))
    nodes.append((5, 3.0, (source.randint(1, 6),)))
    return ExtractionProblem.of(nodes, (0,))


def every_selection(problem: ExtractionProblem) -> Iterator[Selection]:
    """All selections, some of them several times."""
    names = [name for name, members in enumerate(problem.members) if members]
    for nodes in itertools.product(*(problem.members[name] for name in names)):
        try:
            yield Selection.of(problem, dict(zip(names, nodes, strict=True)))
        except (KeyError, ValueError):
            continue


def best_of_all(problem: ExtractionProblem) -> float:
    """The least cost of a selection; infinite where there is none."""
    return min((each.cost for each in every_selection(problem)), default=math.inf)


def merged(count: int = 2) -> ExtractionProblem:
    """Products of one tensor, each of cost 10 alone and 11 for all of them together.

    Classes: 0 the pair of results, 1.. the results, then the product of all, the tensor.
    """
    shared, tensor = count + 1, count + 2
    nodes: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, tuple(range(1, count + 1)))]
    for name in range(1, count + 1):
        nodes += [(name, 10.0, (tensor,)), (name, 0.0, (shared,))]
    nodes += [(shared, 11.0, (tensor,)), (tensor, 0.0, ())]
    return ExtractionProblem.of(nodes, (0,))


def split_again() -> ExtractionProblem:
    """Three products, alone or as parts of one product, where parts may be concatenated, too.

    Classes: 0 all of them, 1 2 3 the products, 4 the first two, 5 the three, 6 the tensor.
    """
    nodes: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, (1, 2, 3)), (6, 0.0, ())]
    nodes += [(name, 10.0, (6,)) for name in (1, 2, 3)]
    nodes += [(1, 1.0, (4,)), (2, 1.0, (4,)), (3, 1.0, (5,)), (4, 2.0, (5,))]
    nodes += [(4, 4.0, (1, 2)), (5, 6.0, (4, 3)), (4, 15.0, (6,)), (5, 23.0, (6,))]
    return ExtractionProblem.of(nodes, (0,))
