"""Rules that follow from others. Read `derive.py` first."""

from tensorwright.rewriting.derivation.derive import Derived, derive, subsuming_rules
from tensorwright.rewriting.derivation.ruleset import rule_set, with_size_variables

__all__ = ["Derived", "derive", "rule_set", "subsuming_rules", "with_size_variables"]
