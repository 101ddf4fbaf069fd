"""Check equalities at random inputs other than those of the fingerprints.

    evaluator = Evaluator({"x": (2, 3)}, seed=1)
    evaluator.holds(relu(relu(?x)) == relu(?x))     True, at eight samples
    evaluator.holds(relu(?x) == ?x)                 False

A fingerprint takes two samples, and relu of few elements may leave them all as they are by chance.
Equalities are therefore evaluated once more, at more samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from tensorwright.rewriting.assumptions import Misfit, Needs, fitting
from tensorwright.rewriting.meaning import instantiate
from tensorwright.rewriting.operators import IntShape, operator_named
from tensorwright.rewriting.terms import Input, Rule, Term
from tensorwright_lab.rule_generation.fingerprint.field import random_values
from tensorwright_lab.rule_generation.fingerprint.kernels import Values, values_of
from tensorwright_lab.rule_generation.fingerprint.structure import structure_of

_SAMPLES = 8
_KEPT = 4096


class Evaluator:
    """Values of terms at random inputs; those of small terms are kept.

    shapes  of the inputs by name
    """

    def __init__(self, shapes: Mapping[str, IntShape], seed: int) -> None:
        self._shapes = dict(shapes)
        self._seed = seed
        self._values: dict[Term, tuple[IntShape, Values]] = {}

    def declare(self, name: str, shape: IntShape) -> None:
        """A further input; the same name always has the same shape."""
        self._shapes[name] = shape

    def holds(self, rule: Rule) -> bool:
        """Whether both sides have the same values."""
        sides = zip(rule.left, rule.right, strict=True)
        return all(self._equal(left, right) for left, right in sides)

    def _equal(self, left: Term, right: Term) -> bool:
        (shape, value), (other_shape, other) = map(self._at_shapes, (left, right))
        return shape == other_shape and bool((value == other).all())

    def _at_shapes(self, term: Term) -> tuple[IntShape, Values]:
        """The value of a term whose parameters may be sizes over the inputs."""
        numbered = instantiate(term, self._shapes)
        assert not isinstance(numbered, Misfit), "what was enumerated fits its inputs"
        return self.value(numbered)

    def value(self, term: Term) -> tuple[IntShape, Values]:
        """The shape of a term and its value, (1, samples, size); its parameters are numbers."""
        evaluated = self._values.get(term)
        if evaluated is None:
            if len(self._values) >= _KEPT:
                self._values.clear()
            evaluated = self._input(term) if isinstance(term, Input) else self._evaluate(term)
            self._values[term] = evaluated
        return evaluated

    def _input(self, term: Input) -> tuple[IntShape, Values]:
        shape = self._shapes[term.name]
        digest = hashlib.sha256(f"input {self._seed} {term.name}".encode()).digest()
        generator = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        return shape, random_values(generator, _SAMPLES, shape)

    def _evaluate(self, term: Term) -> tuple[IntShape, Values]:
        assert not isinstance(term, Input)
        arguments = [self.value(each) for each in term.args]
        shapes = tuple(shape for shape, _ in arguments)
        extents = fitting(operator_named(term.operator).result(term.params, shapes, Needs()))
        shape = tuple(extent for extent in extents if isinstance(extent, int))
        structure = structure_of(term.operator, term.params, shapes)
        values = tuple(value for _, value in arguments)
        result = values_of(structure, values)
        if not values:
            result = np.repeat(result[:, :1], _SAMPLES, axis=1)
        return shape, result
