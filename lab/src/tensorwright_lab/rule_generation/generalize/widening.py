"""The most general equality of which an equality is an instance, as far as evaluation tells.

    in     relu(relu(matmul(x1, w1))) == relu(matmul(x1, w1))
    try    an input in the place of matmul(x1, w1), which both sides have
    out    ConcreteRule(relu(relu(any1_2_4)) == relu(any1_2_4), its shapes)

shared parts     what stands on both sides becomes an input: a rule about a prepared kernel may be
                 true of every kernel
repeated inputs  an input that stands at several places becomes several inputs:
                 concat(x, concat(x, y)) == concat(concat(x, x), y) says less than associativity

Both are tried in exact arithmetic at the shapes where the equality was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

from tensorwright.expr import IndexExpr
from tensorwright.rewriting import terms
from tensorwright.rewriting.assumptions import fitting
from tensorwright.rewriting.meaning import infer_shapes
from tensorwright.rewriting.operators import IntShape, operator_count
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator

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
