"""Test whether a rule holds at other shapes than those where it was found, in floats.

    RandomShapes(relu(relu(?x)) == relu(?x)).holds(())         True
    RandomShapes(transpose[1, 0](?x) == ?x).holds(())          False: seen at x (3, 2)
    the same .refutes((Rank("x", 2),))                         True, without another evaluation

This refutes false generalisations, and equalities that hold only for the stand-ins of exact
arithmetic.  It proves nothing.  Shapes at which a rule is false refute it under every condition
that is true there, so that most conditions that do not suffice are seen without another evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from tensorwright.expr import Array
from tensorwright.rewriting.assumptions import Misfit
from tensorwright.rewriting.meaning import evaluate_terms, infer_shapes
from tensorwright.rewriting.operators import ArgumentRole, IntShape, arguments_of
from tensorwright.rewriting.prove import Problem, problems_of, sample_shapes
from tensorwright.rewriting.prove.problem import holds_at
from tensorwright.rewriting.terms import Condition, ConditionAtom, Input, Rule, extents_in

_SAMPLES = 6
_FEWEST = 3
_TRIES = 12
_LARGEST = (4, 9)
_TOLERANCE = 1e-7


class RandomShapes:
    """Compares the two sides of a rule at random shapes; keeps where they agree and where not."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._agrees: dict[tuple[tuple[str, IntShape], ...], bool] = {}
        self._refuting: list[Mapping[str, IntShape]] = []

    def holds(self, condition: Condition, seed: int = 0, samples: int = _SAMPLES) -> bool:
        """Whether both sides agree wherever it was tried; False where no shapes fit the rule.

        samples  shapes that are tried; where inputs may have several ranks, so many of all ranks
                 together, but a few of each
        """
        if self.refutes(condition):
            return False
        is_tried = False
        problems = problems_of(replace(self._rule, condition=condition))
        each = samples if len(problems) < 2 else max(_FEWEST, samples // len(problems))
        for problem in problems:
            for shapes in _samples(problem, seed, each):
                is_tried = True
                if not self._agree(shapes, seed):
                    return False
        return is_tried

    def refutes(self, condition: Condition) -> bool:
        """Whether the rule was seen to be false at shapes where this condition is true."""
        return any(all(is_true(fact, shapes) for fact in condition) for shapes in self._refuting)

    def _agree(self, shapes: Mapping[str, IntShape], seed: int) -> bool:
        key = tuple(shapes.items())
        if key not in self._agrees:
            self._agrees[key] = agree_at(self._rule, shapes, seed)
            if not self._agrees[key]:
                self._refuting.append(dict(shapes))
        return self._agrees[key]


def is_true(fact: ConditionAtom, shapes: Mapping[str, IntShape]) -> bool:
    """Whether shapes satisfy a condition; not where an extent of it does not exist."""
    extents = extents_in(fact)
    if any(extent.axis >= len(shapes[extent.name]) for extent in extents):
        return False
    try:
        return holds_at(fact, shapes)
    except ZeroDivisionError:
        return False


def _samples(problem: Problem, seed: int, count: int) -> Iterator[dict[str, IntShape]]:
    """Some shapes that fit; larger ones only where no small ones do."""
    for largest in _LARGEST:
        is_found = False
        for shapes in islice(sample_shapes(problem, seed, largest, _TRIES * count), count):
            is_found = True
            yield shapes
        if is_found:
            return


def agree_at(rule: Rule, shapes: Mapping[str, IntShape], seed: int = 0) -> bool:
    """Whether both sides have equal shapes and values for random inputs of these shapes."""
    generator = np.random.default_rng(seed)
    inputs: dict[str, Array] = {
        name: generator.standard_normal(shape) for name, shape in shapes.items()
    }
    for name in _variances(rule):
        inputs[name] = np.abs(inputs[name])
    count, roots = len(rule.left), rule.roots
    if isinstance(infer_shapes(roots, shapes), Misfit):
        return False
    with np.errstate(all="ignore"):
        values = evaluate_terms(roots, inputs)
    return all(_equal(a, b) for a, b in zip(values[:count], values[count:], strict=True))


def _equal(a: Array, b: Array) -> bool:
    """Equal shapes and, but for rounding, values; what is not a number is so on both sides."""
    if a.shape != b.shape:
        return False
    numbers = np.isfinite(a)
    if not np.array_equal(numbers, np.isfinite(b)):
        return False
    x, y = a[numbers], b[numbers]
    scale = max(1.0, float(np.abs(x).max(initial=0.0)))
    return bool(np.abs(x - y).max(initial=0.0) <= _TOLERANCE * scale)


def _variances(rule: Rule) -> set[str]:
    """The inputs that are variances: not negative."""
    variances = arguments_of(ArgumentRole.VARIANCE, *rule.roots)
    return {each.name for each in variances if isinstance(each, Input)}
