"""Cost models: which of many programs will be fast.

Read `protocol.py` first, then `learned.py`, the model of a session: boosted trees (`trees/`), or
another ranker that is fitted by its settings. `losses.py` has the losses of the training, and how
the prior fades. A new model is one file that keeps the protocol.
"""

from tensorwright.tuning.models.learned import LearnedModel, make_model
from tensorwright.tuning.models.losses import Fading, RefitPolicy, loss_maker, make_loss
from tensorwright.tuning.models.protocol import (
    BoostedSettings, CostModel, Features, FitSettings, LossKind, Sample, Scores,
)
from tensorwright.tuning.models.roofline import BlendedModel, RandomModel, RooflineModel
from tensorwright.tuning.models.saved_model import SavedModel, load_model
from tensorwright.tuning.models.trees.forest import Forest, Tree, lightgbm_grow
