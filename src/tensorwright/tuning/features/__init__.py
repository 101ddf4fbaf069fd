"""Features of candidates for the cost model.  Read `formulas.py` first, then
`loop_dependence.py`; `columns.py` says what they are written in, `feature_set.py` what sets there
are.
"""

from tensorwright.tuning.features.columns import ColumnGraph
from tensorwright.tuning.features.feature_set import (
    FEATURE_SETS,
    STATEMENT,
    FeatureSet,
    OpenSource,
    describes_statements,
    feature_set,
    features_for,
    unknown_features,
)
from tensorwright.tuning.features.featurizer import Featurizer, Plan, features_of, lower_sketch
from tensorwright.tuning.features.grid import SECTOR_BYTES
from tensorwright.tuning.features.groups import (
    FEATURE_GROUPS,
    FEATURE_NAMES,
    GPU_FEATURE_NAMES,
    ScalarGroup,
)
from tensorwright.tuning.features.names import CACHE_BYTES, REGISTER_BYTES
from tensorwright.tuning.features.source import FeatureSource
from tensorwright.tuning.features.statements import Statement, statements_of

__all__ = [
    "CACHE_BYTES",
    "FEATURE_GROUPS",
    "FEATURE_NAMES",
    "FEATURE_SETS",
    "GPU_FEATURE_NAMES",
    "REGISTER_BYTES",
    "SECTOR_BYTES",
    "STATEMENT",
    "ColumnGraph",
    "FeatureSet",
    "FeatureSource",
    "Featurizer",
    "OpenSource",
    "Plan",
    "ScalarGroup",
    "Statement",
    "describes_statements",
    "feature_set",
    "features_for",
    "features_of",
    "lower_sketch",
    "statements_of",
    "unknown_features",
]
