"""Rules that a smaller rule implies because both sides contain the same operator on inputs.

    relu(matmul(?x, ?y)) == relu(relu(matmul(?x, ?y)))
    relu(?t) == relu(relu(?t))        implies it, with matmul(?x, ?y) for ?t
    has_common_inputs                 True

Such an operator may be an input itself; so does TASO prune (common subgraph).
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.rewriting.terms import Apply, Input, Rule, Term, applications


def has_common_inputs(rule: Rule) -> bool:
    """Whether an operator on inputs stands on both sides."""
    return bool(_leaves(rule.left) & _leaves(rule.right))


def _leaves(roots: Sequence[Term]) -> set[Apply]:
    """The operators all of whose arguments are inputs; constants are no reason to prune."""
    return {
        each
        for each in applications(*roots)
        if each.args and all(isinstance(arg, Input) for arg in each.args)
    }
