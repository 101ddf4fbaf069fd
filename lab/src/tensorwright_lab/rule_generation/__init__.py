"""Enumeration of operator graphs and the equalities among them. Read `enumerate.py` first.

generate_rules("released", 2)     a preset, and operators on a side
fingerprint < enumerate < candidates < generalize < generate.py     the steps, each a folder
Generated(rules=(...), ...)       rules for all shapes, not yet proved
select_rules(rules)               those that are proved and not implied by others (`selection/`)
build_library()                   the rules that ship with tensorwright (`writing.py`)
"""

from tensorwright_lab.rule_generation.enumerate.enumerate import WHOLE_LEVELS
from tensorwright_lab.rule_generation.forecast import LevelCost
from tensorwright_lab.rule_generation.generate import (
    Generated, Stage, generate_rules, plan_rules, remove_work,
)
from tensorwright_lab.rule_generation.presets import PRESET_NAMES, presets_of
