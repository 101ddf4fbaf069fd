"""The guide by a cost model, through the features of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.base import Target, TensorwrightError
from tensorwright.schedule import state_of
from tensorwright.tuning.features import FeatureSource, OpenSource
from tensorwright.tuning.models import CostModel, Features, Sample
from tensorwright.tuning.population.population import Genes, Population, by_sketch
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.guide import Scores
from tensorwright.tuning.strategies.history import Outcome
from tensorwright.tuning.task import Task


class ModelGuide:
    """A `Guide`: the scores of a model that all tasks of a session share.

    A sketch that cannot be lowered scores minus infinity from then on.
    """

    def __init__(
        self, workload: str, space: Space, features: FeatureSource, model: CostModel
    ) -> None:
        self._workload = workload
        self._space = space
        self._features = features
        self._model = model
        self._broken: set[int] = set()

    def refresh(self) -> None:
        """As `Guide.refresh`."""
        self._model.update()

    def scores(self, population: Population) -> Scores:
        """As `Guide.scores`."""
        scores = np.full(len(population), -np.inf)
        for sketch, rows in by_sketch(population.sketch):
            features = self._of(sketch, population.genes[rows])
            if features is not None:
                scores[rows] = self._model.predict(features)
        return scores

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """As `Guide.learn`."""
        samples: dict[int, Sample] = {}
        numbers = np.array([one.sketch for one in outcomes], np.int32)
        for sketch, rows in by_sketch(numbers):
            features = self._of(sketch, np.array([outcomes[row].genes for row in rows]))
            if features is None:
                continue
            for row, one in zip(rows.tolist(), features, strict=True):
                outcome = outcomes[row]
                samples[row] = Sample(self._workload, one, outcome.time_s, outcome.is_censored)
        if samples:
            self._model.observe([samples[row] for row in sorted(samples)])

    def _of(self, sketch: int, genes: Genes) -> Features | None:
        """The features of programs of one sketch; None if there are none."""
        if sketch in self._broken:
            return None
        chosen = self._space.sketches[sketch]
        try:
            return self._features.of_sketch(chosen, genes[:, : len(chosen.choices)])
        except TensorwrightError:
            self._broken.add(sketch)
            return None


@dataclass(frozen=True, slots=True)
class ModelGuides:
    """Makes the guides of the tasks of a session.

    make_model   the model of a task; the same one for all if features are shared
    open_features   gives the features of the programs of a task
    """

    make_model: Callable[[], CostModel]
    open_features: OpenSource
    target: Target

    def __call__(self, task: Task, space: Space, seed: int) -> ModelGuide:
        """The guide of a task."""
        workload = task.workload
        source = self.open_features(state_of(workload), self.target, space)
        return ModelGuide(workload.key, space, source, self.make_model())
