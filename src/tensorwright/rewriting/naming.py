"""Names of rules: the operators of the left side, "to", the operators of the right side.

relu(transpose[1, 0](?x)) == transpose[1, 0](relu(?x))
systematic_name                   relu-transpose-to-transpose-relu
where that is taken               relu-transpose-to-transpose-relu-2
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.terms import Apply, Rule, Term, canonical_rule
from tensorwright.rewriting.text import rule_text


def systematic_name(rule: Rule) -> str:
    """A name that tells what the rule does; others may have it, too."""
    return f"{_words(rule.left)}-to-{_words(rule.right)}"


def unused_name(name: str, taken: Container[str]) -> str:
    """The name, with a number where it is taken; in the same order the same names come out."""
    number = 1
    unused = name
    while unused in taken:
        number += 1
        unused = f"{name}-{number}"
    return unused


def sides_key(rule: Rule) -> str:
    """A text that rules share if they differ in condition, direction and names of inputs alone."""
    turned = Rule(rule.right, rule.left)
    texts = (rule_text(canonical_rule(each)) for each in (Rule(rule.left, rule.right), turned))
    return min(texts)


def _words(side: Sequence[Term]) -> str:
    """The operators from the roots down, each application once, both halves of a split as one."""
    words: list[str] = []
    seen: set[object] = set()

    def visit(term: Term) -> None:
        if not isinstance(term, Apply):
            return
        word = operator_named(term.operator).word
        key = (word, term.params, term.args)
        if key in seen:
            return
        seen.add(key)
        words.append(word)
        for arg in term.args:
            visit(arg)

    for root in side:
        visit(root)
    return "-".join(words) or ("input" if len(side) == 1 else "inputs")
