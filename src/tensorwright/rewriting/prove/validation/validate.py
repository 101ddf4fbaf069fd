"""Validate an axiom: evaluate both sides on symbolic tensors at many shapes, and compare.

    relu-concat: relu(concat[_axis](?x, ?y)) == concat[_axis](relu(?x), relu(?y))
    at _axis = 1, x (2, 1), y (2, 3)  both are [max(0, x[0, 0]), max(0, y[0, 0]), ...]
    Validation                        how many such shapes were tried, and no fault

A symbolic tensor has an unknown in each element, so that agreement at a shape is agreement for all
inputs of that shape.  Where the normal form is too weak, random inputs decide: numbers of a finite
field (a quotient by a sum), floats (what rests on an order: exp is positive).  The report counts
those shapes apart.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tensorwright.expr import FieldDomain, SymbolicDomain, residues
from tensorwright.rewriting.axioms import Axiom
from tensorwright.rewriting.dims import Extent, Size
from tensorwright.rewriting.egraph import variables_of
from tensorwright.rewriting.meaning import evaluate_terms, infer_shapes
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.prove.instances import concrete_rule
from tensorwright.rewriting.prove.parameters import places_of, random_values
from tensorwright.rewriting.prove.problem import Problem, problems_of
from tensorwright.rewriting.prove.refute import try_inputs
from tensorwright.rewriting.prove.sampling import fits, kernel_inputs, sample_shapes, shapes_at
from tensorwright.rewriting.prove.validation.polynomials import Polynomials
from tensorwright.rewriting.shapes import fitting
from tensorwright.rewriting.terms import Rule
from tensorwright.rewriting.text import rule_text


@dataclass(frozen=True, slots=True)
class Budget:
    """The amount of trials for each axiom.

    shapes   distinct choices of parameters and shapes
    largest  extents are up to about this
    tries    attempts at most
    volume   elements of all inputs together, at most; more where too few shapes have so few
    whole    whether extents of 4 everywhere are tried, too
    each     shapes at least for each axiom that one line of a file stands for
    """

    shapes: int
    largest: int
    tries: int
    volume: int
    whole: bool = True
    each: int = 0


QUICK = Budget(shapes=20, largest=3, tries=4000, volume=160, each=1)
FULL = Budget(shapes=100, largest=4, tries=20000, volume=600, each=2)


@dataclass(frozen=True, slots=True)
class Fault:
    """A shape at which an axiom is false: the rule with its parameters, the shapes, the reason."""

    rule: Rule
    shapes: tuple[tuple[str, IntShape], ...]
    reason: str

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {shape}" for name, shape in self.shapes)
        return f"{rule_text(self.rule)} at {shapes}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Validation:
    """The trials for one axiom (all that one line of a file stands for).

    shapes   choices of parameters and shapes at which both sides were compared
    unequal  those whose extents are not all the same
    whole    whether one of them was with all extents 4, as far as the shapes allow it
    complete whether there are no others: no parameters, and inputs of rank 0 alone
    sampled  those that the normal form could not decide, and random inputs did
    """

    name: str
    shapes: int
    unequal: int
    whole: bool
    sampled: int
    faults: tuple[Fault, ...]
    complete: bool


def validate(name: str, axioms: Sequence[Axiom], budget: Budget = QUICK) -> Validation:
    """Try all that one line of a file of axioms stands for, in turn."""
    chance = random.Random(zlib.crc32(name.encode()))
    seen: dict[tuple[Rule, tuple[tuple[str, IntShape], ...]], bool] = {}
    faults: list[Fault] = []
    sampled = 0
    whole = False
    for rule, shapes in _fours(axioms, chance) if budget.whole else ():
        whole = True
        seen[rule, tuple(shapes.items())] = True
        sampled += _compare(rule, shapes, faults)
        break
    for rule, shapes in _samples(axioms, chance, budget):
        key = (rule, tuple(shapes.items()))
        if key in seen:
            continue
        seen[key] = True
        sampled += _compare(rule, shapes, faults)
        if len(seen) >= max(budget.shapes, budget.each * len(axioms)) or len(faults) > 3:
            break
    unequal = sum(1 for rule, shapes in seen if _is_unequal(rule, shapes))
    has_params = any(_param_names(axiom) for axiom in axioms)
    is_all = not has_params and not any(shape for _, each in seen for _, shape in each)
    return Validation(name, len(seen), unequal, whole, sampled, tuple(faults), is_all)


def _param_names(axiom: Axiom) -> set[str]:
    names = variables_of(*axiom.rule.roots)
    return {name for name in names if name.startswith("_")}


def _is_unequal(rule: Rule, shapes: tuple[tuple[str, IntShape], ...]) -> bool:
    extents = {extent for _, shape in shapes for extent in shape}
    (result,) = fitting(infer_shapes(rule.left, dict(shapes)))
    return len(extents | set(result)) > 1


def _samples(
    axioms: Sequence[Axiom], chance: random.Random, budget: Budget
) -> Iterator[tuple[Rule, dict[str, IntShape]]]:
    """Rules with concrete parameters, and shapes that fit them, at random and without end."""
    problems_of_rule: dict[Rule, tuple[Problem, ...]] = {}
    for attempt in range(budget.tries):
        axiom = axioms[attempt % len(axioms)]
        largest = budget.largest + attempt // 150
        volume = budget.volume * (1 + attempt // 1000)
        rule = _random_instance(axiom, chance, largest)
        problems = problems_of_rule.get(rule)
        if problems is None:
            problems = problems_of_rule[rule] = problems_of(rule)
        if not problems:
            continue
        problem = chance.choice(problems)
        seed = chance.randrange(2**32)
        for shapes in sample_shapes(problem, seed, largest, tries=8):
            if sum(prod(shape) for shape in shapes.values()) <= volume:
                yield rule, shapes
                break


def _fours(
    axioms: Sequence[Axiom], chance: random.Random
) -> Iterator[tuple[Rule, dict[str, IntShape]]]:
    """Shapes whose extents are 4: kernels 3, one extent 8 or images 5 where 4 does not fit."""
    for attempt in range(400):
        axiom = axioms[attempt % len(axioms)]
        rule = _random_instance(axiom, chance, 3 + attempt // 60)
        for problem in reversed(problems_of(rule)):
            for shapes in _of_fours(problem, rule):
                yield rule, shapes


def _random_instance(axiom: Axiom, chance: random.Random, largest: int) -> Rule:
    return concrete_rule(axiom.rule, random_values(places_of(axiom.rule), chance, largest))


def _of_fours(problem: Problem, rule: Rule) -> Iterator[dict[str, IntShape]]:
    kernels = kernel_inputs(rule)
    for rows in (4, 5):
        values: dict[Extent, Size] = {
            extent: 4 if extent.axis < 2 else 3 if extent.name in kernels else rows
            for extent in problem.extents
        }
        for one in (None, *values):
            shapes = shapes_at(problem, values if one is None else values | {one: 8})
            if shapes is not None and fits(problem, shapes):
                yield shapes
                return


def _compare(rule: Rule, shapes: Mapping[str, IntShape], faults: list[Fault]) -> int:
    """Compare both sides; 1 where only random inputs could decide."""
    terms = Polynomials()
    inputs = {name: terms.inputs(name, shape) for name, shape in shapes.items()}
    roots = rule.roots
    left, right = evaluate_terms(roots, inputs, SymbolicDomain(terms))
    if left.shape != right.shape:
        faults.append(Fault(rule, tuple(shapes.items()), f"{left.shape} is not {right.shape}"))
        return 0
    if all(a == b for a, b in zip(left.ravel(), right.ravel(), strict=True)):
        return 0
    if not _agree_in_field(rule, shapes) and not _agree_on_floats(rule, shapes):
        faults.append(Fault(rule, tuple(shapes.items()), "the two sides differ"))
        return 0
    return 1


def _agree_in_field(rule: Rule, shapes: Mapping[str, IntShape]) -> bool:
    field = FieldDomain()
    generator = np.random.default_rng(1)
    for _ in range(3):
        inputs = {name: field.random(shape, generator) for name, shape in shapes.items()}
        left, right = evaluate_terms(rule.roots, inputs, field)
        if not np.array_equal(residues(left), residues(right)):
            return False
    return True


def _agree_on_floats(rule: Rule, shapes: Mapping[str, IntShape]) -> bool:
    generator = np.random.default_rng(1)
    for _ in range(8):
        inputs = {name: generator.normal(size=shape) for name, shape in shapes.items()}
        if try_inputs(rule, inputs) is not None:
            return False
    return True
