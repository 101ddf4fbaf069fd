"""Refute a rule by evaluating both sides at small shapes, on small whole numbers.

relu(?x) == ?x                    tried at some shapes of x, small ones first
x () = -3                         left 0, right -3
Counterexample                    the rule with these inputs and values
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product
from math import prod
from typing import TypeAlias

import numpy as np

from tensorwright.expr import Array
from tensorwright.rewriting.meaning import evaluate_terms
from tensorwright.rewriting.operators import IntShape, StructureKind, operator_named
from tensorwright.rewriting.prove.problem import Problem
from tensorwright.rewriting.prove.sampling import sample_shapes
from tensorwright.rewriting.terms import Rule, operator_names
from tensorwright.rewriting.text import rule_text

_RELATIVE = 1e-7
_SMALL = 24
"""Shapes of extents 1 and 2 at which a false rule is tried again, for a short counterexample."""

_TRIES = 8
"""Inputs at which a quotient is looked for that has a value: some are of one sign."""

Shapes: TypeAlias = dict[str, IntShape]


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """Inputs for which two roots differ.

    inputs  (name, array) pairs, float64
    root    which pair of roots
    left    its value on the left side; `right` on the right side
    """

    rule: Rule
    inputs: tuple[tuple[str, Array], ...]
    root: int
    left: Array
    right: Array

    def __str__(self) -> str:
        lines = [rule_text(self.rule)]
        lines += [f"  {name} {_shape_text(a.shape)} = {_array_text(a)}" for name, a in self.inputs]
        for side, value in (("left", self.left), ("right", self.right)):
            lines.append(f"  {side} {_shape_text(value.shape)} = {_array_text(value)}")
        return "\n".join(lines)

    def is_valid(self) -> bool:
        """Evaluate both sides again and see that they differ."""
        again = try_inputs(self.rule, dict(self.inputs))
        return again is not None and again.root == self.root


def _shape_text(shape: IntShape) -> str:
    return f"({', '.join(map(str, shape))})"


def _array_text(array: Array) -> str:
    text = np.array2string(array, threshold=64, separator=", ", precision=6)
    return " ".join(text.split())


def refute(problems: Iterable[Problem], shapes: int = 8, largest: int = 4) -> Counterexample | None:
    """Try some shapes for each choice of ranks; None where both sides agree at all of them.

    Small shapes come first.  The trials follow from the text of the rule, so they are the same on
    every machine.
    """
    for problem in problems:
        seed = zlib.crc32(rule_text(problem.rule).encode())
        samples = tuple(islice(sample_shapes(problem, seed, largest), shapes))
        counterexample = _first(problem, seed, samples, shapes)
        if counterexample is not None:
            small = tuple(islice(sample_shapes(problem, seed, largest=2), _SMALL))
            return _first(problem, seed, small, _SMALL) or counterexample
    return None


def _first(
    problem: Problem, seed: int, shapes: Sequence[Shapes], tries: int
) -> Counterexample | None:
    """The first counterexample, small shapes first; where there are few, each is tried again."""
    ordered = sorted(shapes, key=_volume)
    for count, sample in enumerate(islice(cycle(ordered), tries)):
        counterexample = try_inputs(problem.rule, _random_inputs(sample, seed + count))
        if counterexample is not None:
            return counterexample
    return None


def divides(rule: Rule) -> bool:
    """Whether a side has a divisor."""
    names = operator_names(*rule.roots)
    return any(operator_named(n).structure is StructureKind.QUOTIENT for n in names)


def has_values(problems: Iterable[Problem]) -> bool:
    """Whether at some inputs each root has finite elements on both sides.

    Where a divisor is zero for all inputs, nothing is compared, and anything could be proved.
    """
    for problem in problems:
        rule = problem.rule
        if not divides(rule):
            return True
        for seed, sample in product(range(1, _TRIES), islice(sample_shapes(problem, 1), 2)):
            values = evaluate_terms(rule.roots, _random_inputs(sample, seed))
            if all(np.isfinite(value).any() for value in values):
                return True
    return False


def _volume(shapes: Shapes) -> int:
    return sum(prod(shape) for shape in shapes.values())


_RANGES = ((-4, 4), (-4, 4), (-4, -1), (1, 4), (-1, 1))


def _random_inputs(shapes: Shapes, seed: int) -> dict[str, Array]:
    """Small whole numbers; sometimes of one sign: a maximum of many is rarely negative."""
    generator = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for name, shape in shapes.items():
        low, high = _RANGES[generator.integers(len(_RANGES))]
        inputs[name] = generator.integers(low, high + 1, shape).astype(np.float64)
    return inputs


def try_inputs(rule: Rule, inputs: dict[str, Array]) -> Counterexample | None:
    """The counterexample that some inputs are, if they are one.

    Elements that are not finite on either side (a division by zero) are not compared.
    """
    values = evaluate_terms(rule.roots, inputs)
    count = len(rule.left)
    for root, (left, right) in enumerate(zip(values[:count], values[count:], strict=True)):
        if left.shape != right.shape or _differ(left, right):
            return Counterexample(rule, tuple(inputs.items()), root, left, right)
    return None


def _differ(left: Array, right: Array) -> bool:
    finite = np.isfinite(left) & np.isfinite(right)
    one, other = left[finite], right[finite]
    scale = np.maximum(1.0, np.maximum(np.abs(one), np.abs(other)))
    return bool(np.any(np.abs(one - other) > _RELATIVE * scale))
