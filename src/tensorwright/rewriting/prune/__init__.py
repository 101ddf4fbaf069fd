"""Pruning of candidate rules. Read `derivation.py` first, then `selection.py`."""

from tensorwright.rewriting.prune.derivation import Derived, derive, subsuming_rules
from tensorwright.rewriting.prune.naming import sides_key, systematic_name, unused_name
from tensorwright.rewriting.prune.ruleset import rule_set, with_size_variables
from tensorwright.rewriting.prune.selection import Progress, Selection, minimise_rules, select_rules

__all__ = [
    "Derived",
    "Progress",
    "Selection",
    "derive",
    "minimise_rules",
    "rule_set",
    "select_rules",
    "sides_key",
    "subsuming_rules",
    "systematic_name",
    "unused_name",
    "with_size_variables",
]
