"""The cost models of a session, and the guides that they give to its searches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tensorwright.base import Target
from tensorwright.tuning.features import describes_statements, features_for
from tensorwright.tuning.learning.kept_model import ModelFile
from tensorwright.tuning.learning.options import Learning, RecordedStart
from tensorwright.tuning.learning.recorded_start import Past, learn_from_records
from tensorwright.tuning.models import CostModel, LearnedModel, SavedModel, load_model, make_model
from tensorwright.tuning.strategies.model_guide import ModelGuides


@dataclass(frozen=True, slots=True)
class SessionLearning:
    """The guides of a session, and what it saves at its end.

    shared   the model of all tasks; None if each has its own, which is not saved
    file     of the shared model; None saves nothing
    before   the model that the session started from
    """

    make_guide: ModelGuides
    shared: LearnedModel | None = None
    file: ModelFile | None = None
    before: SavedModel | None = None

    def keep(self) -> bool:
        """As `ModelFile.keep`."""
        if self.file is None or self.shared is None:
            return False
        return self.file.keep(self.shared, self.before)


def open_learning(
    learning: Learning,
    target: Target,
    threads: int,
    seed: int,
    file: ModelFile | None = None,
    prior: CostModel | None = None,
    past: Past | None = None,
) -> SessionLearning:
    """Open the cost models of a session.

    file    where earlier sessions kept what they learned     prior   as of `make_model`; it judges
                                                                      statements, and nothing else
    past    where records of other workloads are, for a start from them
    Raises:  RecordError for a model to start from that cannot be read, or is for other features.
    """
    features = features_for(learning.features, target)
    file = file if features.is_shared else None
    before = file.load() if file is not None else None
    start = before
    match learning.start:
        case Path():
            start = load_model(learning.start)
        case RecordedStart(path):
            start = learn_from_records(past, learning, target, threads, seed, path)

    def make() -> LearnedModel:
        return make_model(
            target,
            threads,
            seed,
            start,
            prior=prior if describes_statements(features) else None,
            settings=learning.settings(seed),
            features=features,
            fading=learning.fading,
        )

    if not features.is_shared:
        return SessionLearning(ModelGuides(make, features.open, target))
    model = make()
    return SessionLearning(ModelGuides(lambda: model, features.open, target), model, file, before)
