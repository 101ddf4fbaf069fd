"""Rules of two equal roots, applied to whole groups instead of to all pairs.

    matmul(?x, ?v), matmul(?x, ?w) -> split0[...](matmul(?x, concat[1](?v, ?w))), split1[...](...)
    matmul(a, u), matmul(a, v), matmul(a, w)
        pairs of neighbours     u v | v w
        the chain               u v | (u v) w

Such a rule is a merge: its two roots have the same pattern, and its right side applies that pattern
once, to the operands of both.  A group of n members has n * (n - 1) pairs in both orders, and
merges of merges multiply them again. Neighbours and the chain are only 2 * n - 3 merges, and the
end of the chain merges all members that can be merged.

Source:  Yang et al., TENSAT, MLSys 2021, section 4 names the growth; the chain is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorwright.rewriting.egraph.matching import Bound, Match
from tensorwright.rewriting.egraph.patterns import (
    NodePattern,
    Pattern,
    Rewrite,
    RootPattern,
    is_parameter_variable,
)
from tensorwright.rewriting.terms import Apply, Input, Term


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """A rule of two roots that are alike.

    root     the pattern of the first root
    shared   its variables that have the same value in the second
    second   the name of each of its variables in the second
    merged   the pattern of the merged application
    """

    rewrite: Rewrite
    root: RootPattern
    shared: tuple[str, ...]
    second: Mapping[str, str]
    merged: NodePattern

    def match(self, one: Bound, other: Bound) -> Match:
        """The match of both roots, from the values of the first root's variables at each."""
        renamed = {self.second[name]: value for name, value in other.items()}
        return Match.of(self.rewrite.variables, {**renamed, **one})


def merges_among(rewrites: Iterable[Rewrite]) -> tuple[Merge, ...]:
    """The rules that are merges and whose roots share a tensor."""
    merges = (_merge(rewrite) for rewrite in rewrites if len(rewrite.left) == 2)
    return tuple(each for each in merges if each is not None)


def _merge(rewrite: Rewrite) -> Merge | None:
    rule = rewrite.rule
    one, other = rule.left
    patterns = next(
        (
            trigger.patterns
            for trigger in rewrite.triggers
            if tuple(pattern.term for pattern in trigger.patterns) == rule.left
        ),
        None,
    )
    second = _renaming(one, other)
    if patterns is None or second is None or not isinstance(one, Apply):
        return None
    inner = tuple(_inner(root, one.operator) for root in rule.right)
    merged = _inner(rewrite.right[0], one.operator)
    if not isinstance(merged, NodePattern) or inner[0] is None or inner[0] != inner[1]:
        return None
    shared = tuple(name for name, its in second.items() if name == its)
    if not set(shared) & set(patterns[0].variables.tensors):
        return None
    return Merge(rewrite, patterns[0], shared, second, merged)


def _renaming(one: Term, other: Term) -> dict[str, str] | None:
    """The renaming of variables that makes one term the other; None where there is none."""
    if isinstance(one, Input) and isinstance(other, Input):
        return {one.name: other.name}
    if not isinstance(one, Apply) or not isinstance(other, Apply):
        return None
    if one.operator != other.operator or len(one.params) != len(other.params):
        return None
    renaming: dict[str, str] = {}
    pairs: list[dict[str, str] | None] = []
    for mine, its in zip(one.params, other.params, strict=True):
        if is_parameter_variable(mine) and is_parameter_variable(its):
            pairs.append({str(mine): str(its)})
        elif mine != its:
            return None
    for each in (*pairs, *map(_renaming, one.args, other.args)):
        if each is None:
            return None
        for mine, its in each.items():
            if renaming.setdefault(mine, its) != its:
                return None
    return renaming


def _inner(side: Term | Pattern, operator: str) -> Apply | NodePattern | None:
    """The application of an operator below operators of one argument."""
    while isinstance(side, Apply | NodePattern) and side.operator != operator:
        if len(side.args) != 1:
            return None
        (side,) = side.args
    return side if isinstance(side, Apply | NodePattern) else None
