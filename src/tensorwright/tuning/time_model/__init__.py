"""The time model: seconds of a program, on any machine, before anything was measured.

Read `model.py` first: what is predicted, and how; `rows.py` has the inputs.
"""

from tensorwright.tuning.models.array_file import ArrayFile
from tensorwright.tuning.models.trees.compact_trees import CompactTrees
from tensorwright.tuning.models.trees.tree_walk import TreeWalk
from tensorwright.tuning.time_model.launch_times import launch_seconds
from tensorwright.tuning.time_model.model import Policy, Prediction, TimeModel
from tensorwright.tuning.time_model.model_file import load_time_model, save_time_model
from tensorwright.tuning.time_model.models_by_kind import (
    TIME_MODELS,
    AnyTimeModel,
    PredictedTime,
    time_model_of,
)
from tensorwright.tuning.time_model.pretrained import pretrained_model
from tensorwright.tuning.time_model.rows import ROW_NAMES, program_scores, rows_of
from tensorwright.tuning.time_model.shared_lines import line_transfers, shared_lines_s
from tensorwright.tuning.time_model.trained_keys import TrainedKeys

__all__ = [
    "ROW_NAMES",
    "TIME_MODELS",
    "AnyTimeModel",
    "ArrayFile",
    "CompactTrees",
    "Policy",
    "PredictedTime",
    "Prediction",
    "TimeModel",
    "TrainedKeys",
    "TreeWalk",
    "launch_seconds",
    "line_transfers",
    "load_time_model",
    "pretrained_model",
    "program_scores",
    "rows_of",
    "save_time_model",
    "shared_lines_s",
    "time_model_of",
]
