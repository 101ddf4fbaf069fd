"""Analyses of loop programs for every back end, before it writes any code.

Read `facts.py` first: how each loop is written. Then `tiles.py`: which buffers live in registers.
"""

from tensorwright.codegen.analysis.facts import (
    BUFFER_ALIGN, MOST_ITERATIONS, Facts, MemoryKind, Workspace, element_count, refuse_groups,
)
from tensorwright.codegen.analysis.indices import (
    IndexEvaluator, Linear, combine, linear_range, scaled, size_name,
)
from tensorwright.codegen.analysis.tiles import tile_width
