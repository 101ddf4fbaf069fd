"""The substitutions of the literature are shipped, or follow from what is shipped."""

from __future__ import annotations

import pytest

from tensorwright.rewriting import Rule, applications, parse_rule
from tensorwright.rewriting.library import listed_rules, load_library
from tensorwright.rewriting.prove import special_case
from tensorwright_lab.rule_generation.derivation import derive, rule_set

SHIPPED = rule_set(each.rule for each in load_library())


@pytest.mark.parametrize("rule", listed_rules("known"), ids=lambda rule: rule.name)
def test_a_substitution_is_shipped_or_follows(rule: Rule) -> None:
    if any(special_case(rule, each.rule) is not None for each in load_library()):
        return
    assert derive(rule, SHIPPED) is not None


def test_a_derivation_goes_straight() -> None:
    """Not by way of a ReLU that was merged with another one."""
    conv = "conv2d[1, 1, same, none]"
    wanted = parse_rule(
        f"conv2d[1, 1, same, relu](concat[1](?a, ?b), concat[1](?v, ?w)) == "
        f"relu(ewadd({conv}(?b, ?w), {conv}(?a, ?v))) if a.1 = v.1 and b.1 = w.1"
    )
    found = derive(wanted, SHIPPED)
    assert found is not None
    terms = [step.before for step in found.chains[0]]
    assert len(terms) == 3
    assert not any(each.operator == "split1" for each in applications(*terms))
