"""Rules as they are applied: those of one root as axioms, those of several as joint patterns.

A rule can be applied in a direction if the side that is looked for binds every input of the other.
It is reversible if both sides have the same inputs: then each use can be undone by another.
`split0[0, x.0](concat[0](?x, ?y)) == ?x` is not: nobody knows which `?y` to put in again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from tensorwright.rewrite.axioms import Axiom, variables_of
from tensorwright.rewrite.dims import Dim, Extent, Size, atoms_of, value_of
from tensorwright.rewrite.prove.problem import names_in
from tensorwright.rewrite.prune.tidy import resized_fact
from tensorwright.rewrite.terms import (
    Apply,
    AtLeast,
    Param,
    Rank,
    Rule,
    Term,
    input_names,
)

__all__ = ["Joint", "RuleSet", "rule_set", "usable_directions"]


@dataclass(frozen=True, slots=True)
class Joint:
    """A rule of several roots in one direction: all patterns are looked for together."""

    rule: Rule
    patterns: tuple[Apply, ...]
    is_reversible: bool


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules ready for use; an axiom or a joint pattern has the name of its rule.

    axioms      of all rules of one root that can be applied
    reversible  those among them that are reversible
    joint       the rules of several roots, once for each direction
    """

    axioms: tuple[Axiom, ...]
    reversible: tuple[Axiom, ...]
    joint: tuple[Joint, ...]


def rule_set(rules: Iterable[Rule]) -> RuleSet:
    """Prepare rules; each must have a name of its own."""
    axioms: list[Axiom] = []
    reversible: list[Axiom] = []
    joint: list[Joint] = []
    for rule in rules:
        if len(rule.left) > 1:
            joint += _joints(rule)
            continue
        axiom = _axiom(rule)
        if axiom is None:
            continue
        axioms.append(axiom)
        if _is_reversible(rule):
            reversible.append(axiom)
    return RuleSet(tuple(axioms), tuple(reversible), tuple(joint))


def usable_directions(rule: Rule) -> tuple[bool, bool]:
    """Whether a rule can be applied from left to right, and from right to left."""
    return _binds_all(rule, rule.left), _binds_all(rule, rule.right)


def _binds_all(rule: Rule, side: tuple[Term, ...]) -> bool:
    if not all(isinstance(each, Apply) for each in side):
        return False
    wanted = variables_of(*rule.left, *rule.right) | _named_in_sizes(rule)
    return wanted <= variables_of(*side)


def _named_in_sizes(rule: Rule) -> set[str]:
    """The names in the condition, and those that only sizes speak of."""
    found = {name for fact in rule.condition for name in names_in(fact)}
    return found | set(input_names(*rule.left, *rule.right))


@lru_cache(maxsize=4096)
def _is_reversible(rule: Rule) -> bool:
    return variables_of(*rule.left) == variables_of(*rule.right)


@lru_cache(maxsize=4096)
def _axiom(rule: Rule) -> Axiom | None:
    opened = _with_size_variables(rule)
    sides = zip((opened.left, opened.right), usable_directions(opened), strict=True)
    triggers = tuple(side[0] for side, is_usable in sides if is_usable)
    return Axiom(rule.name, opened, triggers) if triggers else None


def _with_size_variables(rule: Rule) -> Rule:
    """Inputs that stand in sizes alone become parameter variables: `eye[n.0]` is `eye[_n_0]`.

    A variable may also stand for several parameters; that they are sizes is asked for in the
    condition, where several are none.
    """
    roots = (*rule.left, *rule.right)
    sized = set(input_names(*roots)) - variables_of(*roots)
    if not sized:
        return rule
    extents: dict[Extent, None] = {}

    def opened(extent: Extent) -> Size:
        if extent.name not in sized:
            return Dim.of(extent)
        extents.setdefault(extent)
        return Dim.of(_variable(extent))

    left = tuple(_opened(each, opened) for each in rule.left)
    right = tuple(_opened(each, opened) for each in rule.right)
    facts = tuple(f for f in rule.condition if not (isinstance(f, Rank) and f.name in sized))
    kept = tuple(resized_fact(fact, opened) for fact in facts)
    positive = tuple(AtLeast(Dim.of(_variable(extent)), 1) for extent in extents)
    return replace(rule, left=left, right=right, condition=(*kept, *positive))


def _variable(extent: Extent) -> Extent:
    return Extent(f"_{extent.name}_{extent.axis}", 0)


def _opened(term: Term, sizes: Callable[[Extent], Size]) -> Term:
    """The term with other extents; a parameter that is a variable alone becomes its name."""
    if not isinstance(term, Apply):
        return term
    params: list[Param] = []
    for param in term.params:
        size: Param = param
        if isinstance(param, Dim):
            size = value_of(param, {extent: sizes(extent) for extent in atoms_of(param)})
        atoms = atoms_of(size) if isinstance(size, Dim) else ()
        is_variable = len(atoms) == 1 and atoms[0].name.startswith("_")
        params.append(atoms[0].name if is_variable and size == Dim.of(atoms[0]) else size)
    return replace(term, params=tuple(params), args=tuple(_opened(arg, sizes) for arg in term.args))


@lru_cache(maxsize=4096)
def _joints(rule: Rule) -> tuple[Joint, ...]:
    is_reversible = _is_reversible(rule)
    found = []
    for side, is_usable in zip((rule.left, rule.right), usable_directions(rule), strict=True):
        if is_usable:
            patterns = tuple(each for each in side if isinstance(each, Apply))
            found.append(Joint(rule, patterns, is_reversible))
    return tuple(found)
