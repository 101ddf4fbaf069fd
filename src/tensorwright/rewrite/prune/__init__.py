"""Pruning of candidate rules. Read `derivation.py` first, then `selection.py`."""

from tensorwright.rewrite.prune.common_subgraph import has_common_inputs
from tensorwright.rewrite.prune.derivation import Derived, derive, same_power
from tensorwright.rewrite.prune.examine import decide
from tensorwright.rewrite.prune.naming import sides_key, systematic_name
from tensorwright.rewrite.prune.ruleset import RuleSet, rule_set
from tensorwright.rewrite.prune.selection import (
    Dropped,
    Progress,
    Selection,
    minimise_rules,
    select_rules,
    selection_order,
)

__all__ = [
    "Derived",
    "Dropped",
    "Progress",
    "RuleSet",
    "Selection",
    "decide",
    "derive",
    "has_common_inputs",
    "minimise_rules",
    "rule_set",
    "same_power",
    "select_rules",
    "selection_order",
    "sides_key",
    "systematic_name",
]
