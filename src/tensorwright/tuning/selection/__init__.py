"""The schedule of a workload that was not tuned: the best predicted of some hundred candidates.

Read `predictor.py` first, what others call; `candidates.py` says what is compared.
"""

from tensorwright.tuning.selection.candidates import Effort
from tensorwright.tuning.selection.chosen import Chosen, Elite, Estimate
from tensorwright.tuning.selection.predictor import Predictor, TopQuestion, open_predictor
from tensorwright.tuning.selection.prices import PredictedPrices

__all__ = [
    "Chosen",
    "Effort",
    "Elite",
    "Estimate",
    "PredictedPrices",
    "Predictor",
    "TopQuestion",
    "open_predictor",
]
