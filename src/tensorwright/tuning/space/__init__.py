"""Schedule spaces. Read `sketch.py` first, then `space.py`, the heuristics that it names, and
`templates/`.
"""

from tensorwright.tuning.space.register_tile import TILE_LIMITS, TileLimits, limits_of
from tensorwright.tuning.space.sketch import (
    Choice, Kind, Limit, Sketch, SketchBuilder, Space, factorisations,
)
from tensorwright.tuning.space.space import (
    HEURISTICS, OTHER_ALGORITHMS, SpaceKind, algorithm_sketches, default_trace, heuristic_sketches,
    sketches_of, space_of,
)
