"""The substitutions of the literature are shipped, or follow from what is shipped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorwright.rewrite import Rule, canonical_rule, rule_text
from tensorwright.rewrite.library import listed_rules, load_library
from tensorwright.rewrite.prune import derive, rule_set

SHIPPED = rule_set(each.rule for each in load_library())
TEXTS = {
    rule_text(canonical_rule(replace(each.rule, name="", stamp=""))) for each in load_library()
}


@pytest.mark.parametrize("rule", listed_rules("known"), ids=lambda rule: rule.name)
def test_a_substitution_is_shipped_or_follows(rule: Rule) -> None:
    if rule_text(canonical_rule(replace(rule, name=""))) in TEXTS:
        return
    assert derive(rule, SHIPPED) is not None
