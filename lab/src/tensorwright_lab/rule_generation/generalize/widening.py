"""The most general equality of which an equality is an instance, as far as evaluation tells.

    in     relu(relu(matmul(x1, w1))) == relu(matmul(x1, w1))
    try    an input in the place of matmul(x1, w1), which both sides have
    out    ConcreteRule(relu(relu(any1_2_4)) == relu(any1_2_4), its shapes)

shared parts     what stands on both sides becomes an input: a rule about a prepared kernel may be
                 true of every kernel
repeated inputs  an input that stands at several places becomes several inputs:
                 concat(x, concat(x, y)) == concat(concat(x, x), y) says less than associativity

Both are tried in exact arithmetic at the shapes where the equality was found.

Test whether a rule holds at other shapes than those where it was found, in floats.

    RandomShapes(relu(relu(?x)) == relu(?x)).holds(())         True
    RandomShapes(transpose[1, 0](?x) == ?x).holds(())          False: seen at x (3, 2)
    the same .refutes((Rank("x", 2),))                         True, without another evaluation

This refutes false generalisations, and equalities that hold only for the stand-ins of exact
arithmetic.  It proves nothing.  Shapes at which a rule is false refute it under every condition
that is true there, so that most conditions that do not suffice are seen without another evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice, product

import numpy as np

from tensorwright.expr import Array, IndexExpr
from tensorwright.rewriting import terms
from tensorwright.rewriting.assumptions import Misfit, fitting
from tensorwright.rewriting.meaning import evaluate_terms, infer_shapes
from tensorwright.rewriting.operators import ArgumentRole, IntShape, arguments_of
from tensorwright.rewriting.prove import Problem, problems_of, sample_shapes
from tensorwright.rewriting.prove.problem import holds_at
from tensorwright.rewriting.terms import Condition, ConditionAtom, Input, Rule, extents_in
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator
from tensorwright_lab.rule_generation.operator_facts import operator_count

_SEED = 5
_MOST_COPIES = 3
Side = tuple[terms.Term, ...]
Sides = tuple[Side, Side]
Shapes = dict[str, IntShape]


@dataclass(frozen=True, slots=True)
class ConcreteRule:
    """A rule and the shapes of its inputs where it was found."""

    rule: terms.Rule
    shapes: tuple[tuple[str, IntShape], ...]


def widened(rule: terms.Rule, shapes: Mapping[str, IntShape]) -> ConcreteRule:
    """The rule, or one of which it is an instance.

    shapes  of the inputs, where the rule was found; there may be others
    """
    evaluator = _evaluator(tuple(shapes.items()))
    sides, own = _without_shared((rule.left, rule.right), dict(shapes), evaluator)
    for name in terms.input_names(*sides[0], *sides[1]):
        sides, own = _without_repeated(sides, own, name, evaluator)
    names = terms.input_names(*sides[0], *sides[1])
    return ConcreteRule(terms.Rule(*sides), tuple((name, own[name]) for name in names))


@lru_cache(maxsize=4)
def _evaluator(shapes: tuple[tuple[str, IntShape], ...]) -> Evaluator:
    """One for all rules of a preset: they share small terms."""
    return Evaluator(dict(shapes), _SEED)


def _without_shared(sides: Sides, shapes: Shapes, evaluator: Evaluator) -> tuple[Sides, Shapes]:
    """Replace shared parts by inputs, the largest first."""
    tried: set[terms.Apply] = set()
    while True:
        part = _largest_shared(sides, tried)
        if part is None:
            return sides, shapes
        tried.add(part)
        (shape,) = fitting(infer_shapes([part], shapes))
        instead = terms.Input("_".join(map(str, (f"any{len(tried)}", *shape))))
        wider = (_put(sides[0], part, instead), _put(sides[1], part, instead))
        evaluator.declare(instead.name, shape)
        if evaluator.holds(terms.Rule(*wider)):
            sides, shapes = wider, {**shapes, instead.name: shape}


def _largest_shared(sides: Sides, tried: set[terms.Apply]) -> terms.Apply | None:
    other = set(terms.applications(*sides[1]))
    shared = [each for each in terms.applications(*sides[0]) if each in other and each not in tried]
    return max(shared, key=lambda each: len(terms.applications(each)), default=None)


def _put(side: Side, part: terms.Apply, instead: terms.Input) -> Side:
    return tuple(with_subterm(term, part, instead) for term in side)


def with_subterm(term: terms.Term, old: terms.Term, new: terms.Term) -> terms.Term:
    """The term with one of its subterms replaced wherever it stands."""
    if term == old:
        return new
    if isinstance(term, terms.Input):
        return term
    args = tuple(with_subterm(arg, old, new) for arg in term.args)
    return terms.Apply(term.operator, term.params, args)


def _without_repeated(
    sides: Sides, shapes: Shapes, name: str, evaluator: Evaluator
) -> tuple[Sides, Shapes]:
    """Replace one input by as many as possible, at the positions where it stands."""
    counts = [_count(side, name) for side in sides]
    if not 2 <= max(counts) <= _MOST_COPIES or _is_beside_sizes(sides, name):
        return sides, shapes
    copies = {f"{name}_{copy}": shapes[name] for copy in range(_MOST_COPIES)}
    for copy, shape in copies.items():
        evaluator.declare(copy, shape)
    many = 0 if counts[0] >= counts[1] else 1
    for own in _partitions(counts[many]):
        for other in product(range(max(own) + 1), repeat=counts[1 - many]):
            places = (own, other) if many == 0 else (other, own)
            wider = (_spread(sides[0], name, places[0]), _spread(sides[1], name, places[1]))
            if _are_as_small(wider, sides) and evaluator.holds(terms.Rule(*wider)):
                return wider, {**shapes, **copies}
    return sides, shapes


def _count(side: Side, name: str) -> int:
    """How often an input stands in terms, as written."""

    def count(term: terms.Term) -> int:
        if isinstance(term, terms.Input):
            return int(term.name == name)
        return sum(map(count, term.args))

    return sum(map(count, side))


def _is_beside_sizes(sides: Sides, name: str) -> bool:
    """Whether an input stands in a prepared term: what binds it there is the other places."""
    return any(
        name in terms.input_names(each)
        for each in terms.applications(*sides[0], *sides[1])
        if any(isinstance(param, IndexExpr) for param in each.params)
    )


@cache
def _partitions(count: int) -> list[tuple[int, ...]]:
    """The ways to give numbers to places, with two different ones or more; the most first."""
    partitions = [
        numbers
        for numbers in product(range(count), repeat=count)
        if max(numbers) > 0
        and all(n <= max((-1, *numbers[:at])) + 1 for at, n in enumerate(numbers))
    ]
    return sorted(partitions, key=max, reverse=True)


def _spread(side: Side, name: str, numbers: tuple[int, ...]) -> Side:
    """Replace one input by numbered ones, in the order of the positions where it stands."""
    left: Iterator[int] = iter(numbers)

    def spread(term: terms.Term) -> terms.Term:
        if isinstance(term, terms.Input):
            return terms.Input(f"{name}_{next(left)}") if term.name == name else term
        return terms.Apply(term.operator, term.params, tuple(map(spread, term.args)))

    return tuple(map(spread, side))


def _are_as_small(sides: Sides, old: Sides) -> bool:
    """Whether no side has more operators than before: parts that were shared stay so."""
    pairs = zip(sides, old, strict=True)
    return all(operator_count(*side) <= operator_count(*before) for side, before in pairs)


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
