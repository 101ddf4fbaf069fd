"""Schedule spaces. Read `sketch.py` first, then `space.py` and the rule files that it names."""

from tensorwright.tune.space.sketch import Choice, Limit, Sketch, SketchBuilder, Space
from tensorwright.tune.space.space import RULES, space_of

__all__ = ["RULES", "Choice", "Limit", "Sketch", "SketchBuilder", "Space", "space_of"]
