"""What the cost model has learned, kept from session to session in a file beside the record store.

A session starts from the trees of the file and, at its end, puts its own in their place if it has
seen enough for that.  With the same file, seed and measurements a session decides the same.
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
_LEAST_SHARE = 0.5  # of the samples behind the trees in the file, to take their place


@dataclass(frozen=True, slots=True)
class ModelFile:
    """Where the trees of one machine, target and number of threads are kept."""

    path: Path
    hardware: str

    def load(self) -> SavedModel | None:
        """The trees; None, after a warning, where the file is damaged or another machine's."""
        if not self.path.exists():
            return None
        try:
            found = load_model(self.path)
        except RecordError as error:
            self._warn(f"{error.reason}; the session starts without it and will replace it")
            return None
        if found.hardware != self.hardware:
            self._warn(f"it is of the machine {found.hardware}; the session starts without it")
            return None
        return found

    def keep(self, model: LearnedModel, before: SavedModel | None) -> bool:
        """Save what a session's model has learned, whole or not at all.

        before   what the session started from: it stays where far more stands behind it
        A file that cannot be written is a warning: the session's results do not depend on it.
        """
        count = len(model.samples)
        known = before.samples if before is not None else 0
        if not model.is_trained or count < max(_LEAST_SAMPLES, _LEAST_SHARE * known):
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
    """The file beside a store; None for a store in memory, and where the knob says no.

    records.sqlite has records.model-<machine>-<digest of the target>-<threads>t.json, for other
    features or another model than usual with their names before the ending.
    """
    if not knobs.COST_MODEL.get() or not isinstance(store, SqliteStore | JsonLinesStore):
        return None
    place = Path(store.path).absolute()
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    learning = learning or USUAL
    kind = "" if learning.is_usual else f"-{_plain(learning.features)}-{learning.model}"
    name = f"{place.stem}.model-{hardware}-{digest}-{threads}t{kind}.json"
    return ModelFile(place.with_name(name), hardware)


def _plain(name: str) -> str:
    """A name of features in characters that every file system takes."""
    return "".join(each if each.isalnum() or each == "-" else "_" for each in name)
