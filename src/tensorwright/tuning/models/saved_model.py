"""A trained model as a file: plain data, written whole or not at all.

Trees are JSON, a network is an `ArrayFile` with the same fields.  Nothing is unpickled.

    {"kind": "tensorwright cost model", "schema": 1, "tool": "0.1.0", "feature_set": "statement",
     "features": "9f3c...", "loss": "pairs", "hardware": "x86_64-2c-...", "samples": 1800,
     "trees": [...]}

`features` is a digest of the names of the features in order: a model that asks for others is
refused.  A file without `feature_set` is of statements, as older versions wrote them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tensorwright.base import (
    InternalError,
    LaboratoryPart,
    RecordError,
    UsageError,
    write_atomically,
)
from tensorwright.records import TOOL_VERSION
from tensorwright.tuning.features import STATEMENT, FeatureSet, feature_set
from tensorwright.tuning.models.array_file import ArrayFile, Arrays
from tensorwright.tuning.models.protocol import Features, Sample, Scores
from tensorwright.tuning.models.settings import LossKind
from tensorwright.tuning.models.trees.forest import Forest

FILE = ArrayFile("cost model", 1, "remove the file; the model is trained again from records")
_MAGIC = b"PK"  # of a zip archive, as NumPy writes several arrays
_NETWORK = LaboratoryPart("a cost model that is a network", "cost_models", "read_network")


class Ranker(Protocol):
    """A fitted ranker: it gives scores, and is plain data."""

    def scores(self, features: Features) -> Scores:
        """Shapes:  features (programs, rows, columns) -> (programs,)"""


@runtime_checkable
class ArrayRanker(Ranker, Protocol):
    """A ranker that is kept as arrays: a network."""

    @property
    def arrays(self) -> Arrays:
        """Its weights by name."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """A trained model, which learns nothing more.

    loss      of its training                hardware      that measured its samples
    samples   their number                   feature_set   how programs are described to it
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
            "feature_set": self.feature_set,
            "features": feature_set(self.feature_set).digest,
            "loss": self.loss.value,
            "hardware": self.hardware,
            "samples": self.samples,
        }
        match self.ranker:
            case Forest():
                about = {"kind": FILE.kind, "schema": FILE.schema, "tool": TOOL_VERSION}
                fields["trees"] = self.ranker.to_data()
                write_atomically(path, json.dumps(about | fields, allow_nan=False))
            case ArrayRanker():
                FILE.save(path, fields, self.ranker.arrays)
            case _:
                raise InternalError(
                    stage="cost model",
                    where=f"{self.ranker}",
                    reason="it cannot be written to a file",
                    remedy="give it a property `arrays`: its weights by name",
                )


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read what `save` wrote.

    Raises:  RecordError for a file that cannot be read, is corrupt, comes from a newer
             tensorwright, or was trained on another list of features; MachineError for a network
             without the laboratory.
    """
    fields, arrays = _read(path)
    if fields.get("kind") != FILE.kind:
        raise FILE.fault(path, "it is not a cost model")
    if fields.get("schema") != FILE.schema:
        raise FILE.fault(path, f"schema {fields.get('schema')!r}; this version reads {FILE.schema}")
    columns = _columns(fields)
    if columns is None:
        reason = f"it was trained on another list of features by version {fields.get('tool')!r}"
        raise FILE.fault(path, reason)
    losses = [kind.value for kind in LossKind]
    loss, hardware, samples = (fields.get(name) for name in ("loss", "hardware", "samples"))
    if loss not in losses or not isinstance(hardware, str) or type(samples) is not int:
        raise FILE.fault(path, "a field is missing, or is not what it should be")
    try:
        ranker = _ranker(fields, arrays, columns)
    except RecordError as error:
        raise FILE.fault(path, f"{error.where}: {error.reason}") from None
    return SavedModel(ranker, LossKind(loss), hardware, samples, columns.name)


def _columns(fields: Mapping[str, Any]) -> FeatureSet | None:
    """The feature set of a file; None if this version has another one of that name."""
    try:
        features = feature_set(str(fields.get("feature_set", STATEMENT.name)))
    except UsageError:
        return None
    return features if fields.get("features") == features.digest else None


def _ranker(fields: Mapping[str, Any], arrays: Arrays | None, features: FeatureSet) -> Ranker:
    if arrays is not None:
        network: Ranker = _NETWORK.load()(arrays, features)
        return network
    forest = Forest.from_data(fields.get("trees"))
    if forest.most_feature >= len(features.columns):
        reason = "it asks for a feature that does not exist"
        raise RecordError(stage="cost model", where="tree", reason=reason)
    return forest


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays | None]:
    """The fields of a file, and its arrays if it is one of NumPy's."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FILE.fault(path, error.strerror or str(error)) from None
    if content.startswith(_MAGIC):
        return FILE.load(path)
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FILE.fault(path, f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise FILE.fault(path, "it is not a cost model")
    return fields, None
