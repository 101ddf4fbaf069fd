"""Trained models as files of plain arrays (.npz, nothing pickled), whole or not at all.

about   JSON as bytes: what kind of model, which schema, by which version, what the model says
        of itself, and `content`, a digest of everything else: so a damaged file is refused
...     the arrays, of the types that they must have

A cost model says of itself:

    {"kind": "tensorwright cost model", "schema": 1, "tool": "0.1.0", "feature_set": "statement",
     "features": "9f3c...", "loss": "pairs", "hardware": "x86_64-2c-...", "samples": 1800}

`features` is a digest of the names of the features in order: a model that asks for others is
refused.  Its arrays are those of a `Forest`, or those of a network of the laboratory.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.records import TOOL_VERSION
from tensorwright.tuning.features import STATEMENT, FeatureSet, feature_set
from tensorwright.tuning.models.protocol import CostModel, Features, LossKind, Scores
from tensorwright.tuning.models.trees.forest import Forest

Arrays = Mapping[str, NDArray[Any]]

_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,  # a file of one array, which is not an archive
    EOFError,
    OverflowError,
    RuntimeError,  # a damaged header may ask for a password, or another compression
    SyntaxError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """A kind of file.

    name     what it holds: "time model"     schema   the version of its form
    remedy   for a file that is refused
    """

    name: str
    schema: int
    remedy: str

    @property
    def kind(self) -> str:
        """The kind that such a file states."""
        return f"tensorwright {self.name}"

    def save(self, path: str | os.PathLike[str], fields: Mapping[str, Any], arrays: Arrays) -> None:
        """Write one; equal contents give equal files.  Raises: OutputError."""
        about = {"kind": self.kind, "schema": self.schema, "tool": TOOL_VERSION, **fields}
        about["content"] = _digest(about, arrays)
        text = json.dumps(about, allow_nan=False, sort_keys=True).encode()
        buffer = io.BytesIO()
        everything: dict[str, Any] = {"about": np.frombuffer(text, np.uint8), **arrays}
        np.savez_compressed(buffer, **everything)
        base.write_atomically(path, buffer.getvalue())

    def load(self, path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
        """The fields of a file, and its arrays.

        Raises:  RecordError for a file that cannot be read, is damaged or of another kind.
        """
        try:
            content = Path(path).read_bytes()
            if content.startswith(b"{"):
                raise self.fault(path, "it is JSON, as an earlier version wrote it")
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(arrays.pop("about").tobytes())
        except OSError as error:
            raise self.fault(path, error.strerror or str(error)) from None
        except _UNREADABLE as error:
            raise self.fault(path, f"it cannot be read as one: {error}") from None
        if not isinstance(about, dict) or about.get("kind") != self.kind:
            raise self.fault(path, f"it is no {self.name}")
        if about.get("schema") != self.schema:
            reason = f"schema {about.get('schema')!r}; this version reads {self.schema}"
            raise self.fault(path, reason)
        if about.get("content") != _digest(about, arrays):
            raise self.fault(path, "it is damaged: the digest of its content is another one")
        return about, arrays

    def fault(self, path: str | os.PathLike[str], reason: str) -> base.RecordError:
        """Why a file is refused."""
        return base.RecordError(
            stage=self.name, where=f"file {path}", reason=reason, remedy=self.remedy
        )


def _digest(about: Mapping[str, Any], arrays: Arrays) -> str:
    """A digest of the arrays and of the fields, without the digest itself."""
    told = {name: value for name, value in about.items() if name != "content"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()[:32]


FILE = ArrayFile("cost model", 1, "remove the file; the model is trained again from records")
_OF_TREES = "starts"
_NETWORK = base.LaboratoryPart("a cost model that is a network", "cost_models", "read_network")


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
class SavedModel(CostModel):
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file.  Raises: OutputError."""
        fields: dict[str, Any] = {
            "feature_set": self.feature_set,
            "features": feature_set(self.feature_set).digest,
            "loss": self.loss.value,
            "hardware": self.hardware,
            "samples": self.samples,
        }
        if not isinstance(self.ranker, ArrayRanker):
            raise base.InternalError(
                stage="cost model",
                where=f"{self.ranker}",
                reason="it cannot be written to a file",
                remedy="give it a property `arrays`: its weights by name",
            )
        FILE.save(path, fields, self.ranker.arrays)


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read what `save` wrote.

    Raises:  RecordError for a file that cannot be read, is corrupt, comes from a newer
             tensorwright, or was trained on another list of features; MachineError for a network
             without the laboratory.
    """
    fields, arrays = FILE.load(path)
    columns: FeatureSet | None = None
    with suppress(base.UsageError):
        columns = feature_set(str(fields.get("feature_set", STATEMENT.name)))
    if columns is None or fields.get("features") != columns.digest:
        reason = f"it was trained on another list of features by version {fields.get('tool')!r}"
        raise FILE.fault(path, reason)
    losses = [kind.value for kind in LossKind]
    loss, hardware, samples = (fields.get(name) for name in ("loss", "hardware", "samples"))
    if loss not in losses or not isinstance(hardware, str) or type(samples) is not int:
        raise FILE.fault(path, "a field is missing, or is not what it should be")
    try:
        ranker: Ranker
        if _OF_TREES in arrays:
            ranker = Forest.of_arrays(arrays, len(columns.columns))
        else:
            ranker = _NETWORK.load()(arrays, columns)
    except base.RecordError as error:
        raise FILE.fault(path, f"{error.where}: {error.reason}") from None
    except (KeyError, TypeError) as error:
        raise FILE.fault(
            path, f"an array is missing, or is not what it should be: {error}"
        ) from None
    return SavedModel(ranker, LossKind(loss), hardware, samples, columns.name)
