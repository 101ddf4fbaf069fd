"""Cost models: which of many programs will be fast. Read `protocol.py` first."""

from tensorwright.tune.models.protocol import CostModel, Features, Sample, Scores
from tensorwright.tune.models.random_model import RandomModel

__all__ = ["CostModel", "Features", "RandomModel", "Sample", "Scores"]
