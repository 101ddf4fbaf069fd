"""Terms and rules, which the generator writes, the prover proves and a person reads.

    rule = parse_rule("relu(relu(?x)) == relu(?x)")    Rule((Apply("relu", ...),), (...))
    applications(*rule.left)                           relu(?x), relu(relu(?x)): arguments first
    canonical_rule(rule)                               the same with ?x1 for ?x

Grammar
    Term ::= Input(name)                            `?x`
           | Apply(operator, params, args)          `conv2d[1, 1, same, none](?x, ?w)`
    Rule ::= name: left == right if condition       `left` and `right` are tuples of as many roots
    Atom of a condition ::= Rank(name, n) | Different(name, name)
                          | Equal(a, b) | AtLeast(a, b) | Divides(d, n)

Semantics.  An operator is a function of tensors and parameters (`operators/`); parameters are
numbers, words, or sizes over the extents of inputs (`y.1`), so that one term speaks of all shapes.
An operator with two outputs is two operators, its projections: `split0[axis, at]` is the part
before index `at`, `split1[axis, at]` the rest.  Names of parameters that begin with an underscore
are variables.  A rule says: for all values of them, and all inputs whose shapes satisfy the
condition and for which both sides are well-typed, root i of the left equals root i of the right,
over the reals.  Either side may have inputs that the other lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.dims import Extent, Size, atoms_of, resized


@dataclass(frozen=True, slots=True)
class Reordered:
    """In axioms and schemas, `_q@_p`: the elements of `_q` at the indices `_p`, as `q[p]` in NumPy.

    Two permutations compose so, and sizes follow a transposition.  `~_p` is the inverse of a
    permutation: `~_p@_a` is the position to which dimension `_a` goes.
    """

    elements: str
    places: str

    @property
    def names(self) -> tuple[str, str]:
        """The parameter variables from which it is computed."""
        return self.elements.removeprefix("~"), self.places.removeprefix("~")

    def value(self, values: Mapping[str, tuple[Param, ...]]) -> tuple[Param, ...] | None:
        """Its value where the variables have these values; None where it does not exist."""
        elements, places = (_in_turn(name, values) for name in (self.elements, self.places))
        if elements is None or places is None:
            return None
        if not all(isinstance(at, int) and 0 <= at < len(elements) for at in places):
            return None
        return tuple(elements[at] for at in places if isinstance(at, int))

    def __str__(self) -> str:
        return f"{self.elements}@{self.places}"


def _in_turn(name: str, values: Mapping[str, tuple[Param, ...]]) -> tuple[Param, ...] | None:
    """The values of a variable; of the inverse, where the name begins with ~."""
    own = values.get(name.removeprefix("~"))
    if own is None or not name.startswith("~"):
        return own
    places = {param: at for at, param in enumerate(own)}
    if set(places) != set(range(len(own))):
        return None
    return tuple(places[at] for at in range(len(own)))


Param: TypeAlias = int | str | IndexExpr | Reordered


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that a rule speaks about; any tensor of a fitting shape takes its place."""

    name: str


class _Hashed:
    """Keeps the hash of a term once it was asked for; it is not a field, so it stays here."""

    __slots__ = ("_hash",)
    _hash: int


@dataclass(frozen=True, slots=True)
class Apply(_Hashed):
    """An operator applied to terms."""

    operator: str
    params: tuple[Param, ...]
    args: tuple[Term, ...]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.operator, self.params, self.args)))
            return self._hash


Term: TypeAlias = Input | Apply


@dataclass(frozen=True, slots=True)
class Rank:
    """Input `name` has `rank` dimensions."""

    name: str
    rank: int


@dataclass(frozen=True, slots=True)
class Different:
    """Two parameter variables stand for different values: `_a != _b`."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Equal:
    """Two sizes are equal."""

    left: Size
    right: Size


@dataclass(frozen=True, slots=True)
class AtLeast:
    """`left >= right`."""

    left: Size
    right: Size


@dataclass(frozen=True, slots=True)
class Divides:
    """`divisor` divides `number`."""

    divisor: Size
    number: Size


Fact: TypeAlias = Equal | AtLeast | Divides
"""A need of a shape rule."""
ConditionAtom: TypeAlias = Rank | Different | Fact
Condition: TypeAlias = tuple[ConditionAtom, ...]
"""All of these hold."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An equality of tuples of terms, with its side condition.

    name           "" where it has none yet
    stamp          of its proof: "" for a candidate, else hash of the axioms and prover's version
    reassociating  whether its proof holds over the reals and need not over floats
    """

    left: tuple[Term, ...]
    right: tuple[Term, ...]
    name: str = ""
    condition: Condition = ()
    stamp: str = ""
    reassociating: bool = False

    def __post_init__(self) -> None:
        if not self.left or len(self.left) != len(self.right):
            raise ValueError("the sides of a rule have as many roots, at least one")

    @property
    def roots(self) -> tuple[Term, ...]:
        """Those of the left side, then those of the right one."""
        return (*self.left, *self.right)


def applications(*roots: Term) -> tuple[Apply, ...]:
    """The distinct operator applications below some roots, arguments first: equal terms once."""
    distinct: dict[Apply, None] = {}

    def visit(term: Term) -> None:
        if isinstance(term, Apply) and term not in distinct:
            for arg in term.args:
                visit(arg)
            distinct.setdefault(term)

    for root in roots:
        visit(root)
    return tuple(distinct)


def operator_names(*roots: Term) -> frozenset[str]:
    """The operators of a graph."""
    return frozenset(each.operator for each in applications(*roots))


def _names(term: Term) -> Iterator[str]:
    if isinstance(term, Input):
        yield term.name
        return
    for arg in term.args:
        yield from _names(arg)
    for param in term.params:
        if isinstance(param, IndexExpr):
            names = (extent.name for extent in atoms_of(param))
            yield from (name for name in names if not name.startswith("_"))


def input_names(*roots: Term) -> tuple[str, ...]:
    """The inputs in the order of their first appearance, those of parameters included."""
    return tuple(dict.fromkeys(name for root in roots for name in _names(root)))


def substitute(
    term: Term, terms: Mapping[str, Term], sizes: Callable[[Extent], Size] | None = None
) -> Term:
    """Replace inputs by terms, and extents in the parameters by sizes.

    Inputs that are not in `terms` stay.  Without `sizes` parameters stay as they are.
    """
    if isinstance(term, Input):
        return terms.get(term.name, term)
    params = (
        term.params
        if sizes is None
        else tuple((resized(p, sizes) if isinstance(p, IndexExpr) else p) for p in term.params)
    )
    return Apply(term.operator, params, tuple(substitute(a, terms, sizes) for a in term.args))


def with_params(term: Term, change: Callable[[Param], Iterable[Param]]) -> Term:
    """The term with each parameter replaced by others."""
    if isinstance(term, Input):
        return term
    params = tuple(new for param in term.params for new in change(param))
    return Apply(term.operator, params, tuple(with_params(arg, change) for arg in term.args))


def resized_fact(fact: ConditionAtom, sizes: Callable[[Extent], Size]) -> ConditionAtom:
    """A fact with extents replaced by sizes; ranks and differences stay."""
    match fact:
        case Rank() | Different():
            return fact
        case Equal(left, right) | AtLeast(left, right) | Divides(left, right):
            return type(fact)(resized(left, sizes), resized(right, sizes))


def extents_in(fact: ConditionAtom) -> tuple[Extent, ...]:
    """The extents in an atom of a condition."""
    match fact:
        case Rank() | Different():
            return ()
        case Equal(left, right) | AtLeast(left, right) | Divides(left, right):
            return (*atoms_of(left), *atoms_of(right))


def names_in(fact: ConditionAtom) -> set[str]:
    """The inputs and parameter variables in an atom of a condition."""
    match fact:
        case Rank(name):
            return {name}
        case Different(left, right):
            return {left, right}
        case _:
            return set(names_of(extents_in(fact)))


def names_of(extents: Iterable[Extent]) -> Iterator[str]:
    """The inputs and parameter variables in extents."""
    for extent in extents:
        yield extent.name
        if extent.variable:
            yield extent.variable


def rename(term: Term, names: Mapping[str, str]) -> Term:
    """Give inputs other names, in parameters too; those not in `names` keep theirs."""
    terms = {old: Input(new) for old, new in names.items()}
    return substitute(term, terms, lambda extent: _renamed(extent, names))


def _renamed(extent: Extent, names: Mapping[str, str]) -> Extent:
    return replace(extent, name=names.get(extent.name, extent.name))


def canonical_rule(rule: Rule) -> Rule:
    """The rule with inputs named x1, x2, ... in the order of their appearance, left side first.

    Two rules that differ only in the names of their inputs get the same form.
    """
    order = input_names(*rule.roots)
    names = {old: f"x{number}" for number, old in enumerate(order, 1)}
    return rename_rule(rule, names)


def rename_rule(rule: Rule, names: Mapping[str, str]) -> Rule:
    """Give the inputs of a rule other names, in its condition too."""
    condition = tuple(
        Rank(names.get(fact.name, fact.name), fact.rank)
        if isinstance(fact, Rank)
        else resized_fact(fact, lambda extent: _renamed(extent, names))
        for fact in rule.condition
    )
    left, right = (tuple(rename(each, names) for each in side) for side in (rule.left, rule.right))
    return replace(rule, left=left, right=right, condition=condition)
