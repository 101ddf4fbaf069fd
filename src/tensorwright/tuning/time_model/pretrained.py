"""The time model that comes with the package, or the one that the knob `time_model` names."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path

from tensorwright.base import RecordError, knobs
from tensorwright.tuning.time_model.model import TimeModel
from tensorwright.tuning.time_model.model_file import load_time_model

PACKAGED = Path(__file__).with_name("pretrained.npz")


def pretrained_model() -> TimeModel | None:
    """The model in force; None, after a warning, for a file that cannot be used.

    A package without a model does not warn: schedules are chosen by heuristic, and reports say so.
    """
    own = knobs.TIME_MODEL.get()
    path = own or PACKAGED
    if own is None and not path.exists():
        return None
    try:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
    except OSError:
        stamp = (0, 0)
    return _load(path, stamp)


@lru_cache(maxsize=4)
def _load(path: Path, _stamp: tuple[int, int]) -> TimeModel | None:
    """Read and, if that fails, warn once for every state of the file."""
    try:
        return load_time_model(path)
    except RecordError as error:
        warnings.warn(
            f"time model {path}: {error.reason}; schedules are chosen by heuristic "
            f"({error.remedy})",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
