"""Drop rules that a smaller rule with the same power implies by congruence, as TASO does.

common inputs    both sides contain one operator on the same inputs: it may be an input itself
common outputs   both sides end in the same operator and differ in one argument

Equalities of constants go, too: without an input they speak of one size alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.rewrite.terms import Apply, Input, Rule, Term, applications, input_names

__all__ = ["has_common_inputs", "has_common_output", "prune_common"]


def _leaves(roots: Sequence[Term]) -> set[Apply]:
    """The operators all of whose arguments are inputs; constants are no reason to prune."""
    return {
        each
        for each in applications(*roots)
        if each.args and all(isinstance(arg, Input) for arg in each.args)
    }


def has_common_inputs(rule: Rule) -> bool:
    """Whether an operator on inputs stands on both sides."""
    return bool(_leaves(rule.left) & _leaves(rule.right))


def has_common_output(rule: Rule) -> bool:
    """Whether both sides are one operator with all arguments equal but one."""
    for left, right in zip(rule.left, rule.right, strict=True):
        if not isinstance(left, Apply) or not isinstance(right, Apply):
            return False
        same = (left.operator, left.params) == (right.operator, right.params)
        if not same or len(left.args) != len(right.args):
            return False
        if sum(a != b for a, b in zip(left.args, right.args, strict=True)) > 1:
            return False
    return True


def prune_common(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules that have neither and speak of inputs, in order."""
    return tuple(
        rule
        for rule in rules
        if input_names(*rule.left, *rule.right)
        and not has_common_inputs(rule)
        and not has_common_output(rule)
    )
