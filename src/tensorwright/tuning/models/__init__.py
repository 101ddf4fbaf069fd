"""Cost models: which of many programs will be fast.

Read `protocol.py` first, then `learned.py`, what learns in a session: boosted trees (`trees/`) or a
program embedding (`embedding/`); `losses.py` is what they are trained for, `fading.py` how what was
known before gives way, `accuracy.py` how well they do. A new model is one file that keeps the
protocol.
"""

from tensorwright.tuning.models.accuracy import (
    LEAST_GAP,
    Judgement,
    judge,
    overall,
    scores_of,
    split,
)
from tensorwright.tuning.models.blended import BlendedModel
from tensorwright.tuning.models.fading import Fading, RefitPolicy
from tensorwright.tuning.models.learned import LearnedModel
from tensorwright.tuning.models.losses import make_loss
from tensorwright.tuning.models.protocol import CostModel, Features, Sample, Scores
from tensorwright.tuning.models.random_model import RandomModel
from tensorwright.tuning.models.roofline import RooflineModel
from tensorwright.tuning.models.saved_model import Ranker, SavedModel, load_model
from tensorwright.tuning.models.session_model import make_model
from tensorwright.tuning.models.settings import BoostedSettings, LossKind, NetworkSettings
from tensorwright.tuning.models.trees.boosted import BoostedModel
from tensorwright.tuning.models.trees.forest import Forest, parse_lightgbm
from tensorwright.tuning.models.trees.tree import Tree

__all__ = [
    "LEAST_GAP",
    "BlendedModel",
    "BoostedModel",
    "BoostedSettings",
    "CostModel",
    "Fading",
    "Features",
    "Forest",
    "Judgement",
    "LearnedModel",
    "LossKind",
    "NetworkSettings",
    "RandomModel",
    "Ranker",
    "RefitPolicy",
    "RooflineModel",
    "Sample",
    "SavedModel",
    "Scores",
    "Tree",
    "judge",
    "load_model",
    "make_loss",
    "make_model",
    "overall",
    "parse_lightgbm",
    "scores_of",
    "split",
]
