"""Cost models: which of many programs will be fast.

Read `protocol.py` first, then `boosted.py`, the learned one; `losses.py` is what it is trained
for, `accuracy.py` how well it does. A new model is one file that keeps the protocol.
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
from tensorwright.tuning.models.boosted import BoostedModel, RefitPolicy, make_loss
from tensorwright.tuning.models.forest import Forest, Tree, parse_lightgbm
from tensorwright.tuning.models.machine import CLOCK_HZ, Machine, Rates, machine_of, nominal_rates
from tensorwright.tuning.models.protocol import CostModel, Features, Sample, Scores
from tensorwright.tuning.models.random_model import RandomModel
from tensorwright.tuning.models.roofline import RooflineModel
from tensorwright.tuning.models.saved_model import SavedModel, load_model
from tensorwright.tuning.models.session_model import make_model
from tensorwright.tuning.models.settings import BoostedSettings, LossKind

__all__ = [
    "CLOCK_HZ",
    "LEAST_GAP",
    "BlendedModel",
    "BoostedModel",
    "BoostedSettings",
    "CostModel",
    "Features",
    "Forest",
    "Judgement",
    "LossKind",
    "Machine",
    "RandomModel",
    "Rates",
    "RefitPolicy",
    "RooflineModel",
    "Sample",
    "SavedModel",
    "Scores",
    "Tree",
    "judge",
    "load_model",
    "machine_of",
    "make_loss",
    "make_model",
    "nominal_rates",
    "overall",
    "parse_lightgbm",
    "scores_of",
    "split",
]
