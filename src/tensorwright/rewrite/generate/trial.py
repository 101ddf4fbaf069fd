"""Does a rule hold at shapes other than those where it was found?  Random shapes decide, in floats.

This refutes a generalisation that is false, and what only the stand-ins of exact arithmetic make
equal.  It proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from tensorwright.expr import Array
from tensorwright.rewrite.meaning import evaluate_terms
from tensorwright.rewrite.operators import IntShape
from tensorwright.rewrite.prove import Problem, problems_of, sample_shapes
from tensorwright.rewrite.shapes import IllTyped
from tensorwright.rewrite.terms import Input, Rule, applications

__all__ = ["agree_at", "holds"]

_SAMPLES = 6
_FEWEST = 3
_TRIES = 12
_LARGEST = (4, 9)
_TOLERANCE = 1e-7


def holds(rule: Rule, seed: int = 0, samples: int = _SAMPLES) -> bool:
    """Whether both sides agree wherever it was tried; False where no shapes fit the rule.

    samples  shapes that are tried; where inputs may have several ranks, so many of all ranks
             together, but a few of each
    """
    is_tried = False
    problems = problems_of(rule)
    each = samples if len(problems) < 2 else max(_FEWEST, samples // len(problems))
    for problem in problems:
        for shapes in _samples(problem, seed, each):
            is_tried = True
            if not agree_at(rule, shapes, seed):
                return False
    return is_tried


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
    count = len(rule.left)
    try:
        with np.errstate(all="ignore"):
            values = evaluate_terms((*rule.left, *rule.right), inputs)
    except IllTyped:
        return False
    return all(_equal(a, b) for a, b in zip(values[:count], values[count:], strict=True))


def _equal(a: Array, b: Array) -> bool:
    """Equal shapes and, but for rounding, values; what is no number is so on both sides."""
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
    return {
        each.args[4].name
        for each in applications(*rule.left, *rule.right)
        if each.operator == "batch_norm" and isinstance(each.args[4], Input)
    }
