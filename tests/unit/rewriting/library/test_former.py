"""Of the 360 rules that shipped when each was bound to one stride, padding, activation, axis and
permutation, each is said by those that ship now.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.draws import some_of

from tensorwright.rewriting import Rule, rule_text
from tensorwright.rewriting.egraph import Limits
from tensorwright.rewriting.library import load_library, read_library
from tensorwright.rewriting.prove import special_case
from tensorwright.rewriting.terms import operator_names
from tensorwright_lab.rule_generation.derivation import derive, rule_set

TEXT = (Path(__file__).parent / "former.rules").read_text(encoding="utf-8")
FORMER = [each.rule for each in read_library(TEXT.splitlines())]
SHIPPED = [each.rule for each in load_library()]
RULES = rule_set(SHIPPED)
LIMITS = Limits(rounds=8, nodes=4000, matches=400)


def test_the_file_is_shorter() -> None:
    """But for rules about volumes, of which the former ones say nothing."""
    assert len(FORMER) == 360
    roots = [rule.roots for rule in SHIPPED]
    names = [frozenset(operator_names(*each)) for each in roots]
    assert sum(not any("3d" in name for name in each) for each in names) < 0.6 * len(FORMER)


@pytest.mark.parametrize("rule", some_of(FORMER, 90, "former"), ids=lambda rule: rule.name)
@pytest.mark.drawn
def test_a_former_rule_is_an_instance_or_follows(rule: Rule) -> None:
    if any(special_case(rule, general) is not None for general in SHIPPED):
        return
    assert derive(rule, RULES, LIMITS) is not None, rule_text(rule)
