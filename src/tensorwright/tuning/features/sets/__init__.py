"""Feature sets besides the features of statements: one module each, the formula in its docstring.

Those over loops are functions of `LoopArrays` (`loops/loop_arrays.py`); `knob.py` needs no loops.
"""

from tensorwright.tuning.features.sets.context import CONTEXT_COLUMNS, context
from tensorwright.tuning.features.sets.itervar import ITERVAR_COLUMNS, itervar
from tensorwright.tuning.features.sets.knob import KnobFeatures
from tensorwright.tuning.features.sets.loop_tree import (
    LEAF_FIELDS,
    LOOP_TREE_COLUMNS,
    TREE_FIELDS,
    loop_tree,
)
from tensorwright.tuning.features.sets.relation_curves import (
    PAIRED,
    PUBLISHED,
    QUANTITIES,
    SAMPLES,
    CurveSettings,
    relation_curves,
)

__all__ = [
    "CONTEXT_COLUMNS",
    "ITERVAR_COLUMNS",
    "LEAF_FIELDS",
    "LOOP_TREE_COLUMNS",
    "PAIRED",
    "PUBLISHED",
    "QUANTITIES",
    "SAMPLES",
    "TREE_FIELDS",
    "CurveSettings",
    "KnobFeatures",
    "context",
    "itervar",
    "loop_tree",
    "relation_curves",
]
