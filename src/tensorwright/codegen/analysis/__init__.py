"""What every back end needs to know about a loop program before it writes any code.

Read `facts.py` first: how each loop is written. Then `tiles.py`: which buffers live in registers.
"""

from tensorwright.codegen.analysis.facts import Facts, refuse_groups, values_below
from tensorwright.codegen.analysis.indices import IndexEvaluator, decide, flat_index
from tensorwright.codegen.analysis.linear import (
    Linear,
    Terms,
    combine,
    linear_range,
    scaled,
    sorted_terms,
)
from tensorwright.codegen.analysis.promote import promote_accumulators
from tensorwright.codegen.analysis.tiles import tile_width
from tensorwright.codegen.analysis.transposition import Transposition, find_transposition
from tensorwright.codegen.analysis.workspace import (
    BUFFER_ALIGN,
    Home,
    Workspace,
    element_count,
)

__all__ = [
    "BUFFER_ALIGN",
    "Facts",
    "Home",
    "IndexEvaluator",
    "Linear",
    "Terms",
    "Transposition",
    "Workspace",
    "combine",
    "decide",
    "element_count",
    "find_transposition",
    "flat_index",
    "linear_range",
    "promote_accumulators",
    "refuse_groups",
    "scaled",
    "sorted_terms",
    "tile_width",
    "values_below",
]
