"""Concrete shapes at which a rule applies: both sides fit, the condition holds.

ewadd(matmul(?x, ?y), ?z) == ewadd(?z, matmul(?x, ?y)) if x.0 >= 2
free                              x.0, x.1, y.1; the other extents are equal to them
a sample                          x (2, 3), y (3, 1), z (2, 1)
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

from tensorwright.rewriting.dims import Extent, Shape, Size, value_of
from tensorwright.rewriting.meaning import infer_shapes
from tensorwright.rewriting.operators import ArgumentRole, IntShape, arguments_of
from tensorwright.rewriting.prove.problem import Problem
from tensorwright.rewriting.shapes import Misfit
from tensorwright.rewriting.terms import (
    AtLeast,
    ConditionAtom,
    Divides,
    Equal,
    Rank,
    Rule,
    input_names,
    resized_fact,
)

Shapes = dict[str, IntShape]


def sample_shapes(
    problem: Problem, seed: int, largest: int = 4, tries: int = 200
) -> Iterator[Shapes]:
    """Shapes that fit a rule, extents between 1 and about `largest`, each once, at random.

    Ends after `tries` attempts, without any shape where none was found.
    """
    chance = random.Random(seed)
    solved = {extent for extent, _ in problem.assumptions.solved}
    free = tuple(extent for extent in problem.extents if extent not in solved)
    seen: set[tuple[tuple[str, IntShape], ...]] = set()
    solved_shapes = [
        (name, tuple(map(problem.assumptions.normal, s))) for name, s in problem.shapes
    ]
    for _ in range(tries):
        values: dict[Extent, Size] = {extent: chance.randint(1, largest) for extent in free}
        shapes = _at(solved_shapes, values)
        if shapes is None or tuple(shapes.items()) in seen:
            continue
        seen.add(tuple(shapes.items()))
        if fits(problem, shapes):
            yield shapes


def kernel_inputs(rule: Rule) -> set[str]:
    """The inputs that are kernels of convolutions."""
    return set(input_names(*arguments_of(ArgumentRole.KERNEL, *rule.roots)))


def shapes_at(problem: Problem, values: Mapping[Extent, Size]) -> Shapes | None:
    """The shapes of the inputs where free extents have these values; None where they do not fit."""
    solved = [
        (name, tuple(map(problem.assumptions.normal, shape))) for name, shape in problem.shapes
    ]
    return _at(solved, values)


def _at(solved: Iterable[tuple[str, Shape]], values: Mapping[Extent, Size]) -> Shapes | None:
    """Shapes in terms of free extents that have values; None where one is not an extent."""
    shapes: Shapes = {}
    for name, shape in solved:
        extents: list[int] = []
        for size in shape:
            try:
                value = value_of(size, values)
            except ZeroDivisionError:
                return None
            if not isinstance(value, int) or value < 1:
                return None
            extents.append(value)
        shapes[name] = tuple(extents)
    return shapes


def fits(problem: Problem, shapes: Shapes) -> bool:
    """Whether both sides are well-typed and the condition holds; roots may differ in shape."""
    rule = problem.rule
    if isinstance(infer_shapes(rule.roots, shapes), Misfit):
        return False
    return all(holds_at(fact, shapes) for fact in rule.condition)


def holds_at(fact: ConditionAtom, shapes: Mapping[str, IntShape]) -> bool:
    """Whether an atom of a condition is true of concrete shapes."""
    match resized_fact(fact, lambda extent: shapes[extent.name][extent.axis]):
        case Rank(name, rank):
            return len(shapes[name]) == rank
        case Equal(left, right):
            return left == right
        case AtLeast(int(left), int(right)):
            return left >= right
        case Divides(int(divisor), int(number)):
            return number % divisor == 0
    return False
