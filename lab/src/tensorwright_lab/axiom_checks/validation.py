"""The axioms as a set: whether they contradict each other, and which follow from the others.

    relu(?x) == ?x                    a false goal: the axioms must not prove it
    derivable("concat-ones", axioms)  True: the others prove it
    derivable("relu-relu", axioms)    False: it is a basic property

Validation shows each axiom true at many shapes; a true set cannot contradict itself.  As a check of
the prover, `consistency` asks it for goals that are false: it must prove none.  An axiom whose
preconditions no shapes satisfy would be empty; validation finds shapes for each.

Validate an axiom: evaluate both sides on symbolic tensors at many shapes, and compare.

    relu-concat: relu(concat[_axis](?x, ?y)) == concat[_axis](relu(?x), relu(?y))
    at _axis = 1, x (2, 1), y (2, 3)  both are [max(0, x[0, 0]), max(0, y[0, 0]), ...]
    Validation                        how many such shapes were tried, and no fault

A symbolic tensor has an unknown in each element, so that agreement at a shape is agreement for all
inputs of that shape.  Where the normal form is too weak, random inputs decide: numbers of a finite
field (a quotient by a sum), floats (what rests on an order: exp is positive).  The report counts
those shapes apart.

Check the shipped axioms, each in its turn, in several processes: is it true, is it needed?

concat-ones                       20 shapes, no fault
is_shortcut                       True: it is marked so
follows                           True: it follows from the axioms that are not shortcuts
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tensorwright.base import InternalError
from tensorwright.expr import SymbolicDomain
from tensorwright.processes import Done, Job, WorkerPool
from tensorwright.rewriting.assumptions import fitting
from tensorwright.rewriting.axioms import Axiom, instances, load_axioms
from tensorwright.rewriting.dims import Extent, Size
from tensorwright.rewriting.egraph import Limits, variables_of
from tensorwright.rewriting.meaning import evaluate_terms, infer_shapes
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.prove.instances import concrete_rule, places_of, random_values
from tensorwright.rewriting.prove.problem import Problem, fits, problems_of, sample_shapes
from tensorwright.rewriting.prove.refute import try_inputs
from tensorwright.rewriting.prove.saturate import saturate
from tensorwright.rewriting.terms import Rule
from tensorwright.rewriting.text import parse_rules, rule_text
from tensorwright_lab.axiom_checks.polynomials import Polynomials
from tensorwright_lab.rule_generation.fingerprint.field_domain import FieldDomain, residues
from tensorwright_lab.rule_generation.generalize.least_condition import kernel_inputs, shapes_at

_LIMITS = Limits(rounds=4, nodes=1500, matches=200)
_INSTANCES = 4

FALSE_GOALS = parse_rules(
    """
    ?x == ?y if rank(x) = 2 and rank(y) = 2 and x.0 = y.0 and x.1 = y.1
    relu(?x) == ?x if rank(x) = 2
    ewadd(?x, ?y) == ewmul(?x, ?y) if rank(x) = 2
    ewadd(?x, ?y) == ?x if rank(x) = 2
    matmul(?x, ?y) == matmul(?y, ?x) if rank(x) = 2 and x.0 = x.1
    transpose[1, 0](?x) == ?x if rank(x) = 2 and x.0 = x.1
    concat[0](?x, ?y) == concat[0](?y, ?x) if rank(x) = 2 and x.0 = y.0
    split0[0, 2](?x) == split1[0, 2](?x) if rank(x) = 2 and x.0 = 4
    relu(ewadd(?x, ?y)) == ewadd(relu(?x), relu(?y)) if rank(x) = 2
    scalar_mul(?x, ?s) == ?x if rank(x) = 2
    relu(scalar_mul(?x, ?s)) == scalar_mul(relu(?x), ?s) if rank(x) = 2
    max_pool[3, 3, 1, 1, same](?x) == avg_pool[3, 3, 1, 1, same](?x)
    max_pool[2, 2, 1, 1, same](ewadd(?x, ?y)) == max_pool[2, 2, 1, 1, same](?x)
    conv2d[1, 1, same, none](?x, ?w) == conv2d[1, 1, same, relu](?x, ?w)
    conv3d[1, 1, 1, same, none](?x, ?w) == conv3d[1, 1, 1, same, relu](?x, ?w)
    conv2d[1, 1, same, none](?x, ?w) == ?x if x.1 = w.1 and w.0 = w.1
    reduce_sum[0](?x) == reduce_mean[0](?x) if rank(x) = 2
    ewsub(?x, ?y) == ewsub(?y, ?x) if rank(x) = 2
    ewdiv(?x, ?y) == ewmul(?x, ?y) if rank(x) = 2
    sigmoid(?x) == tanh(?x) if rank(x) = 2
    pad[0, 1, 0](?x) == pad[0, 0, 1](?x) if rank(x) = 2
    ewsub(?x, ?x) == ewdiv(?x, ?x) if rank(x) = 2
    exp(ewsub(?x, ?x)) == ewsub(?x, ?x) if rank(x) = 2
    reduce_sum[0](broadcast[3, x.1](?x)) == ?x if rank(x) = 2
    slice[0, 0, x.0](pad[0, 1, 1](?x)) == ?x if rank(x) = 2
    batch_norm(?x, ?s, ?b, ?m, ?v) == ?x if rank(x) = 4
    """.splitlines()
)


def consistency(axioms: Sequence[Axiom]) -> tuple[Rule, ...]:
    """The false goals that the axioms prove: none, unless something is wrong."""
    return tuple(goal for goal in FALSE_GOALS if _is_proved(goal, axioms))


def derivable(name: str, axioms: Sequence[Axiom]) -> bool:
    """Whether the axioms of a name follow from the others that are not shortcuts, within the
    limits.

    Parameters are tried at one value each; of an axiom that is written out for many values, a few
    are tried.
    """
    base = [axiom for axiom in axioms if not axiom.shortcut and axiom.name != name]
    own = [axiom for axiom in axioms if axiom.name == name]
    for axiom in own[:: 1 + len(own) // _INSTANCES]:
        rule = _typical(axiom)
        if rule is None or not _is_proved(rule, base):
            return False
    return True


def _is_proved(rule: Rule, axioms: Sequence[Axiom]) -> bool:
    problems = problems_of(rule)
    if not problems:
        return False
    for problem in problems:
        proof = saturate(problem, axioms, _LIMITS)
        if proof is None or not proof.is_proved:
            return False
    return True


def _typical(axiom: Axiom) -> Rule | None:
    """The axiom as a rule, at the first of some values of its parameters that fit and say much."""
    chance = random.Random(1)
    for _ in range(60):
        rule = concrete_rule(axiom.rule, random_values(places_of(axiom.rule), chance, 3))
        if rule.left != rule.right and problems_of(rule):
            return rule
    return None


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


_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Checked:
    """The results for all axioms of one name.

    is_shortcut  whether they only make proofs short
    follows      whether they follow from the others that are not shortcuts, within some limits
    """

    validation: Validation
    is_shortcut: bool
    follows: bool


def check_axioms(budget: Budget = QUICK, workers: int = 2) -> Iterator[Checked]:
    """Check the shipped axioms; yields them in the order of their names.

    Raises:  InternalError where a process ended before its time.
    """
    names = sorted(instances(load_axioms()))
    early: dict[int, Checked] = {}
    turn = 0
    with WorkerPool(workers) as pool:
        jobs = [Job(_check_axiom, (name, budget)) for name in names]
        for index, outcome in pool.results(jobs, _PATIENCE_S):
            if not isinstance(outcome, Done):
                where = f"axiom {names[index]}"
                raise InternalError(stage="rules", where=where, reason=str(outcome))
            early[index] = outcome.value
            while turn in early:
                yield early.pop(turn)
                turn += 1


def _check_axiom(name: str, budget: Budget) -> Checked:
    axioms = load_axioms()
    own = instances(axioms)[name]
    return Checked(
        validation=validate(name, own, budget),
        is_shortcut=own[0].shortcut,
        follows=derivable(name, axioms),
    )
