"""Rules as they are applied: those of one root as axioms, those of several as joint patterns.

A rule can be applied in a direction if the side that is looked for binds every input of the other.
It is reversible if both sides have the same inputs: then each use can be undone by another.
`split0[0, x.0](concat[0](?x, ?y)) == ?x` is not: nobody knows which `?y` to put in again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tensorwright.rewrite.axioms import Axiom, variables_of
from tensorwright.rewrite.prove.problem import names_in
from tensorwright.rewrite.terms import Apply, Rule, Term

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
    wanted = variables_of(*rule.left, *rule.right)
    wanted |= {name for fact in rule.condition for name in names_in(fact)}
    return wanted <= variables_of(*side)


def _is_reversible(rule: Rule) -> bool:
    return variables_of(*rule.left) == variables_of(*rule.right)


def _axiom(rule: Rule) -> Axiom | None:
    sides = zip((rule.left, rule.right), usable_directions(rule), strict=True)
    triggers = tuple(side[0] for side, is_usable in sides if is_usable)
    return Axiom(rule.name, rule, triggers) if triggers else None


def _joints(rule: Rule) -> list[Joint]:
    is_reversible = _is_reversible(rule)
    found = []
    for side, is_usable in zip((rule.left, rule.right), usable_directions(rule), strict=True):
        if is_usable:
            patterns = tuple(each for each in side if isinstance(each, Apply))
            found.append(Joint(rule, patterns, is_reversible))
    return found
