"""The problems of a rule: its ranks, and the assumptions about extents under which it is proved.

    relu(matmul(?x, ?y)) == matmul(relu(?x), ?y) if x.0 = 4
    the first problem                 x of rank 2, y of rank 2; others have ranks 3 and 4
    assumed                           x.0 = 4, and x.1 = y.0 for matmul

A rule holds for all shapes for which both sides are well-typed and the condition holds.  Ranks are
tried one by one; for each, the needs of both sides' shape rules become assumptions.  Where a
dimension is broadcast, and nothing says whether it is stretched or stays, both cases are problems.

Concrete shapes at which a rule applies: both sides fit, the condition holds.

ewadd(matmul(?x, ?y), ?z) == ewadd(?z, matmul(?x, ?y)) if x.0 >= 2
free                              x.0, x.1, y.1; the other extents are equal to them
a sample                          x (2, 3), y (3, 1), z (2, 1)
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from tensorwright.base import UsageError
from tensorwright.rewriting import terms
from tensorwright.rewriting.assumptions import (
    NOTHING_ASSUMED,
    Assumptions,
    Misfit,
    Needs,
    assume,
)
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of, value_of
from tensorwright.rewriting.meaning import infer, infer_shapes, symbolic_shape
from tensorwright.rewriting.operators import IntShape, operator_named

MAX_RANK = 4
"""The largest rank at which axioms are validated, except for operators whose tensors have more
dimensions. Rules at higher ranks follow, see `ranks.py`.
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule at given ranks, with each dimension that is broadcast stretched or not.

    shapes        of the inputs, symbolic
    facts         the assumptions: the condition, and that both sides are well-typed
    assumptions   the facts, solved
    """

    rule: terms.Rule
    shapes: tuple[tuple[str, Shape], ...]
    facts: tuple[terms.Fact, ...]
    assumptions: Assumptions

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Those of the shapes, then those by which others were solved, each once."""
        sizes = [size for _, shape in self.shapes for size in shape]
        sizes += [size for _, size in self.assumptions.solved]
        return tuple(dict.fromkeys(extent for size in sizes for extent in atoms_of(size)))


@lru_cache(maxsize=1024)
def problems_of(rule: terms.Rule) -> tuple[Problem, ...]:
    """The rule at each choice of ranks that fits it and whose assumptions are not absurd.

    Remembered: a rule is evaluated and proved, and is a case of more general ones.

    Raises:  UsageError for an unknown operator, and a condition on inputs that neither side has.
    """
    named = {name for fact in rule.condition for name in terms.names_in(fact)}
    foreign = {name for name in named if not name.startswith("_")}
    foreign -= set(terms.input_names(*rule.roots))
    if foreign:
        raise UsageError(
            stage="rules",
            where=f"condition on {', '.join(sorted(foreign))}",
            reason="neither side of the rule has this input",
            remedy="write the condition on inputs of the rule, ?x1, ?x2, ...",
        )
    return tuple(_problems(rule))


def _problems(rule: terms.Rule) -> Iterator[Problem]:
    facts = facts_of(rule)
    for ranks in _fitting_ranks(rule):
        shapes = {name: symbolic_shape(name, rank) for name, rank in ranks.items()}
        typing = infer(rule.roots, shapes)
        if isinstance(typing, Misfit) or not _speaks_of_extents(facts, shapes):
            continue
        for assumed, assumptions in _cases((*facts, *typing.facts), typing.choices):
            yield Problem(rule, tuple(shapes.items()), assumed, assumptions)


def facts_of(rule: terms.Rule) -> tuple[terms.Fact, ...]:
    """The facts of a condition about sizes, without those about ranks and variables."""
    return tuple(
        fact for fact in rule.condition if not isinstance(fact, terms.Rank | terms.Different)
    )


def _cases(
    facts: tuple[terms.Fact, ...], choices: tuple[tuple[Size, Size], ...]
) -> Iterator[tuple[tuple[terms.Fact, ...], Assumptions]]:
    """The facts with a decision of each choice, and solved; together they cover all that fits."""
    assumed = tuple(dict.fromkeys(facts))
    assumptions = assume(assumed)
    if assumptions is None:
        return
    for number, (own, wanted) in enumerate(choices):
        if assumptions.entails(terms.Equal(own, wanted)) or assumptions.entails(
            terms.Equal(own, 1)
        ):
            continue
        for size in (wanted, 1):
            yield from _cases((*facts, terms.Equal(own, size)), choices[number + 1 :])
        return
    yield assumed, assumptions


Ranks = dict[str, int]


def _fitting_ranks(rule: terms.Rule) -> Iterator[Ranks]:
    """The choices of ranks with which no operator is refused at once, in ascending order."""
    roots = rule.roots
    fixed = {fact.name: fact.rank for fact in rule.condition if isinstance(fact, terms.Rank)}
    free = range(max(most_dimensions(rule), longest_list(rule), *fixed.values()) + 1)
    names = terms.input_names(*roots)
    fitting: list[tuple[Ranks, Shape]] = [({}, ())]
    memo: dict[terms.Term, list[tuple[Ranks, Shape]]] = {}
    for root in roots:
        below = _typings(root, fixed, free, memo)
        fitting = [
            (ranks | own, shape)
            for ranks, shape in fitting
            for own, _ in below
            if _agree(ranks, own)
        ]
    missing = [name for name in names if fitting and name not in fitting[0][0]]
    choices = [(fixed[n],) if n in fixed else free for n in missing]
    for ranks, _ in sorted(fitting, key=lambda each: [each[0].get(name, 0) for name in names]):
        for more in product(*choices):
            whole = ranks | dict(zip(missing, more, strict=True))
            yield {name: whole[name] for name in names}


@lru_cache(maxsize=4096)
def most_dimensions(rule: terms.Rule) -> int:
    """Up to how many dimensions a rule is proved as it stands; operators may have more."""
    names = terms.operator_names(*rule.roots)
    return max([MAX_RANK, *(operator_named(name).rank for name in names)])


@lru_cache(maxsize=4096)
def longest_list(rule: terms.Rule) -> int:
    """Of how many dimensions an application speaks, each by a parameter: a permutation, extents."""
    lists = (
        len(each.params)
        for each in terms.applications(*rule.roots)
        if any(parameter.repeats for parameter in operator_named(each.operator).parameters)
    )
    return max(lists, default=0)


def names_few_dimensions(rule: terms.Rule) -> bool:
    """Whether a rule names no more dimensions than those up to which it is proved as it stands."""
    ranks = (fact.rank for fact in rule.condition if isinstance(fact, terms.Rank))
    return max(longest_list(rule), *ranks, 0) <= most_dimensions(rule)


def _typings(
    term: terms.Term, fixed: Ranks, free: range, memo: dict[terms.Term, list[tuple[Ranks, Shape]]]
) -> list[tuple[Ranks, Shape]]:
    """Ranks of the inputs of a term with which it may be well-typed, and its shape then.

    free   the ranks of inputs without a stated rank
    """
    typings = memo.get(term)
    if typings is not None:
        return typings
    if isinstance(term, terms.Input):
        name = term.name
        choices = (fixed[name],) if name in fixed else free
        memo[term] = [({name: rank}, symbolic_shape(name, rank)) for rank in choices]
        return memo[term]
    operator = operator_named(term.operator)
    if len(term.args) != operator.arity:
        raise UsageError(
            stage="rules",
            where=f"operator {term.operator}",
            reason=f"it has {len(term.args)} arguments and takes {operator.arity}",
            remedy="`tensorwright rules operators` lists what each takes",
        )
    partial: list[tuple[Ranks, tuple[Shape, ...]]] = [({}, ())]
    for arg in term.args:
        below = _typings(arg, fixed, free, memo)
        partial = [
            (ranks | own, (*shapes, shape))
            for ranks, shapes in partial
            for own, shape in below
            if _agree(ranks, own)
        ]
    memo[term] = []
    for ranks, shapes in partial:
        shape = operator.result(term.params, shapes, Needs())
        if not isinstance(shape, Misfit):
            memo[term].append((ranks, shape))
    return memo[term]


def _agree(ranks: Ranks, other: Ranks) -> bool:
    return all(ranks.get(name, rank) == rank for name, rank in other.items())


def _speaks_of_extents(facts: tuple[terms.Fact, ...], shapes: Mapping[str, Shape]) -> bool:
    """Whether every extent in the condition exists at these ranks."""
    return all(
        extent.name.startswith("_") or extent.axis < len(shapes.get(extent.name, ()))
        for fact in facts
        for extent in terms.extents_in(fact)
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
        shapes = shapes_with(solved_shapes, values)
        if shapes is None or tuple(shapes.items()) in seen:
            continue
        seen.add(tuple(shapes.items()))
        if fits(problem, shapes):
            yield shapes


def shapes_with(
    solved: Iterable[tuple[str, Shape]], values: Mapping[Extent, Size]
) -> Shapes | None:
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


def holds_at(fact: terms.ConditionAtom, shapes: Mapping[str, IntShape]) -> bool:
    """Whether an atom of a condition is true of concrete shapes."""
    match terms.resized_fact(fact, lambda extent: shapes[extent.name][extent.axis]):
        case terms.Rank(name, rank):
            return len(shapes[name]) == rank
        case terms.Different():
            return False
        case sizes:
            return NOTHING_ASSUMED.entails(sizes)
