"""A rule found at concrete shapes, said for all shapes.

Places of splits become the sizes that were put together, sizes of constants what the shapes ask
for.  Ranks that the operators leave open become conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorwright.rewrite.dims import Dim, Extent, Shape, Size, atoms_of
from tensorwright.rewrite.generate.seams import Seams, no_seams, seams_of
from tensorwright.rewrite.meaning import infer, symbolic_shape
from tensorwright.rewrite.operators import IntShape, operator_named
from tensorwright.rewrite.shapes import IllTyped, Needs
from tensorwright.rewrite.terms import (
    Apply,
    Equal,
    Fact,
    Input,
    Param,
    Rank,
    Rule,
    Term,
    applications,
    input_names,
    substitute,
)

__all__ = ["generalize"]

_FRESH = "constant"
_FREE_PARAMS = {"eye": (0,), "ones": (0, 1, 2, 3), "identity_kernel": (0,), "pool_kernel": (0,)}
_FOUR = frozenset({"conv2d", "max_pool", "avg_pool", "enlarge"})


def generalize(rule: Rule, shapes: Mapping[str, IntShape]) -> Rule | None:
    """The rule for all shapes; None where it has no such form, because a number stays unexplained.

    shapes  of the inputs, as the rule was found
    """
    roots = (*rule.left, *rule.right)
    names = input_names(*roots)
    symbolic = {name: symbolic_shape(name, len(shapes[name])) for name in names}
    walk = _Walk({name: shapes[name] for name in names}, symbolic)
    try:
        opened = tuple(walk.term(root) for root in roots)
        typing = infer(opened, {**symbolic, **walk.fresh})
        facts = list(typing.facts)
        count = len(rule.left)
        needs = Needs()
        for left, right in zip(typing.shapes[:count], typing.shapes[count:], strict=True):
            needs.equal_shapes(left, right)
        solved = _solve([*facts, *needs.facts])
    except IllTyped:
        return None
    closed = tuple(_close(term, solved) for term in opened)
    if any(_FRESH in name for name in input_names(*closed)):
        return None
    condition = tuple(
        Rank(name, len(shapes[name])) for name in names if not _is_fixed(name, closed)
    )
    return replace(rule, left=closed[:count], right=closed[count:], condition=condition)


class _Walk:
    """Opens terms: concrete and symbolic shapes and seams go side by side."""

    def __init__(self, shapes: Mapping[str, IntShape], symbolic: Mapping[str, Shape]) -> None:
        self.fresh: dict[str, Shape] = {}
        self.known: dict[Term, tuple[Term, Shape, Seams, Shape, Seams]] = {}
        for name, shape in shapes.items():
            seams = no_seams(len(shape))
            self.known[Input(name)] = (Input(name), shape, seams, symbolic[name], seams)

    def term(self, term: Term) -> Term:
        return self._visit(term)[0]

    def _visit(self, term: Term) -> tuple[Term, Shape, Seams, Shape, Seams]:
        found = self.known.get(term)
        if found is None:
            assert isinstance(term, Apply)
            found = self._open(term, [self._visit(arg) for arg in term.args])
            self.known[term] = found
        return found

    def _open(
        self, term: Apply, args: Sequence[tuple[Term, Shape, Seams, Shape, Seams]]
    ) -> tuple[Term, Shape, Seams, Shape, Seams]:
        params = self._params(term, args)
        operator = operator_named(term.operator)
        shapes, symbolic = tuple(a[1] for a in args), tuple(a[3] for a in args)
        shape = operator.shape(term.params, shapes, Needs())
        wide = operator.shape(params, symbolic, Needs())
        seams = tuple(a[2] for a in args)
        own = seams_of(term.operator, term.params, shapes, seams, len(shape))
        wide_seams = tuple(a[4] for a in args)
        other = seams_of(term.operator, params, symbolic, wide_seams, len(shape))
        opened = Apply(term.operator, params, tuple(a[0] for a in args))
        return opened, shape, own, wide, other

    def _params(
        self, term: Apply, args: Sequence[tuple[Term, Shape, Seams, Shape, Seams]]
    ) -> tuple[Param, ...]:
        if term.operator in ("split0", "split1"):
            axis, place = term.params
            places, wide = args[0][2][int(str(axis))], args[0][4][int(str(axis))]
            if place not in places or len(places) != len(wide):
                raise IllTyped("a split whose place has no name")
            at = wide[places.index(int(str(place)))]
            return (axis, at)
        free = _FREE_PARAMS.get(term.operator, ())
        return tuple(
            self._open_size(term.operator, at, param) if at in free else param
            for at, param in enumerate(term.params)
        )

    def _open_size(self, operator: str, at: int, param: Param) -> Size:
        """One unknown for each size of each constant of a rule."""
        name = f"{_FRESH}_{operator}_{at}_{param}"
        self.fresh.setdefault(name, (Dim.of(Extent(name, 0)),))
        return Dim.of(Extent(name, 0))


def _solve(facts: Sequence[Fact]) -> dict[Extent, Size]:
    """Unknown sizes from the equalities that are such a size alone on one side."""
    solved: dict[Extent, Size] = {}
    for fact in facts:
        if not isinstance(fact, Equal):
            continue
        for own, other in ((fact.left, fact.right), (fact.right, fact.left)):
            atoms = atoms_of(own)
            is_unknown = len(atoms) == 1 and own == Dim.of(atoms[0]) and _FRESH in atoms[0].name
            if is_unknown and atoms[0] not in solved and not _unknowns(other):
                solved[atoms[0]] = other
    return solved


def _unknowns(size: Size) -> bool:
    return any(_FRESH in atom.name for atom in atoms_of(size))


def _close(term: Term, solved: Mapping[Extent, Size]) -> Term:
    return substitute(term, {}, lambda extent: solved.get(extent, Dim.of(extent)))


def _is_fixed(name: str, roots: Sequence[Term]) -> bool:
    """Whether an operator fixes the rank of an input."""
    for each in applications(*roots):
        if Input(name) in each.args and each.operator in _FOUR:
            return True
        if each.operator == "scalar_mul" and each.args[1] == Input(name):
            return True
        if each.operator == "transpose" and Input(name) in each.args:
            return True
    return False
