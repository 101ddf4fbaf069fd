"""Schedule spaces. Read `sketch.py` first, then `space.py` and the rule files that it names."""

from tensorwright.tuning.space.sketch import (
    Choice,
    Kind,
    Limit,
    Sketch,
    SketchBuilder,
    Space,
    factorisations,
)
from tensorwright.tuning.space.space import (
    RULES,
    default_trace,
    direct_sketches,
    rule_sketches,
    space_of,
)

__all__ = [
    "RULES",
    "Choice",
    "Kind",
    "Limit",
    "Sketch",
    "SketchBuilder",
    "Space",
    "default_trace",
    "direct_sketches",
    "factorisations",
    "rule_sketches",
    "space_of",
]
