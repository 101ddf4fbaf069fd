"""A time model as a file: plain arrays, see `array_file.py`.

    about      JSON as bytes: {"kind": "tensorwright time model", "schema": 1, "tool": "0.1.0",
               "rows": "9f3c...", "content": "77ab...", "policy": {"caution": 0.5, "margin": 0.1},
               "statistics": {...}}
    median_starts, median_features, median_children, median_values     see `CompactTrees`
    upper_starts, ...
    trained_steps   the workloads that it was trained on, see `TrainedKeys`; older files have none

`rows` is a digest of the names of the rows' columns: trees that ask for others are refused.
`content` is one of everything else: so a damaged file is refused, too.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from tensorwright.base import RecordError
from tensorwright.tuning.models.array_file import ArrayFile, Arrays
from tensorwright.tuning.models.trees.compact_trees import CompactTrees
from tensorwright.tuning.time_model.model import Policy, TimeModel
from tensorwright.tuning.time_model.rows import ROW_DIGEST, ROW_NAMES
from tensorwright.tuning.time_model.trained_keys import TrainedKeys

FILE = ArrayFile("time model", 1, "install tensorwright again, or train the model again")
_TRAINED = "trained_steps"


def save_time_model(model: TimeModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; equal models give equal files.  Raises: OutputError."""
    arrays = model.median.arrays("median_") | model.upper.arrays("upper_")
    if model.trained is not None:
        arrays |= {_TRAINED: model.trained.steps}
    fields: dict[str, Any] = {
        "rows": ROW_DIGEST,
        "policy": asdict(model.policy),
        "statistics": dict(model.statistics),
    }
    FILE.save(path, fields, arrays)


def load_time_model(path: str | os.PathLike[str]) -> TimeModel:
    """Read what `save_time_model` wrote.

    Raises:  RecordError for a file that cannot be read, is damaged, comes from another version, or
             was trained on other rows.
    """
    about, arrays = FILE.load(path)
    if about.get("rows") != ROW_DIGEST:
        reason = f"it was trained on other rows, by version {about.get('tool')!r}"
        raise FILE.fault(path, reason)
    try:
        return TimeModel(
            _trees(arrays, "median"),
            _trees(arrays, "upper"),
            Policy(**about["policy"]),
            about["statistics"],
            TrainedKeys.of_steps(arrays[_TRAINED]) if _TRAINED in arrays else None,
        )
    except RecordError as error:
        raise FILE.fault(path, f"{error.where}: {error.reason}") from None
    except (KeyError, TypeError) as error:
        reason = f"a field is missing, or is not what it should be: {error}"
        raise FILE.fault(path, reason) from None


def _trees(arrays: Arrays, forest: str) -> CompactTrees:
    return CompactTrees.of_arrays(arrays, len(ROW_NAMES), f"{forest}_")
