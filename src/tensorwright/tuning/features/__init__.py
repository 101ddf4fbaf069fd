"""Features of candidates for the cost model.  Read `formulas.py` first, then
`loop_dependence.py`; `columns.py` says what they are written in, `feature_set.py` what sets there
are.
"""

from tensorwright.tuning.features.columns import ColumnGraph
from tensorwright.tuning.features.feature_set import (
    FEATURE_SETS,
    LOOP_TREE,
    STATEMENT,
    FeatureSet,
    OpenSource,
    feature_set,
)
from tensorwright.tuning.features.featurizer import Featurizer, Plan, features_of, lower_sketch
from tensorwright.tuning.features.loops.loop_kernel import LOOPS
from tensorwright.tuning.features.names import CACHE_BYTES, FEATURE_NAMES, REGISTER_BYTES
from tensorwright.tuning.features.sets import LEAF_FIELDS, TREE_FIELDS
from tensorwright.tuning.features.source import FeatureSource

__all__ = [
    "CACHE_BYTES",
    "FEATURE_NAMES",
    "FEATURE_SETS",
    "LEAF_FIELDS",
    "LOOPS",
    "LOOP_TREE",
    "REGISTER_BYTES",
    "STATEMENT",
    "TREE_FIELDS",
    "ColumnGraph",
    "FeatureSet",
    "FeatureSource",
    "Featurizer",
    "OpenSource",
    "Plan",
    "feature_set",
    "features_of",
    "lower_sketch",
]
