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
    operator_count,
    operator_names,
)

__all__ = ["Joint", "RuleSet", "larger_side", "rule_set", "usable_directions"]


@dataclass(frozen=True, slots=True)
class Joint:
    """A rule of several roots in one direction: all patterns are looked for together."""

    rule: Rule
    patterns: tuple[Apply, ...]
    is_reversible: bool


@dataclass(frozen=True, slots=True)
class Usable:
    """A rule made ready for use.

    name          that of the rule
    axiom         one for a rule of one root; None where neither direction can be applied
    joint         for a rule of several roots one for each direction that can be applied
    count         operators of the larger side
    operators     those of both sides
    """

    name: str
    axiom: Axiom | None
    joint: tuple[Joint, ...]
    is_reversible: bool
    count: int
    operators: frozenset[str]


class RuleSet:
    """Rules ready for use; an axiom or a joint pattern has the name of its rule.

    axioms      of all rules of one root that can be applied
    reversible  those among them that are reversible
    joint       the rules of several roots, once for each direction
    """

    def __init__(self, usable: Iterable[Usable]) -> None:
        self._usable = tuple(usable)
        found = [(each, each.axiom) for each in self._usable if each.axiom is not None]
        self.axioms = tuple(axiom for _, axiom in found)
        self.reversible = tuple(axiom for each, axiom in found if each.is_reversible)
        self.joint = tuple(joint for each in self._usable for joint in each.joint)

    def __len__(self) -> int:
        return len(self._usable)

    def smaller_than(self, count: int) -> RuleSet:
        """The rules both of whose sides have fewer operators."""
        return RuleSet(each for each in self._usable if each.count < count)

    def among(self, operators: frozenset[str]) -> RuleSet:
        """The rules that have these operators alone."""
        return RuleSet(each for each in self._usable if each.operators <= operators)

    def of_one_root(self) -> RuleSet:
        """The rules of one root."""
        return RuleSet(each for each in self._usable if not each.joint)

    def without(self, name: str) -> RuleSet:
        """The rules with other names."""
        return RuleSet(each for each in self._usable if each.name != name)

    def plus(self, rule: Rule) -> RuleSet:
        """These rules and one more."""
        return RuleSet((*self._usable, _usable(rule)))


def rule_set(rules: Iterable[Rule]) -> RuleSet:
    """Prepare rules; each must have a name of its own."""
    return RuleSet(map(_usable, rules))


@lru_cache(maxsize=4096)
def _usable(rule: Rule) -> Usable:
    is_joint = len(rule.left) > 1
    return Usable(
        name=rule.name,
        axiom=None if is_joint else _axiom(rule),
        joint=_joints(rule) if is_joint else (),
        is_reversible=_is_reversible(rule),
        count=larger_side(rule),
        operators=operator_names(*rule.left, *rule.right),
    )


def larger_side(rule: Rule) -> int:
    """How many operators the larger side of a rule has."""
    return max(operator_count(*rule.left), operator_count(*rule.right))


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


def _is_reversible(rule: Rule) -> bool:
    return variables_of(*rule.left) == variables_of(*rule.right)


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


def _joints(rule: Rule) -> tuple[Joint, ...]:
    is_reversible = _is_reversible(rule)
    found = []
    for side, is_usable in zip((rule.left, rule.right), usable_directions(rule), strict=True):
        if is_usable:
            patterns = tuple(each for each in side if isinstance(each, Apply))
            found.append(Joint(rule, patterns, is_reversible))
    return tuple(found)
