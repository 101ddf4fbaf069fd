"""Rewrites, and patterns in the form for a matcher: variables are numbered.

    matmul(?x, transpose[_p](?y))        tensors (x, y), parameters (_p)
    a NodePattern over indices            matmul(0, transpose[_p](1))
    at matmul(?a, transpose[1, 0](?b))   it matches with nodes (a, b) and the value (1, 0)

A pattern has tensor variables and parameter variables, each with an index into a tuple, the sorted
names.  A last parameter variable takes all parameters that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import TypeAlias

from tensorwright.expr import IndexExpr
from tensorwright.rewriting import terms
from tensorwright.rewriting.dims import Extent, Size, atoms_of, resized
from tensorwright.rewriting.terms import Apply, Input, Param, Reordered, Rule, Term, applications

_NUMBERS = count()


def is_parameter_variable(param: Param) -> bool:
    """Whether a parameter of a pattern is a variable: its name begins with an underscore."""
    return isinstance(param, str) and param.startswith("_")


def variables_of(*terms: Term) -> frozenset[str]:
    """The inputs and parameter variables that a match of some terms binds.

    An input that occurs only in sizes is not bound: `y` in `pad[y.0](?x)`.
    """
    applied = applications(*terms)
    names = {term.name for term in terms if isinstance(term, Input)}
    for each in applied:
        names.update(arg.name for arg in each.args if isinstance(arg, Input))
        names.update(str(param) for param in each.params if is_parameter_variable(param))
    return frozenset(names)


def can_be_matched(term: Term) -> bool:
    """Whether a term can be looked for: no parameter is computed from variables."""
    return not any(
        isinstance(param, Reordered) for each in applications(term) for param in each.params
    )


@dataclass(frozen=True, slots=True)
class Variables:
    """The names of tensor variables and of parameter variables, in the order of their indices."""

    tensors: tuple[str, ...]
    params: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodePattern:
    """An application in a pattern.

    number     its own; results that depend on it are kept under it
    args       the indices of tensor variables, and patterns
    variables  those of the whole pattern
    """

    number: int
    operator: str
    params: tuple[Param, ...]
    args: tuple[Pattern, ...]
    variables: Variables


Pattern: TypeAlias = int | NodePattern


@dataclass(frozen=True, slots=True, eq=False)
class RootPattern:
    """A term to be looked for, with variables of its own.

    height  how many levels of nodes it has below the root
    depth   how many levels below the root a changed class may give a new match
    """

    term: Apply
    node: NodePattern
    variables: Variables
    height: int
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class Trigger:
    """Terms at which a rewrite is tried where all of them match together.

    growth  how many operators the larger side has more than they; 0 where there are several
    """

    patterns: tuple[RootPattern, ...]
    growth: int


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """A rule that makes terms equal wherever one of its triggers matches.

    number       its own
    rule         the equality; names of parameters with an underscore are variables
    operators    those of both sides
    left, right  the sides as patterns over `variables`
    triggers     each binds all variables
    """

    number: int
    rule: Rule
    operators: frozenset[str]
    variables: Variables
    left: tuple[Pattern, ...]
    right: tuple[Pattern, ...]
    triggers: tuple[Trigger, ...]

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.rule.name


def rewrite_of(rule: Rule, triggers: Sequence[Sequence[Apply]]) -> Rewrite:
    """A rule with the terms at which it is to be tried.

    Raises:  ValueError where a group of them does not bind the variables of the rule.
    """
    names = variables_of(*rule.roots)
    if not triggers or any(variables_of(*group) != names for group in triggers):
        raise ValueError(f"a trigger of rewrite {rule.name} does not bind just its variables")
    if not all(can_be_matched(term) for group in triggers for term in group):
        raise ValueError(f"a trigger of rewrite {rule.name} has a parameter that is computed")
    variables = _variables_in(*rule.roots)
    largest = max(len(applications(root)) for root in rule.roots)
    return Rewrite(
        number=next(_NUMBERS),
        rule=rule,
        operators=terms.operator_names(*rule.roots),
        variables=variables,
        left=tuple(_pattern(root, variables) for root in rule.left),
        right=tuple(_pattern(root, variables) for root in rule.right),
        triggers=tuple(
            Trigger(
                tuple(map(_root_pattern, group)),
                largest - len(applications(*group)) if len(group) == 1 else 0,
            )
            for group in triggers
        ),
    )


@lru_cache(maxsize=4096)
def usable_rewrite(rule: Rule) -> Rewrite | None:
    """The rule, tried at each side from which it can be applied: one that binds every input of the
    other.  None where neither side is one.

    relu(eye[n.0]()) == eye[n.0]()              eye[_n_0], both ways
    split0[0, x.0](concat[0](?x, ?y)) == ?x     from left to right alone: ?y is unknown
    matmul(?x, ?y), matmul(?x, ?z) == ...       two roots
    """
    opened = with_size_variables(rule) if len(rule.left) == 1 else rule
    sides = zip((opened.left, opened.right), usable_directions(opened), strict=True)
    triggers = [
        [root for root in side if isinstance(root, Apply)] for side, is_usable in sides if is_usable
    ]
    return rewrite_of(opened, triggers) if triggers else None


def usable_directions(rule: Rule) -> tuple[bool, bool]:
    """Whether a rule can be applied from left to right, and from right to left."""
    return _binds_all(rule, rule.left), _binds_all(rule, rule.right)


def _binds_all(rule: Rule, side: tuple[Term, ...]) -> bool:
    if not all(isinstance(each, Apply) and can_be_matched(each) for each in side):
        return False
    wanted = variables_of(*rule.roots).union(terms.input_names(*rule.roots))
    wanted = wanted.union(*map(terms.names_in, rule.condition))
    return wanted <= variables_of(*side)


def with_size_variables(rule: Rule) -> Rule:
    """Inputs that stand in sizes alone become parameter variables: `eye[n.0]` is `eye[_n_0]`.

    A variable may also stand for several parameters; that they are sizes is asked for in the
    condition, where several are none.
    """
    roots = rule.roots
    sized = set(terms.input_names(*roots)) - variables_of(*roots)
    if not sized:
        return rule
    extents: dict[Extent, None] = {}

    def opened(extent: Extent) -> Size:
        if extent.name not in sized:
            return extent
        extents.setdefault(extent)
        return _variable(extent)

    left = tuple(_opened(each, opened) for each in rule.left)
    right = tuple(_opened(each, opened) for each in rule.right)
    facts = tuple(f for f in rule.condition if not (isinstance(f, terms.Rank) and f.name in sized))
    kept = tuple(terms.resized_fact(fact, opened) for fact in facts)
    positive = tuple(terms.AtLeast(_variable(extent), 1) for extent in extents)
    return replace(rule, left=left, right=right, condition=(*kept, *positive))


def _variable(extent: Extent) -> Extent:
    return Extent(f"_{extent.name}_{extent.axis}", 0)


def _opened(term: Term, sizes: Callable[[Extent], Size]) -> Term:
    """The term with other extents; a parameter that is a variable alone becomes its name."""

    def opened(param: Param) -> tuple[Param]:
        if not isinstance(param, IndexExpr):
            return (param,)
        size = resized(param, sizes)
        atoms = atoms_of(size)
        is_variable = len(atoms) == 1 and atoms[0].name.startswith("_")
        return (atoms[0].name if is_variable and size == atoms[0] else size,)

    return terms.with_params(term, opened)


@lru_cache(maxsize=1 << 15)
def _root_pattern(term: Apply) -> RootPattern:
    """A term as a pattern; the same for all rewrites that look for it."""
    variables = _variables_in(term)
    is_repeated = any(times > 1 for times in Counter(_leaves(term)).values())
    height = _height(term) - 1
    node = _node_pattern(term, variables)
    return RootPattern(term, node, variables, height, height + is_repeated)


def _variables_in(*terms: Term) -> Variables:
    names = variables_of(*terms)
    params = tuple(sorted(filter(is_parameter_variable, names)))
    return Variables(tuple(sorted(names.difference(params))), params)


def _pattern(term: Term, variables: Variables) -> Pattern:
    if isinstance(term, Input):
        return variables.tensors.index(term.name)
    return _node_pattern(term, variables)


def _node_pattern(term: Apply, variables: Variables) -> NodePattern:
    args = tuple(_pattern(arg, variables) for arg in term.args)
    return NodePattern(next(_NUMBERS), term.operator, term.params, args, variables)


def _height(term: Term) -> int:
    if isinstance(term, Input):
        return 0
    return 1 + max((_height(arg) for arg in term.args), default=0)


def _leaves(term: Term) -> list[str]:
    if isinstance(term, Input):
        return [term.name]
    return [name for arg in term.args for name in _leaves(arg)]
