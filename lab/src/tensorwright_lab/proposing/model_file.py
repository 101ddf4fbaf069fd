"""A proposing model as a file: plain arrays, as those of the time model.

    about      {"kind": "tensorwright proposing model", ..., "columns": "9f3c...",
               "statistics": {...}}
    starts, features, children, values     see `Forest`

`columns` is a digest of the names of the rows' columns: trees that ask for others are refused.
"""

from __future__ import annotations

import os

from tensorwright.base import RecordError
from tensorwright.tuning.models import Forest
from tensorwright.tuning.time_model import ArrayFile
from tensorwright_lab.proposing.decisions import COLUMN_DIGEST, COLUMNS
from tensorwright_lab.proposing.model import ProposingModel

FILE = ArrayFile("proposing model", 1, "train it again, or search without it")


def save_proposing_model(model: ProposingModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; equal models give equal files.  Raises: OutputError."""
    fields = {"columns": COLUMN_DIGEST, "statistics": dict(model.statistics)}
    FILE.save(path, fields, model.trees.arrays)


def load_proposing_model(path: str | os.PathLike[str]) -> ProposingModel:
    """Read what `save_proposing_model` wrote.

    Raises:  RecordError for a file that cannot be read, is damaged, comes from another version, or
             was trained on other columns.
    """
    about, arrays = FILE.load(path)
    if about.get("columns") != COLUMN_DIGEST:
        reason = f"it was trained on other columns, by version {about.get('tool')!r}"
        raise FILE.fault(path, reason)
    try:
        trees = Forest.of_arrays(arrays, len(COLUMNS), is_rounded=True)
        return ProposingModel(trees, about["statistics"])
    except RecordError as error:
        raise FILE.fault(path, f"{error.where}: {error.reason}") from None
    except (KeyError, TypeError) as error:
        reason = f"a field is missing, or is not what it should be: {error}"
        raise FILE.fault(path, reason) from None
