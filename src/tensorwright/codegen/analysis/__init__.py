"""Analyses of loop programs for every back end, before it writes any code.

Read `facts.py` first: how each loop is written. Then `tiles.py`: which buffers live in registers.
"""

from tensorwright.codegen.analysis.facts import MOST_ITERATIONS, Facts, refuse_groups
from tensorwright.codegen.analysis.indices import IndexEvaluator, size_name
from tensorwright.codegen.analysis.linear import (
    Linear,
    combine,
    linear_range,
    scaled,
)
from tensorwright.codegen.analysis.tiles import tile_width
from tensorwright.codegen.analysis.workspace import (
    BUFFER_ALIGN,
    MemoryKind,
    Workspace,
    element_count,
)

__all__ = [
    "BUFFER_ALIGN",
    "MOST_ITERATIONS",
    "Facts",
    "IndexEvaluator",
    "Linear",
    "MemoryKind",
    "Workspace",
    "combine",
    "element_count",
    "linear_range",
    "refuse_groups",
    "scaled",
    "size_name",
    "tile_width",
]
