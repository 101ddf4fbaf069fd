"""How a session learns: what describes programs, what model, from what it starts.

Read `options.py` first; `session_learning.py` puts the parts together, `kept_model.py` keeps what
was learned from session to session, `recorded_start.py` learns from the records of others.
`predictions.py` keeps what was expected of each candidate.
"""

from tensorwright.tuning.learning.kept_model import ModelFile, model_file_of
from tensorwright.tuning.learning.options import MODELS, USUAL, Learning, RecordedStart
from tensorwright.tuning.learning.predictions import (
    Prediction,
    load_predictions,
    save_predictions,
    trace_digest,
)
from tensorwright.tuning.learning.recorded_start import Past, learn_from_records
from tensorwright.tuning.learning.session_learning import SessionLearning, open_learning

__all__ = [
    "MODELS",
    "USUAL",
    "Learning",
    "ModelFile",
    "Past",
    "Prediction",
    "RecordedStart",
    "SessionLearning",
    "learn_from_records",
    "load_predictions",
    "model_file_of",
    "open_learning",
    "save_predictions",
    "trace_digest",
]
