"""Select the candidate rules to keep: proved, and none implied by the others.

Read `selection.py` first.
"""

from tensorwright_lab.rule_generation.operator_facts import sides_key, systematic_name
from tensorwright_lab.rule_generation.selection.selection import (
    Progress, Selection, minimise_rules, select_rules,
)
