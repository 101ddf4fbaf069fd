"""Cost models: which of many programs will be fast.

Read `protocol.py` first, then `learned.py`, the model of a session: boosted trees (`trees/`), or
another ranker that is fitted by its settings. `losses.py` has the losses of the training, and
`fading.py` how the prior fades. A new model is one file that keeps the protocol.
"""

from tensorwright.tuning.models.blended import BlendedModel
from tensorwright.tuning.models.fading import Fading, RefitPolicy
from tensorwright.tuning.models.learned import LearnedModel
from tensorwright.tuning.models.losses import loss_maker, make_loss
from tensorwright.tuning.models.protocol import CostModel, Features, Sample, Scores
from tensorwright.tuning.models.random_model import RandomModel
from tensorwright.tuning.models.roofline import RooflineModel
from tensorwright.tuning.models.saved_model import SavedModel, load_model
from tensorwright.tuning.models.session_model import make_model
from tensorwright.tuning.models.settings import BoostedSettings, FitSettings, LossKind
from tensorwright.tuning.models.trees.forest import Forest
from tensorwright.tuning.models.trees.tree import Tree

__all__ = [
    "BlendedModel",
    "BoostedSettings",
    "CostModel",
    "Fading",
    "Features",
    "FitSettings",
    "Forest",
    "LearnedModel",
    "LossKind",
    "RandomModel",
    "RefitPolicy",
    "RooflineModel",
    "Sample",
    "SavedModel",
    "Scores",
    "Tree",
    "load_model",
    "loss_maker",
    "make_loss",
    "make_model",
]
