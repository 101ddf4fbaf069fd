"""The cost models of a session, and the guides that they give to its searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorwright.base import Target
from tensorwright.schedule import state_of
from tensorwright.tuning.features import STATEMENT, FeatureSet
from tensorwright.tuning.learning.kept_model import ModelFile
from tensorwright.tuning.learning.options import Learning
from tensorwright.tuning.models import CostModel, LearnedModel, SavedModel, load_model, make_model
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.model_guide import ModelGuide
from tensorwright.tuning.task import Task


class LearnedGuides:
    """Makes the guides of the tasks of a session.

    make_model   the model of a task; the same one for all, where features are shared
    """

    def __init__(
        self, make_model: Callable[[], CostModel], features: FeatureSet, target: Target
    ) -> None:
        self._make_model = make_model
        self._features = features
        self._target = target

    def __call__(self, task: Task, space: Space, seed: int) -> ModelGuide:
        """The guide of a task."""
        workload = task.workload
        source = self._features.open(state_of(workload), self._target, space)
        return ModelGuide(workload.key, space, source, self._make_model())


@dataclass(frozen=True, slots=True)
class SessionLearning:
    """The guides of a session, and what it keeps at its end.

    shared   the model of all tasks; None where each has its own, of which nothing is kept
    file     where the shared model goes; nowhere where None
    before   what the session started from
    """

    make_guide: LearnedGuides
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
) -> SessionLearning:
    """What a session learns with.

    file    where earlier sessions kept what they learned     prior   as of `make_model`; it judges
                                                                      statements, and nothing else
    Raises:  RecordError for a model to start from that cannot be read, or is for other features.
    """
    features = learning.feature_set
    file = file if features.is_shared else None
    before = file.load() if file is not None else None
    start = load_model(learning.start) if learning.start is not None else before

    def make() -> LearnedModel:
        return make_model(
            target,
            threads,
            seed,
            start,
            prior=prior if features is STATEMENT else None,
            settings=learning.settings(seed),
            features=features,
            fading=learning.fading,
        )

    if not features.is_shared:
        return SessionLearning(LearnedGuides(make, features, target))
    model = make()
    return SessionLearning(LearnedGuides(lambda: model, features, target), model, file, before)
