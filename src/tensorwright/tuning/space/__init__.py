"""Schedule spaces. Read `sketch.py` first, then `space.py`, the rule files that it names, and
`templates/`.
"""

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
    SpaceKind,
    algorithm_sketches,
    default_trace,
    rule_sketches,
    sketches_of,
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
    "SpaceKind",
    "algorithm_sketches",
    "default_trace",
    "factorisations",
    "rule_sketches",
    "sketches_of",
    "space_of",
]
