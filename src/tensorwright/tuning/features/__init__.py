"""Features of candidates for the cost model.  Read `formulas.py` first, then
`loop_dependence.py`; `columns.py` says what they are written in, `featurizer.py` what sets there
are.
"""

from tensorwright.tuning.features.columns import ColumnGraph
from tensorwright.tuning.features.featurizer import (
    FEATURE_SETS, STATEMENT, FeatureSet, FeatureSource, Featurizer, OpenSource, Plan,
    describes_statements, feature_set, features_for, features_of, lower_sketch, unknown_features,
)
from tensorwright.tuning.features.groups import (
    FEATURE_GROUPS, FEATURE_NAMES, GPU_FEATURE_NAMES, ScalarGroup,
)
from tensorwright.tuning.features.lanes import SECTOR_BYTES
from tensorwright.tuning.features.operations import (
    CACHE_BYTES, REGISTER_BYTES, Statement, statements_of,
)
