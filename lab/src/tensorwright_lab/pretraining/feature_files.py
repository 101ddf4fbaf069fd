"""The measured programs of a network as plain arrays: a file of NumPy's, nothing is unpickled.

Features take a while to compute and do not depend on the machine: they are kept beside the records.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError, write_atomically
from tensorwright.tuning.datasets import Dataset
from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models import Features


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredWorkload:
    """The programs of one workload, measured under one set of conditions.

    key, name     of the workload              family       of the network that it is from
    features      (statements of all programs, features)
    counts        (programs,): how many statements each has
    times_s       (programs,)                  is_censored  (programs,): dropped early
    default       number of the program by rule; -1 where it did not run
    """

    key: str
    name: str
    family: str
    features: Features
    counts: NDArray[np.int64]
    times_s: NDArray[np.float64]
    is_censored: NDArray[np.bool_]
    default: int

    @classmethod
    def of(cls, data: Dataset, key: str, name: str, family: str, default_trace: str) -> Self:
        """From a dataset of one workload, at least one sample."""
        traces = [record.trace for record in data.records]
        return cls(
            key,
            name,
            family,
            np.concatenate([sample.features for sample in data.samples], dtype=np.float32),
            np.array([len(sample.features) for sample in data.samples], np.int64),
            np.array([sample.time_s for sample in data.samples]),
            np.array([sample.is_censored for sample in data.samples]),
            traces.index(default_trace) if default_trace in traces else -1,
        )


_TEXTS = ("key", "name", "family")
_ARRAYS = ("features", "counts", "times_s", "is_censored")


def write_features(path: Path, workloads: Sequence[MeasuredWorkload]) -> None:
    """Write the workloads of one network, whole or not at all.  Raises: OutputError."""
    arrays: dict[str, NDArray[np.generic]] = {
        "defaults": np.array([each.default for each in workloads], np.int64)
    }
    for name in _TEXTS:
        arrays[name] = np.array([getattr(each, name) for each in workloads], np.str_)
    for number, each in enumerate(workloads):
        arrays |= {f"{name}_{number}": getattr(each, name) for name in _ARRAYS}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomically(path, buffer.getvalue())


def read_features(path: Path) -> tuple[MeasuredWorkload, ...]:
    """Read what `write_features` wrote.

    Raises:  RecordError for a file that is damaged or has other features.
    """
    try:
        content = io.BytesIO(path.read_bytes())
        with np.load(content, allow_pickle=False) as file:
            workloads = tuple(_workload(file, number) for number in range(len(file["defaults"])))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _error(path, str(error)) from None
    if any(each.features.shape[1] != len(FEATURE_NAMES) for each in workloads):
        raise _error(path, "it has other features than this version")
    return workloads


def _workload(file: np.lib.npyio.NpzFile, number: int) -> MeasuredWorkload:
    key, name, family = (str(file[text][number]) for text in _TEXTS)
    features, counts, times_s, is_censored = (file[f"{name}_{number}"] for name in _ARRAYS)
    default = int(file["defaults"][number])
    return MeasuredWorkload(key, name, family, features, counts, times_s, is_censored, default)


def _error(path: Path, reason: str) -> RecordError:
    return RecordError(
        stage="time model",
        where=f"file {path}",
        reason=reason,
        remedy="remove it; it is made again from the records",
    )
