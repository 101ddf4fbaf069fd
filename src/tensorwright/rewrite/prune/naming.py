"""Names of rules: what is on the left, "to", what is on the right."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tensorwright.rewrite.terms import Apply, Rule, Term

__all__ = ["systematic_name"]

_WORDS = {"split0": "split", "split1": "split", "conv2d": "conv", "scalar_mul": "scale"}


def systematic_name(rule: Rule, taken: Container[str] = ()) -> str:
    """A name that no other rule has; the same rules in the same order get the same names."""
    base = f"{_words(rule.left)}-to-{_words(rule.right)}"
    name = base
    number = 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name


def _words(side: Sequence[Term]) -> str:
    """The operators from the roots down, each application once, both halves of a split as one."""
    found: list[str] = []
    seen: set[object] = set()

    def visit(term: Term) -> None:
        if not isinstance(term, Apply):
            return
        word = _WORDS.get(term.operator, term.operator.replace("_", "-"))
        key = (word, term.params, term.args)
        if key in seen:
            return
        seen.add(key)
        found.append(word)
        for arg in term.args:
            visit(arg)

    for root in side:
        visit(root)
    return "-".join(found) or ("input" if len(side) == 1 else "inputs")
