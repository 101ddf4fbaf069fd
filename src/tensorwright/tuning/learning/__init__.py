"""How a session learns: what describes programs, what model, from what it starts.

Read `options.py` first; `session_learning.py` puts the parts together, `kept_model.py` keeps what
was learned from session to session.
"""

from tensorwright.tuning.learning.kept_model import ModelFile, model_file_of
from tensorwright.tuning.learning.options import MODELS, USUAL, Learning
from tensorwright.tuning.learning.session_learning import SessionLearning, open_learning

__all__ = [
    "MODELS",
    "USUAL",
    "Learning",
    "ModelFile",
    "SessionLearning",
    "model_file_of",
    "open_learning",
]
