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
from tensorwright.tuning.models import BoostedModel, CostModel, SavedModel, load_model, make_model

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

    def keep(self, model: BoostedModel, before: SavedModel | None) -> bool:
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


@dataclass(frozen=True, slots=True)
class SessionModel:
    """The model of a session, and where it comes from and goes to; nowhere where `file` is None."""

    learned: BoostedModel
    file: ModelFile | None = None
    before: SavedModel | None = None

    def keep(self) -> bool:
        """As `ModelFile.keep`."""
        return self.file is not None and self.file.keep(self.learned, self.before)


def open_model(
    target: Target,
    threads: int,
    seed: int,
    file: ModelFile | None,
    prior: CostModel | None = None,
) -> SessionModel:
    """The model that a session starts with; `prior` as of `make_model`."""
    before = file.load() if file is not None else None
    return SessionModel(make_model(target, threads, seed, before, prior=prior), file, before)


def model_file_of(
    store: RecordStore, target: Target, threads: int, hardware: str
) -> ModelFile | None:
    """The file beside a store; None for a store in memory, and where the knob says no.

    records.sqlite has records.model-<machine>-<digest of the target>-<threads>t.json
    """
    if not knobs.COST_MODEL.get() or not isinstance(store, SqliteStore | JsonLinesStore):
        return None
    place = Path(store.path).absolute()
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    name = f"{place.stem}.model-{hardware}-{digest}-{threads}t.json"
    return ModelFile(place.with_name(name), hardware)
