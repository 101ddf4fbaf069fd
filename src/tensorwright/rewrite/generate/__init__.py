"""Enumeration of operator graphs and the equalities among them. Read `enumerate.py` first."""

from tensorwright.rewrite.generate.factory import Generated, Stage, generate_rules
from tensorwright.rewrite.generate.preset import PRESETS, Preset

__all__ = ["PRESETS", "Generated", "Preset", "Stage", "generate_rules"]
