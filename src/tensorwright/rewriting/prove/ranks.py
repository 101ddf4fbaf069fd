"""Rules over many dimensions follow from rules over few, by merging equivalent dimensions.

    exp(concat[3](?x, ?y)) == concat[3](exp(?x), exp(?y)) if rank(x) = 6
    dimensions 0, 1, 2 of all tensors merge, and 4, 5        nothing names them
    exp(concat[1](?x, ?y)) == concat[1](exp(?x), exp(?y)) if rank(x) = 3

Theorem.  Let M choose boundaries of dimensions (`operators/parameters.py`) of each term of a rule
at given ranks, so that each application commutes with merging the boundaries that M chooses of its
arguments and of its result, the two sides' roots have the same boundaries, and no condition and no
size names a dimension at a chosen boundary, but for products of all of a run.  Then the rule holds
at all shapes that fit it if the rule over the merged terms holds at all that fit that.

Proof: merging reshapes a tensor, which loses nothing, so both sides are equal if their merged forms
are.  By induction over a side, the merged value of a term is the value of the merged term at the
merged inputs, whose shapes fit as the operators apply to them; the condition names what did not
change.

So a rule is proved at ranks beyond those for which axioms are validated: over merged terms, of few
dimensions.  A rule that cannot be merged to few dimensions is not proved.

Axioms in proofs over more dimensions than those for which they are validated.

    conv3d[1, 1, 1, same, none](?x, concat[0](?v, ?w)) == ...      tensors of rank 5
    used in its proof       split0[1, v.0](concat[1](?a, ?b)) == ?a at rank 5
    which follows from      split0[1, v.0](concat[1](?a, ?b)) == ?a at rank 3, see `ranks.py`

Axioms of operators whose tensors have more dimensions (`most_dimensions`) are validated for them.
Any other axiom that a proof used at such ranks becomes a rule to be proved: at these ranks, for the
shapes of its arguments, with the sizes of the instance left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from tensorwright.expr import IndexExpr, terms_of
from tensorwright.rewriting.assumptions import Misfit, assume, fitting
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of, resized
from tensorwright.rewriting.egraph import Applies
from tensorwright.rewriting.meaning import infer, infer_shapes, symbolic_shape, symbolic_shapes
from tensorwright.rewriting.operators import (
    Boundaries,
    IntShape,
    merged_axis,
    merged_runs,
    operator_named,
)
from tensorwright.rewriting.prove.instances import (
    Instance,
    ParameterValues,
    concrete_rule,
    places_of,
)
from tensorwright.rewriting.prove.problem import Problem, facts_of, most_dimensions
from tensorwright.rewriting.terms import (
    Apply,
    Equal,
    Fact,
    Input,
    Param,
    Rank,
    Rule,
    Term,
    applications,
    extents_in,
    rename_rule,
    resized_fact,
)

Place = tuple[Term, int]
"""A boundary of a term."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A rule over fewer dimensions.

    joined   the boundaries of each input that were merged
    largest  the rank of its tensor with the most dimensions
    """

    rule: Rule
    joined: tuple[tuple[str, Boundaries], ...]
    largest: int


def largest_rank(problem: Problem) -> int:
    """The rank of the tensor with the most dimensions, among inputs and terms."""
    return max((len(shape) for shape in _shapes(problem).values()), default=0)


def reduced(problem: Problem) -> Merged | None:
    """A rule over fewer dimensions from which the problem's rule follows at its ranks.

    None where nothing can be merged.
    """
    shapes = _shapes(problem)
    apart = set(_named(problem, shapes))
    while True:
        joined = _mergeable(problem, shapes, apart)
        try:
            return _merged_rule(problem, shapes, joined) if any(joined.values()) else None
        except _NotAProduct as fault:
            apart.add(fault.position)


def reduced_at(rule: Rule, shapes: Mapping[str, Shape]) -> Rule | Applies:
    """The rule of few dimensions from which a rule follows at some shapes; itself if it has few.

    NO where a side has no meaning at these shapes, which are numbers; UNKNOWN where it tells too
    many dimensions apart.
    """
    roots = rule.roots
    numbers = {name: _numbers(shape) for name, shape in shapes.items()}
    known_shapes = {name: shape for name, shape in numbers.items() if shape is not None}
    if len(known_shapes) == len(shapes) and isinstance(infer_shapes(roots, known_shapes), Misfit):
        return Applies.NO
    given = symbolic_shapes(shapes)
    if isinstance(infer(roots, given), Misfit):
        return Applies.UNKNOWN  # it fits these extents, and not as many dimensions of any extents
    facts = tuple(
        Equal(Extent(name, axis), extent)
        for name, shape in shapes.items()
        for axis, extent in enumerate(shape)
    )
    assumptions = assume(facts)
    if assumptions is None:
        return Applies.NO  # an extent is 0: rules are about tensors with elements
    problem = Problem(rule, tuple(given.items()), facts, assumptions)
    if largest_rank(problem) <= most_dimensions(rule):
        return rule
    merged = reduced(problem)
    is_few = merged is not None and merged.largest <= most_dimensions(merged.rule)
    return merged.rule if merged is not None and is_few else Applies.UNKNOWN


def _numbers(shape: Shape) -> IntShape | None:
    numbers = tuple(extent for extent in shape if isinstance(extent, int))
    return numbers if len(numbers) == len(shape) else None


class _NotAProduct(Exception):
    """A size names a part of a run of dimensions; `position` is a boundary of that run."""

    def __init__(self, position: Place) -> None:
        super().__init__()
        self.position = position


def _shapes(problem: Problem) -> dict[Term, Shape]:
    """The shape of each term, and of each input that is one."""
    given = dict(problem.shapes)
    roots = problem.rule.roots
    applied = applications(*roots)
    typing = fitting(infer(applied, given))
    shapes: dict[Term, Shape] = dict(zip(applied, typing.shapes, strict=True))
    for term in (*roots, *chain.from_iterable(each.args for each in applied)):
        if isinstance(term, Input):
            shapes[term] = given[term.name]
    return shapes


def _named(problem: Problem, shapes: Mapping[Term, Shape]) -> Iterator[Place]:
    """The boundaries at dimensions that a condition names, or a size that is not an extent."""
    facts = facts_of(problem.rule)
    extents = [extent for fact in facts for extent in extents_in(fact)]
    for each in shapes:
        merging = operator_named(each.operator).merging if isinstance(each, Apply) else None
        if isinstance(each, Apply) and (merging is None or not merging.has_extents):
            sizes = (param for param in each.params if isinstance(param, IndexExpr))
            extents += [extent for size in sizes for extent in atoms_of(size)]
    for extent in (each for each in extents if each.name in dict(problem.shapes)):
        for boundary in (extent.axis - 1, extent.axis):
            yield Input(extent.name), boundary


def _mergeable(
    problem: Problem, shapes: Mapping[Term, Shape], apart: set[Place]
) -> dict[Term, Boundaries]:
    """The boundaries of each term that can be merged together."""
    links: dict[Place, set[Place]] = {
        (term, boundary): set()
        for term, shape in shapes.items()
        for boundary in range(len(shape) - 1)
    }
    told_apart = {position for position in apart if position in links}

    def link(one: Place, other: Place) -> None:
        if one not in links or other not in links:
            told_apart.update({one, other} & links.keys())
            return
        links[one].add(other)
        links[other].add(one)

    def is_equal(left: Size, right: Size) -> bool:
        return problem.assumptions.entails(Equal(left, right))

    for each in shapes:
        if not isinstance(each, Apply):
            continue
        args = tuple(shapes[arg] for arg in each.args)
        merging = operator_named(each.operator).merging
        linked: set[tuple[int, int | None]] = set()
        for boundary in range(len(shapes[each]) - 1):
            below = (
                None if merging is None else merging.links(each.params, args, boundary, is_equal)
            )
            if below is None:
                told_apart.add((each, boundary))
                continue
            linked.update(enumerate(below))
            for arg, own in zip(each.args, below, strict=True):
                if own is not None:
                    link((each, boundary), (arg, own))
        for position, arg in enumerate(each.args):
            others = (own for own in range(len(shapes[arg]) - 1) if (position, own) not in linked)
            told_apart.update((arg, own) for own in others)
    for left, right in zip(problem.rule.left, problem.rule.right, strict=True):
        for boundary in range(max(len(shapes[left]), len(shapes[right])) - 1):
            link((left, boundary), (right, boundary))
    waiting = list(told_apart)
    while waiting:
        for other in links[waiting.pop()] - told_apart:
            told_apart.add(other)
            waiting.append(other)
    return {
        term: frozenset(j for j in range(len(shape) - 1) if (term, j) not in told_apart)
        for term, shape in shapes.items()
    }


def _merged_rule(
    problem: Problem, shapes: Mapping[Term, Shape], joined: Mapping[Term, Boundaries]
) -> Merged:
    rule = problem.rule
    given = dict(problem.shapes)
    terms: dict[Term, Term] = {}
    terms.update((term, term) for term in shapes if isinstance(term, Input))
    for each in applications(*shapes):
        terms[each] = _merged_term(each, given, joined, terms)
    ranks = tuple(
        Rank(name, len(shape) - len(joined.get(Input(name), ()))) for name, shape in given.items()
    )

    def renumbered(extent: Extent) -> Size:
        own = joined.get(Input(extent.name), frozenset())
        return Extent(extent.name, merged_axis(extent.axis, own))

    kept = [resized_fact(fact, renumbered) for fact in facts_of(rule)]
    merged = Rule(
        left=tuple(terms[root] for root in rule.left),
        right=tuple(terms[root] for root in rule.right),
        name=rule.name,
        condition=(*ranks, *kept),
    )
    return Merged(
        merged,
        tuple((name, joined.get(Input(name), frozenset())) for name in given),
        max(len(shape) - len(joined[term]) for term, shape in shapes.items()),
    )


def _merged_term(
    term: Apply,
    given: Mapping[str, Shape],
    joined: Mapping[Term, Boundaries],
    terms: Mapping[Term, Term],
) -> Apply:
    merging = operator_named(term.operator).merging
    params = term.params
    if merging is not None:
        first = joined[term.args[0]] if term.args else frozenset()
        params = merging.params(params, first, joined[term])
    params = tuple(
        _merged_size(param, given, joined) if isinstance(param, IndexExpr) else param
        for param in params
    )
    return Apply(term.operator, params, tuple(terms[arg] for arg in term.args))


def _merged_size(size: Size, given: Mapping[str, Shape], joined: Mapping[Term, Boundaries]) -> Size:
    """A size in the extents of merged inputs."""
    total: Size = 0
    for monomial, factor in terms_of(size):
        product: Size = factor
        left = list(monomial)
        names = (extent.name for extent in monomial if isinstance(extent, Extent))
        for name in dict.fromkeys(name for name in names if name in given):
            own = joined.get(Input(name), frozenset())
            for number, run in enumerate(merged_runs(len(given[name]), own)):
                parts = [Extent(name, axis) for axis in run]
                for _ in range(left.count(parts[0])):
                    for part in parts:
                        if part not in left:
                            raise _NotAProduct((Input(name), run[0]))
                        left.remove(part)
                    product = product * Extent(name, number)
        for atom in left:
            product = product * _single(atom, joined)
        total = total + product
    return total


def _single(atom: IndexExpr, joined: Mapping[Term, Boundaries]) -> Size:
    """The rest of a product: extents outside of runs, and quotients of such."""

    def renumbered(extent: Extent) -> Size:
        own = joined.get(Input(extent.name), frozenset())
        for boundary in own & {extent.axis - 1, extent.axis}:
            raise _NotAProduct((Input(extent.name), boundary))
        return Extent(extent.name, merged_axis(extent.axis, own))

    return resized(atom, renumbered)


def is_validated(instance: Instance) -> bool:
    """Whether the axiom was validated for tensors of as many dimensions."""
    ranks = (rank for _, rank in instance.ranks)
    return max(ranks, default=0) <= most_dimensions(instance.rewrite.rule)


def instance_problem(instance: Instance, problem: Problem) -> Problem:
    """The axiom as a rule to be proved, at the ranks of an instance in the proof of a problem."""
    own = {name: f"of {name}" for name, _ in instance.ranks}
    rule = rename_rule(instance.rewrite.rule, own)
    values, sizes = _opened_sizes(instance)
    args = [term for _, term in instance.args]
    typing = fitting(infer(args, dict(problem.shapes)))
    facts: list[Fact] = [*problem.facts, *typing.facts]
    facts += (Equal(Extent(name, 0), size) for name, size in sizes.items())
    facts += (
        Equal(Extent(own[name], axis), extent)
        for (name, _), shape in zip(instance.args, typing.shapes, strict=True)
        for axis, extent in enumerate(shape)
    )
    assumptions = assume(tuple(dict.fromkeys(facts)))
    assert assumptions is not None, "the problem is not absurd, and names of extents are new"
    shapes = tuple((own[name], symbolic_shape(own[name], rank)) for name, rank in instance.ranks)
    return Problem(concrete_rule(rule, values), shapes, tuple(facts), assumptions)


def _opened_sizes(instance: Instance) -> tuple[ParameterValues, dict[str, Size]]:
    """What the axiom's parameter variables stand for, with open sizes, and what those stand for."""
    places = places_of(instance.rewrite.rule)
    values: ParameterValues = {}
    sizes: dict[str, Size] = {}
    for name, value in instance.params:
        listed: list[Param] = []
        for at, each in enumerate(value if isinstance(value, tuple) else (value,)):
            if not isinstance(each, IndexExpr):
                listed.append(each)
                continue
            open_name = f"{name}:{at}_"
            less = 0 if any(parameter.least for parameter, _ in places[name]) else 1
            listed.append(Extent(open_name, 0) - less)
            sizes[open_name] = each + less
        values[name] = tuple(listed)
    return values, sizes
