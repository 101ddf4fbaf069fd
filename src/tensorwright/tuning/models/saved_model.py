"""What a model learned as a file: plain data, written whole or not at all.

Trees are JSON; a network is a file of NumPy's, in which the same fields are the text `fields` and
each array of weights has its name.  Nothing is unpickled.

    {"kind": "tensorwright cost model", "schema": 1, "tool": "0.1.0", "feature_set": "statement",
     "features": "9f3c...", "loss": "pairs", "hardware": "x86_64-2c-...", "samples": 1800,
     "trees": [...]}

`features` is a digest of the names of the features in order: a model that asks for others is
refused.  A file without `feature_set` is of statements, as older versions wrote them.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tensorwright.base import InternalError, RecordError, UsageError, write_atomically
from tensorwright.records import TOOL_VERSION
from tensorwright.tuning.features import LOOP_TREE, STATEMENT, FeatureSet, feature_set
from tensorwright.tuning.models.embedding.tree_gru import Arrays, TreeGru
from tensorwright.tuning.models.protocol import Features, Sample, Scores
from tensorwright.tuning.models.settings import LossKind
from tensorwright.tuning.models.trees.forest import Forest

KIND = "tensorwright cost model"
SCHEMA = 1
_MAGIC = b"PK"  # of a zip archive, as NumPy writes several arrays


class Ranker(Protocol):
    """What was fitted: gives scores, and is plain data."""

    def scores(self, features: Features) -> Scores:
        """Shapes:  features (programs, rows, columns) -> (programs,)"""


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """What was trained before: a cost model that learns nothing more.

    loss      what it was trained for        hardware      where its samples were measured
    samples   how many it was trained on     feature_set   how programs are described to it
    """

    ranker: Ranker
    loss: LossKind
    hardware: str
    samples: int
    feature_set: str = STATEMENT.name

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        return self.ranker.scores(features)

    def observe(self, samples: Sequence[Sample]) -> None:
        """Nothing is learned."""

    def update(self) -> bool:
        """Nothing changes."""
        return False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file.  Raises: OutputError."""
        fields: dict[str, Any] = {
            "kind": KIND,
            "schema": SCHEMA,
            "tool": TOOL_VERSION,
            "feature_set": self.feature_set,
            "features": feature_set(self.feature_set).digest,
            "loss": self.loss.value,
            "hardware": self.hardware,
            "samples": self.samples,
        }
        match self.ranker:
            case Forest():
                fields["trees"] = self.ranker.to_data()
                write_atomically(path, json.dumps(fields, allow_nan=False))
            case TreeGru():
                write_atomically(path, _packed(fields, self.ranker.arrays))
            case _:
                raise InternalError(
                    stage="cost model", where=f"{self.ranker}", reason="it has no form as a file"
                )


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read what `save` wrote.

    Raises:  RecordError for a file that cannot be read, is corrupt, comes from a newer
             tensorwright, or was trained on another list of features.
    """
    fields, arrays = _read(path)
    if fields.get("kind") != KIND:
        raise _error(path, "it is not a cost model")
    if fields.get("schema") != SCHEMA:
        raise _error(path, f"schema {fields.get('schema')!r}; this version reads {SCHEMA}")
    columns = _columns(fields)
    if columns is None:
        reason = f"it was trained on another list of features by version {fields.get('tool')!r}"
        raise _error(path, reason)
    losses = [kind.value for kind in LossKind]
    loss, hardware, samples = (fields.get(name) for name in ("loss", "hardware", "samples"))
    if loss not in losses or not isinstance(hardware, str) or type(samples) is not int:
        raise _error(path, "a field is missing, or is not what it should be")
    try:
        ranker = _ranker(fields, arrays, columns)
    except RecordError as error:
        raise _error(path, f"{error.where}: {error.reason}") from None
    return SavedModel(ranker, LossKind(loss), hardware, samples, columns.name)


def _columns(fields: Mapping[str, Any]) -> FeatureSet | None:
    """The feature set of a file; None where it is another than this version knows by that name."""
    try:
        found = feature_set(str(fields.get("feature_set", STATEMENT.name)))
    except UsageError:
        return None
    return found if fields.get("features") == found.digest else None


def _ranker(fields: Mapping[str, Any], arrays: Arrays | None, features: FeatureSet) -> Ranker:
    if arrays is not None:
        if features is not LOOP_TREE:
            reason = f"a network reads {LOOP_TREE.name}"
            raise RecordError(stage="cost model", where="network", reason=reason)
        return TreeGru.of_arrays(arrays)
    forest = Forest.from_data(fields.get("trees"))
    if forest.most_feature >= len(features.columns):
        reason = "it asks for a feature that does not exist"
        raise RecordError(stage="cost model", where="tree", reason=reason)
    return forest


def _packed(fields: Mapping[str, Any], arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    text = np.array(json.dumps(fields, allow_nan=False))
    np.savez_compressed(buffer, allow_pickle=False, fields=text, **arrays)
    return buffer.getvalue()


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays | None]:
    """The fields of a file, and its arrays where it is one of NumPy's."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise _error(path, error.strerror or str(error)) from None
    if content.startswith(_MAGIC):
        return _unpacked(path, content)
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _error(path, f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _error(path, "it is not a cost model")
    return fields, None


def _unpacked(path: str | os.PathLike[str], content: bytes) -> tuple[dict[str, Any], Arrays]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        fields = json.loads(str(arrays.pop("fields")))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _error(path, f"it is damaged: {error}") from None
    if not isinstance(fields, dict):
        raise _error(path, "it is not a cost model")
    return fields, arrays


def _error(path: str | os.PathLike[str], reason: str) -> RecordError:
    return RecordError(
        stage="cost model",
        where=f"file {path}",
        reason=reason,
        remedy="remove the file; the model is trained again from records",
    )
