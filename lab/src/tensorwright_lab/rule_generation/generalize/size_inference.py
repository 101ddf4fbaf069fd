"""Infer the sizes in a rule's parameters for all shapes, from needs of shapes and by guesses.

    split0[1, 3](concat[1](x, y)) == x,  x (2, 3), y (2, 5)       as it was enumerated
    split0[1, u](concat[1](x, y)) == x                            u = x.1, as roots have one shape
    split0[1, x.1](concat[1](x, y)) == x                          for all shapes

A rule is found where every size is a number.  Each such number becomes an *unknown*.  The needs of
both sides' shape rules determine most of them.  For an unknown that stays open there are guesses:
sizes over the inputs' extents that have its value where the rule was found, in the order that
`SizeGuess` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from tensorwright import expr
from tensorwright.expr import IndexExpr, divide_terms, of_terms, terms_of
from tensorwright.rewriting.assumptions import IllTyped, Misfit, Needs, assume
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of, value_of
from tensorwright.rewriting.meaning import infer, symbolic_shapes
from tensorwright.rewriting.operators import AXIS, IntShape, operator_named
from tensorwright.rewriting.terms import (
    Apply,
    Equal,
    Fact,
    Input,
    Param,
    Rule,
    Term,
    applications,
    input_names,
    substitute,
)
from tensorwright_lab.rule_generation.generalize.least_condition import extents_at
from tensorwright_lab.rule_generation.operator_facts import SizeGuess, size_guess

_UNKNOWN = "free"
_NEVER = 1000
_MOST_RULES = 24
_MOST_GUESSES = 8
Bindings = dict[Extent, Size]


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A size: its number where the rule was found, what it is likely to be, and its application."""

    extent: Extent
    value: int
    guess: SizeGuess
    term: Apply

    @property
    def axis(self) -> int | None:
        """The dimension of which it is a place, if it is one."""
        axis, first = self.term.params[0], operator_named(self.term.operator).parameters[0]
        return axis if first is AXIS and isinstance(axis, int) else None


def rules_with_sizes(rule: Rule, shapes: Mapping[str, IntShape]) -> Iterator[tuple[Rule, int]]:
    """The rule with numbers replaced by sizes, the likeliest first, and their costs.

    The cost is how many extents of the inputs the shape rules then fix: less is more general.

    shapes  of the inputs, where the rule was found
    """
    opened = _Opening(shapes)
    try:
        left = tuple(map(opened.term, rule.left))
        right = tuple(map(opened.term, rule.right))
        unknowns = {each.extent: each for each in opened.unknowns}
        facts = _facts(left, right, opened.symbolic)
    except (IllTyped, ZeroDivisionError):
        return
    extents = extents_at(shapes)
    for bindings in islice(_choices(facts, unknowns, {}, extents, shapes), _MOST_RULES):
        own, other = (tuple(_bound(term, bindings) for term in side) for side in (left, right))
        yield Rule(own, other), _fixed(facts, bindings)


class _Opening:
    """Replaces the numbers that may be sizes by unknowns; equal terms share them.

    Numbers beside or above sizes, as in prepared terms, stay numbers.
    """

    def __init__(self, shapes: Mapping[str, IntShape]) -> None:
        self.unknowns: list[_Unknown] = []
        self.symbolic = symbolic_shapes(shapes)
        self._extents = {name: tuple(shape) for name, shape in shapes.items()}
        self._opened: dict[Term, tuple[Term, IntShape, Shape]] = {
            Input(name): (Input(name), shape, self.symbolic[name])
            for name, shape in self._extents.items()
        }

    def term(self, term: Term) -> Term:
        """The term with unknowns."""
        return self._visit(term)[0]

    def _visit(self, term: Term) -> tuple[Term, IntShape, Shape]:
        if term not in self._opened:
            assert isinstance(term, Apply)
            self._opened[term] = self._open(term, [self._visit(arg) for arg in term.args])
        return self._opened[term]

    def _open(
        self, term: Apply, args: Sequence[tuple[Term, IntShape, Shape]]
    ) -> tuple[Term, IntShape, Shape]:
        operator = operator_named(term.operator)
        numbers = tuple(self._number(param) for param in term.params)
        narrow = operator.shape(numbers, tuple(arg[1] for arg in args), Needs())
        kinds = operator.kinds_of(term.params)
        is_open = not _has_sizes(term)
        params = tuple(
            self._unknown(term, at, size_guess(term.operator, kind.name), args)
            if is_open and kind.is_size and isinstance(param, int)
            else param
            for at, (param, kind) in enumerate(zip(term.params, kinds, strict=True))
        )
        wide = operator.shape(params, tuple(arg[2] for arg in args), Needs())
        opened = Apply(term.operator, params, tuple(arg[0] for arg in args))
        return opened, tuple(int(str(extent)) for extent in narrow), wide

    def _number(self, param: Param) -> Param:
        if not isinstance(param, IndexExpr):
            return param
        return value_of(param, {e: self._extents[e.name][e.axis] for e in atoms_of(param)})

    def _unknown(
        self, term: Apply, at: int, guess: SizeGuess, args: Sequence[tuple[Term, IntShape, Shape]]
    ) -> Size:
        value = int(str(term.params[at]))
        if value == 0:
            return 0
        if guess is SizeGuess.STRETCHED and args[0][1][at] == value:
            return args[0][2][at]
        extent = Extent(f"{_UNKNOWN}{len(self.unknowns)}", 0)
        self.unknowns.append(_Unknown(extent, value, guess, term))
        return extent


def _has_sizes(term: Apply) -> bool:
    """Whether a term was written with sizes: then its numbers are meant as numbers."""
    params = (param for each in applications(term) for param in each.params)
    return any(isinstance(param, IndexExpr) for param in params)


def _facts(
    left: tuple[Term, ...], right: tuple[Term, ...], symbolic: Mapping[str, Shape]
) -> tuple[Fact, ...]:
    """The needs of both sides, and the equality of their roots' shapes."""
    unknowns = {
        name: (Extent(name, 0),) for name in input_names(*left, *right) if name not in symbolic
    }
    typing = infer((*left, *right), {**symbolic, **unknowns})
    if isinstance(typing, Misfit):
        raise IllTyped(typing.reason)
    needs = Needs()
    own, other = typing.shapes[: len(left)], typing.shapes[len(left) :]
    for a, b in zip(own, other, strict=True):
        needs.equal_shapes(a, b)
    return (*typing.facts, *needs.facts)


def _choices(
    facts: Sequence[Fact],
    unknowns: Mapping[Extent, _Unknown],
    bindings: Bindings,
    extents: Mapping[Extent, int],
    shapes: Mapping[str, IntShape],
) -> Iterator[Bindings]:
    """All ways to give sizes: what is determined, then guesses for the first unknown left."""
    solved = _solve(facts, unknowns, bindings, extents)
    if solved is None:
        return
    missing = [extent for extent in unknowns if extent not in solved]
    if not missing:
        yield solved
        return
    for guess in islice(_guesses(unknowns[missing[0]], shapes), _MOST_GUESSES):
        bound = {each: expr.substitute(size, {missing[0]: guess}) for each, size in solved.items()}
        yield from _choices(facts, unknowns, {**bound, missing[0]: guess}, extents, shapes)


def _solve(
    facts: Sequence[Fact],
    unknowns: Mapping[Extent, _Unknown],
    bindings: Bindings,
    extents: Mapping[Extent, int],
) -> Bindings | None:
    """The unknowns that equalities determine; None where one would not have its number."""
    solved = dict(bindings)
    gaps = [fact.left - fact.right for fact in facts if isinstance(fact, Equal)]
    is_changed = True
    while is_changed:
        is_changed = False
        for gap in gaps:
            normal = expr.substitute(gap, solved)
            if isinstance(normal, int):
                if normal:
                    return None
                continue
            solution = _solution(normal, unknowns)
            if solution is None:
                continue
            extent, size = solution
            if not _is_open(size) and value_of(size, extents) != unknowns[extent].value:
                return None
            solved = {
                each: expr.substitute(value, {extent: size}) for each, value in solved.items()
            }
            solved[extent] = size
            is_changed = True
    return solved


def _solution(gap: IndexExpr, unknowns: Mapping[Extent, _Unknown]) -> tuple[Extent, Size] | None:
    """An unknown that occurs once, in one product, and what makes the gap zero if it divides."""
    for monomial, factor in terms_of(gap):
        for atom in monomial:
            if not (isinstance(atom, Extent) and atom in unknowns):
                continue
            own = of_terms([(monomial, factor)])
            rest = gap - own
            if atom in atoms_of(rest) or monomial.count(atom) > 1:
                continue
            beside = own // atom
            size = -rest if beside == 1 else _exact(-rest, beside)
            if size is not None:
                return atom, size
    return None


def _exact(number: Size, divisor: Size) -> Size | None:
    """The quotient, where nothing is left over."""
    if isinstance(number, int):
        return number // divisor if isinstance(divisor, int) and number % divisor == 0 else None
    quotient, left = divide_terms(number, divisor)
    return quotient if left == 0 else None


def _is_open(size: Size) -> bool:
    return any(atom.name.startswith(_UNKNOWN) for atom in atoms_of(size))


def _bound(term: Term, bindings: Mapping[Extent, Size]) -> Term:
    return substitute(term, {}, lambda extent: bindings.get(extent, extent))


def _guesses(unknown: _Unknown, shapes: Mapping[str, IntShape]) -> Iterator[Size]:
    """Sizes with the number of an unknown, the likeliest for its operator first, each once."""
    number, axis_of_place = unknown.value, unknown.axis
    names = [name for name in input_names(unknown.term) if name in shapes]
    names += [name for name in shapes if name not in names]
    extents = [
        (Extent(name, axis), extent, axis_of_place in (None, axis))
        for name in names
        for axis, extent in enumerate(shapes[name])
    ]
    along = [(size, value) for size, value, is_along in extents if is_along]
    across = [(size, value) for size, value, is_along in extents if not is_along]
    likely = [size for size, value in along if value == number]
    unlikely = [size for size, value in across if value == number]
    pairs = list(combinations(along, 2))
    sums = [a + b for (a, m), (b, n) in pairs if m + n == number]
    products = [a * b for (a, m), (b, n) in pairs if m * n == number and 1 not in (m, n)]
    products += [
        a * b * c
        for (a, m), (b, n), (c, k) in combinations(along, 3)
        if m * n * k == number and 1 not in (m, n, k)
    ]
    halves = [size // 2 for size, value in along if value == 2 * number]
    first: list[Size] = []
    match SizeGuess.NUMBER if number == 1 else unknown.guess:
        case SizeGuess.NUMBER:
            first = [number]
        case SizeGuess.PRODUCT | SizeGuess.STRETCHED:
            first = [*likely, *products, number]
        case SizeGuess.BOUND:
            first = [*likely, *sums, number]
        case SizeGuess.SPLIT:
            first = [*likely, *sums, *halves]
        case SizeGuess.EXTENT:
            pass
    yield from dict.fromkeys([*first, *likely, *sums, *unlikely, number, *halves, *products])


def _fixed(facts: Sequence[Fact], bindings: Mapping[Extent, Size]) -> int:
    """How many extents of the inputs the equalities among them fix."""
    equal = [
        Equal(expr.substitute(fact.left, bindings), expr.substitute(fact.right, bindings))
        for fact in facts
        if isinstance(fact, Equal)
    ]
    assumed = assume(equal)
    return _NEVER if assumed is None else len(assumed.solved) + len(assumed.zero)
