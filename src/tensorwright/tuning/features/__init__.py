"""Features of candidates for the cost model.  Read `formulas.py` first, then `dependence.py`."""

from tensorwright.tuning.features.featurizer import Featurizer, Plan, features_of, lower_sketch
from tensorwright.tuning.features.names import FEATURE_NAMES

__all__ = ["FEATURE_NAMES", "Featurizer", "Plan", "features_of", "lower_sketch"]
