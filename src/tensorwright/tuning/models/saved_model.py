"""Trained trees as a file: plain JSON, written whole or not at all.

    {"kind": "tensorwright cost model", "schema": 1, "tool": "0.1.0", "features": "9f3c...",
     "loss": "pairs", "hardware": "x86_64-2c-...", "samples": 1800, "trees": [...]}

`features` is a digest of the names of the features in order: trees that ask for others are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensorwright.base import RecordError, write_atomically
from tensorwright.records import TOOL_VERSION
from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models.forest import Forest
from tensorwright.tuning.models.protocol import Features, Sample, Scores
from tensorwright.tuning.models.settings import LossKind

KIND = "tensorwright cost model"
SCHEMA = 1
FEATURE_DIGEST = hashlib.sha256("\n".join(FEATURE_NAMES).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """Trees that were trained before: a cost model that learns nothing more.

    loss      what they were trained for     hardware  where their samples were measured
    samples   how many they were trained on
    """

    forest: Forest
    loss: LossKind
    hardware: str
    samples: int

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        return forest_scores(self.forest, features)

    def observe(self, samples: Sequence[Sample]) -> None:
        """Nothing is learned."""

    def update(self) -> bool:
        """Nothing changes."""
        return False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file.  Raises: OutputError."""
        fields = {
            "kind": KIND,
            "schema": SCHEMA,
            "tool": TOOL_VERSION,
            "features": FEATURE_DIGEST,
            "loss": self.loss.value,
            "hardware": self.hardware,
            "samples": self.samples,
            "trees": self.forest.to_data(),
        }
        write_atomically(path, json.dumps(fields, allow_nan=False))


def forest_scores(forest: Forest, features: Features) -> Scores:
    """The sum over the statements: (programs, statements, features) -> (programs,)."""
    found = np.zeros(len(features))
    for statement in range(features.shape[1]):
        found += forest.values(features[:, statement])
    return found


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read what `save` wrote.

    Raises:  RecordError for a file that cannot be read, is corrupt, comes from a newer
             tensorwright, or was trained on another list of features.
    """
    fields = _read(path)
    if fields.get("kind") != KIND:
        raise _error(path, "it is not a cost model")
    if fields.get("schema") != SCHEMA:
        raise _error(path, f"schema {fields.get('schema')!r}; this version reads {SCHEMA}")
    if fields.get("features") != FEATURE_DIGEST:
        reason = f"it was trained on another list of features by version {fields.get('tool')!r}"
        raise _error(path, reason)
    losses = [kind.value for kind in LossKind]
    loss, hardware, samples = (fields.get(name) for name in ("loss", "hardware", "samples"))
    if loss not in losses or not isinstance(hardware, str) or type(samples) is not int:
        raise _error(path, "a field is missing, or is not what it should be")
    try:
        forest = Forest.from_data(fields.get("trees"))
    except RecordError as error:
        raise _error(path, f"{error.where}: {error.reason}") from None
    if forest.most_feature >= len(FEATURE_NAMES):
        raise _error(path, "it asks for a feature that does not exist")
    return SavedModel(forest, LossKind(loss), hardware, samples)


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        fields = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise _error(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _error(path, f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _error(path, "it is not a cost model")
    return fields


def _error(path: str | os.PathLike[str], reason: str) -> RecordError:
    return RecordError(
        stage="cost model",
        where=f"file {path}",
        reason=reason,
        remedy="remove the file; the model is trained again from records",
    )
