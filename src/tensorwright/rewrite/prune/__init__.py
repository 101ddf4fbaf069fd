"""Pruning of candidate rules. Read `common.py` first, then `derivation.py` and `selection.py`.

`common.py` drops what a smaller rule says by congruence; `selection.py` proves the others and drops
what the kept rules imply.
"""

from tensorwright.rewrite.prune.common import has_common_inputs, has_common_output, prune_common
from tensorwright.rewrite.prune.derivation import Derived, derive, same_power
from tensorwright.rewrite.prune.examine import decide
from tensorwright.rewrite.prune.naming import systematic_name
from tensorwright.rewrite.prune.ruleset import RuleSet, rule_set
from tensorwright.rewrite.prune.selection import (
    Dropped,
    Progress,
    Selection,
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
    "has_common_output",
    "prune_common",
    "rule_set",
    "same_power",
    "select_rules",
    "selection_order",
    "systematic_name",
]
