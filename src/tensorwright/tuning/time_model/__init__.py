"""The time model: seconds of a program, on any machine, before anything was measured.

Read `model.py` first: what is predicted, and how; `rows.py` has the inputs.
"""

from tensorwright.tuning.models.saved_model import ArrayFile

from tensorwright.tuning.time_model.model import (
    Policy, Prediction, TimeModel, TrainedKeys, load_time_model, save_time_model,
)
from tensorwright.tuning.time_model.models_by_kind import (
    TIME_MODELS, AnyTimeModel, PredictedTime, launch_seconds, pretrained_model, time_model_of,
)
from tensorwright.tuning.time_model.rows import (
    ROW_NAMES, line_transfers, program_scores, rows_of, shared_lines_s,
)
