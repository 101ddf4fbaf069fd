"""Features of candidates for the cost model.  Read `formulas.py` first, then
`loop_dependence.py`; `columns.py` says what they are written in.
"""

from tensorwright.tuning.features.columns import ColumnGraph
from tensorwright.tuning.features.featurizer import Featurizer, Plan, features_of, lower_sketch
from tensorwright.tuning.features.names import FEATURE_NAMES

__all__ = ["FEATURE_NAMES", "ColumnGraph", "Featurizer", "Plan", "features_of", "lower_sketch"]
