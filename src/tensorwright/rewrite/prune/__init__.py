"""Pruning of candidate rules. Read `derivation.py` first, then `selection.py`."""

from tensorwright.rewrite.prune.common_subgraph import has_common_inputs
from tensorwright.rewrite.prune.derivation import Derived, derive, subsuming_rules
from tensorwright.rewrite.prune.naming import sides_key, systematic_name
from tensorwright.rewrite.prune.ruleset import rule_set
from tensorwright.rewrite.prune.selection import (
    Progress,
    Selection,
    minimise_rules,
    select_rules,
)

__all__ = [
    "Derived",
    "Progress",
    "Selection",
    "derive",
    "has_common_inputs",
    "minimise_rules",
    "rule_set",
    "select_rules",
    "sides_key",
    "subsuming_rules",
    "systematic_name",
]
