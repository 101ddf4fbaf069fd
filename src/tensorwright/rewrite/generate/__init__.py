"""Enumeration of operator graphs and the equalities among them. Read `enumerate.py` first."""

from tensorwright.rewrite.generate.factory import Generated, Stage, generate_rules, remove_work
from tensorwright.rewrite.generate.preset import Preset
from tensorwright.rewrite.generate.presets import PRESET_NAMES, presets_of

__all__ = [
    "PRESET_NAMES",
    "Generated",
    "Preset",
    "Stage",
    "generate_rules",
    "presets_of",
    "remove_work",
]
