"""Feature sets besides the features of statements: one module each, the formula in its docstring.

Those over loops are native code (`loops/loop_kernel.py`); `knob.py` needs no loops.
"""

from tensorwright.tuning.features.sets.context import CONTEXT, CONTEXT_COLUMNS
from tensorwright.tuning.features.sets.itervar import ITERVAR, ITERVAR_COLUMNS
from tensorwright.tuning.features.sets.knob import KnobFeatures
from tensorwright.tuning.features.sets.loop_tree import (
    LEAF_FIELDS,
    LOOP_TREE_COLUMNS,
    LOOP_TREES,
    TREE_FIELDS,
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
    "CONTEXT",
    "CONTEXT_COLUMNS",
    "ITERVAR",
    "ITERVAR_COLUMNS",
    "LEAF_FIELDS",
    "LOOP_TREES",
    "LOOP_TREE_COLUMNS",
    "PAIRED",
    "PUBLISHED",
    "QUANTITIES",
    "SAMPLES",
    "TREE_FIELDS",
    "CurveSettings",
    "KnobFeatures",
    "relation_curves",
]
