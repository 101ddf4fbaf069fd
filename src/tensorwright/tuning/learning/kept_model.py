"""The trained cost model, kept from session to session in a file beside the record store.

A session starts from the trees of the file. At its end it replaces them by its own if it has enough
samples.  With the same file, seed and measurements a session decides the same.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path

from tensorwright.base import RecordError, Target, TensorwrightError, knobs
from tensorwright.records import JsonLinesStore, RecordStore, SqliteStore
from tensorwright.tuning.learning.options import USUAL, Learning
from tensorwright.tuning.models import LearnedModel, SavedModel, load_model

_LEAST_SAMPLES = 64
_LEAST_SHARE = 0.5  # of the samples of the file's trees, to replace them


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The file of the trees of one machine, target and number of threads."""

    path: Path
    hardware: str

    def load(self) -> SavedModel | None:
        """The trees; None, after a warning, if the file is damaged or another machine's."""
        if not self.path.exists():
            return None
        try:
            model = load_model(self.path)
        except RecordError as error:
            self._warn(f"{error.reason}; the session starts without it and will replace it")
            return None
        if model.hardware != self.hardware:
            self._warn(f"it is of the machine {model.hardware}; the session starts without it")
            return None
        return model

    def keep(self, model: LearnedModel, before: SavedModel | None) -> bool:
        """Save what a session's model has learned, whole or not at all.

        before   the model that the session started from; it stays if it has far more samples

        A file that cannot be written is a warning: the session's results do not depend on it.
        """
        count = len(model.samples)
        started_from = before.samples if before is not None else 0
        if not model.is_trained or count < max(_LEAST_SAMPLES, _LEAST_SHARE * started_from):
            return False
        try:
            return model.save(self.path, self.hardware)
        except TensorwrightError as error:
            self._warn(f"it is not written: {error}")
            return False

    def _warn(self, text: str) -> None:
        warnings.warn(f"cost model {self.path}: {text}", RuntimeWarning, stacklevel=4)


def model_file_of(
    store: RecordStore,
    target: Target,
    threads: int,
    hardware: str,
    learning: Learning | None = None,
) -> ModelFile | None:
    """The file beside a store; None for a store in memory, and if the knob switches it off.

    records.sqlite has records.model-<machine>-<digest of the target>-<threads>t.json; for other
    features or another model than usual, their names come before the ending.
    """
    if not knobs.COST_MODEL.get() or not isinstance(store, SqliteStore | JsonLinesStore):
        return None
    store_path = Path(store.path).absolute()
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    learning = learning or USUAL
    kind = "" if learning.is_usual else f"-{_plain(learning.features)}-{learning.model}"
    name = f"{store_path.stem}.model-{hardware}-{digest}-{threads}t{kind}.json"
    return ModelFile(store_path.with_name(name), hardware)


def _plain(name: str) -> str:
    """A name of features in characters that every file system takes."""
    return "".join(each if each.isalnum() or each == "-" else "_" for each in name)
