"""The rules that a search over a network tries, of all that are proved.

- A merge is tried on groups (`egraph/merging.py`). Other rules of several roots, and merges whose
roots share no tensor, are not tried: any two tensors of a network can be put into one, which never
pays. - A rule of one root is not tried where it only adds operators that move elements: any tensor
can be reshaped there and back, padded and cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tensorwright.rewriting.derivation import rule_set
from tensorwright.rewriting.egraph import Merge, Rewrite, merges_among, rewrite_of
from tensorwright.rewriting.operators import MOVING
from tensorwright.rewriting.terms import Apply, Rule, Term


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """Rules of one root, and merges."""

    plain: tuple[Rewrite, ...]
    merges: tuple[Merge, ...]


def network_rules(rules: Iterable[Rule], *, is_exact: bool = False) -> NetworkRules:
    """Choose among proved rules.

    is_exact   without those whose proof holds over the reals and not bit by bit over floats
    """
    kept = [rule for rule in rules if not (is_exact and rule.reassociating)]
    rewrites = rule_set(kept).rewrites
    plain = (_without_detours(each) for each in rewrites if len(each.left) == 1)
    return NetworkRules(tuple(each for each in plain if each is not None), merges_among(rewrites))


def _without_detours(rewrite: Rewrite) -> Rewrite | None:
    """The rewrite without triggers from which it only adds operators that move elements."""
    sides = (rewrite.rule.left[0], rewrite.rule.right[0])
    kept: list[tuple[Apply, ...]] = []
    for trigger in rewrite.triggers:
        terms = tuple(pattern.term for pattern in trigger.patterns)
        other = sides[1] if terms == (sides[0],) else sides[0]
        added = Counter(_operators(other)) - Counter(_operators(terms[0]))
        lost = Counter(_operators(terms[0])) - Counter(_operators(other))
        if not added or lost or not set(added) <= MOVING:
            kept.append(terms)
    return rewrite_of(rewrite.rule, kept) if kept else None


def _operators(term: Term) -> Iterable[str]:
    if isinstance(term, Apply):
        yield term.operator
        for arg in term.args:
            yield from _operators(arg)
