"""Refute a rule by evaluating both sides at small shapes, on small whole numbers.

relu(?x) == ?x                    tried at some shapes of x, small ones first
x () = -3                         left 0, right -3
Counterexample                    the rule with these inputs and values

The outcome for a rule: proved, refuted or unknown, with the evidence.

relu(relu(?x)) == relu(?x)        Proved: the axioms, and the chain of terms
relu(?x) == ?x                    Refuted: a counterexample, x = [-1]
tanh(relu(?x)) == relu(tanh(?x))  Unknown: the axioms find nothing more
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import cycle, islice, product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tensorwright.expr import Array
from tensorwright.rewriting.egraph import Chain
from tensorwright.rewriting.meaning import evaluate_terms
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.prove.problem import Problem, sample_shapes
from tensorwright.rewriting.terms import Rule, operator_names
from tensorwright.rewriting.text import parse_rule, rule_text, term_text

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
    ordered = sorted(shapes, key=lambda each: sum(map(prod, each.values())))
    for count, sample in enumerate(islice(cycle(ordered), tries)):
        counterexample = try_inputs(problem.rule, _random_inputs(sample, seed + count))
        if counterexample is not None:
            return counterexample
    return None


def divides(rule: Rule) -> bool:
    """Whether a side has a divisor."""
    return "ewdiv" in operator_names(*rule.roots)


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


class Basis(Enum):
    """The basis of a proof; the value is its text."""

    AXIOM = "an axiom under other names, Z3 is not asked"
    CHAIN = "a chain of axioms, Z3 is not asked"
    Z3 = "a chain of axioms, confirmed by Z3"


@dataclass(frozen=True, slots=True)
class Proved:
    """The rule holds for all shapes that fit it.

    axioms         the names of those that the proof needs, sorted
    chains         for each pair of roots, the terms from left to right, at the first ranks
    reassociating  whether it holds over the reals and need not over floats
    ranks          at how many choices of ranks of the inputs it was proved: all that fit it
    resources      counted by Z3; 0 where Z3 was not asked
    basis          whether Z3 was
    """

    rule: Rule
    axioms: tuple[str, ...]
    chains: tuple[Chain, ...]
    reassociating: bool
    ranks: int
    resources: int
    basis: Basis

    def __str__(self) -> str:
        names = ", ".join(self.axioms) or "nothing"
        lines = [
            f"proved at {self.ranks} choice(s) of ranks from {names}",
            f"  it rests on {self.basis.value}",
        ]
        for chain in self.chains:
            if chain:
                lines.append(f"  {term_text(chain[0].before)}")
            for step in chain:
                way = "" if step.forward else ", read from right to left"
                lines.append(f"    by {step.rule}{way}")
                lines.append(f"  {term_text(step.after)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Refuted:
    """The rule is false: here are inputs for which the sides differ."""

    rule: Rule
    counterexample: Counterexample

    def __str__(self) -> str:
        return f"refuted by\n{self.counterexample}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither proved nor refuted.

    reason  what ended the search for a proof
    """

    rule: Rule
    reason: str

    def __str__(self) -> str:
        return f"unknown: {self.reason}"


Outcome: TypeAlias = Proved | Refuted | Unknown


def plain_outcome(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data, without the chains of its proof."""
    match outcome:
        case Proved(_, axioms, _, reassociating, ranks, resources, basis):
            about = [list(axioms), reassociating, ranks, resources, basis.name]
            return {"outcome": "proved", "rule": rule_text(outcome.rule), "about": about}
        case Refuted(rule, example):
            sides = example.root, example.left.tolist(), example.right.tolist()
            inputs = [(name, value.tolist()) for name, value in example.inputs]
            texts = rule_text(rule), rule_text(example.rule)
            return {"outcome": "refuted", "rules": texts, "inputs": inputs, "sides": sides}
        case Unknown(rule, reason):
            return {"outcome": "unknown", "rule": rule_text(rule), "reason": reason}


def outcome_of(plain: Mapping[str, Any]) -> Outcome:
    """The inverse of `plain_outcome`."""
    if plain["outcome"] == "proved":
        axioms, reassociating, ranks, resources, basis = plain["about"]
        about = (reassociating, ranks, resources, Basis[basis])
        return Proved(parse_rule(plain["rule"]), tuple(axioms), (), *about)
    if plain["outcome"] == "unknown":
        return Unknown(parse_rule(plain["rule"]), plain["reason"])
    rule, of = map(parse_rule, plain["rules"])
    inputs = tuple((name, np.array(value, np.float64)) for name, value in plain["inputs"])
    root, left, right = plain["sides"]
    sides = np.array(left, np.float64), np.array(right, np.float64)
    return Refuted(rule, Counterexample(of, inputs, root, *sides))
