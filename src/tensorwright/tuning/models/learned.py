"""Models that learn in a session: fitted again as measurements come in, from a prior that fades.

A fitted `Ranker` scores a program: trees that are added up over its statements (`trees/`), or a
network of the laboratory over its loops.

Before there are measurements, and if the library that fits cannot load, the prior answers: a model
trained before, or the roofline.  Later the fit starts from the prior's scores, times a weight that
fades as `losses.py` says.

Source:   Zheng et al., Ansor, OSDI 2020, section 5.2; Chen et al., AutoTVM, NeurIPS 2018, section
          4, for the old model that fades.

The cost model of a session.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tensorwright.base import CpuTarget, RecordError, Target
from tensorwright.machine import machine_of
from tensorwright.tuning.features import STATEMENT, FeatureSet
from tensorwright.tuning.models.losses import HELD_OUT_WEIGHT, Column, Fading, RefitPolicy
from tensorwright.tuning.models.protocol import (
    BoostedSettings,
    CostModel,
    Features,
    FitSettings,
    LossKind,
    Sample,
    Scores,
    TrainingSet,
    training_set,
)
from tensorwright.tuning.models.roofline import BlendedModel, RandomModel, RooflineModel
from tensorwright.tuning.models.saved_model import Ranker, SavedModel, load_model

_LEAST_WEIGHT = 0.05


class Fit(Protocol):
    """Fits a ranker to a training set: equal arguments give equal rankers.

    margin  (programs,): where the scores start from
    """

    def __call__(self, data: TrainingSet, margin: Column, settings: FitSettings) -> Ranker:
        """The ranker whose scores, added to the margin, make the loss of the settings small."""


class LearnedModel:
    """Learns from samples of any workloads; scores of different workloads do not compare.

    settings   how it is fitted, and by what module
    prior      answers before there are samples; random if None
    features   in what columns programs are described
    on_notice  told once, in a sentence, if the library that fits is missing; a warning if None
    """

    def __init__(
        self,
        settings: FitSettings,
        prior: CostModel | None = None,
        policy: RefitPolicy | None = None,
        on_notice: Callable[[str], None] | None = None,
        features: FeatureSet = STATEMENT,
    ) -> None:
        self.settings = settings
        self.policy = policy or RefitPolicy()
        self.features = features
        self.samples: list[Sample] = []
        self.fits = 0
        self.notice = ""
        self._prior: CostModel = prior or RandomModel(self.settings.seed)
        self._on_notice = on_notice or _warn
        self._ranker: Ranker | None = None
        self._weight = 1.0
        self._weighed = 0  # the number of samples when the weight was judged
        self._fitted = 0
        self._new = 0

    @property
    def is_trained(self) -> bool:
        """Whether own measurements are used yet."""
        return self._ranker is not None

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        if self._ranker is None:
            return self._prior.predict(features)
        scores = self._ranker.scores(features)
        if self._weight:
            scores += self._weight * self._prior.predict(features)
        return scores

    def observe(self, samples: Sequence[Sample]) -> None:
        """As `CostModel.observe`."""
        self.samples += samples
        self._new += len(samples)
        del self.samples[: max(0, len(self.samples) - self.policy.most)]

    def update(self) -> bool:
        """As `CostModel.update`."""
        if self.notice or not self.policy.is_due(self._fitted, self._new):
            return False
        return self.refit()

    def refit(self) -> bool:
        """Fit now, whatever the policy says; False without samples, or without the library.

        The first fit imports the library, which takes a second or two.
        """
        fit = self._find_fit() if self.samples else None
        if fit is None:
            return False
        self._fitted, self._new = self._fitted + self._new, 0
        data = training_set(self.samples)
        beliefs = np.zeros(len(data.counts))
        if self._is_prior_alike:
            beliefs = prior_scores(self._prior, data)
        self._weight = self._prior_weight(data, beliefs, fit)
        margin = self._weight * beliefs
        self._ranker = fit(data, margin, self.settings)
        self.fits += 1
        return True

    def learned(self, hardware: str = "") -> SavedModel | None:
        """The model without the prior, fitted anew on all samples; None without samples.

        hardware  that measured the samples
        """
        fit = self._find_fit() if self.samples and self.features.is_shared else None
        if fit is None:
            return None
        data = training_set(self.samples)
        margin = np.zeros(len(data.counts))
        ranker = fit(data, margin, self.settings)
        return SavedModel(
            ranker, self.settings.loss, hardware, len(self.samples), self.features.name
        )

    def save(self, path: str | os.PathLike[str], hardware: str) -> bool:
        """Write `learned` to a file; False if it is None.  Raises: OutputError."""
        model = self.learned(hardware)
        if model is None:
            return False
        model.save(path)
        return True

    @property
    def _is_prior_alike(self) -> bool:
        """Whether the prior's scores are of the same kind as those of the loss."""
        match self._prior:
            case RandomModel():
                return False
            case SavedModel(loss=loss):
                return (loss is LossKind.SQUARES) == (self.settings.loss is LossKind.SQUARES)
            case _:
                return self.settings.loss is not LossKind.SQUARES

    def _prior_weight(self, data: TrainingSet, beliefs: Column, fit: Fit) -> float:
        """The weight of the prior; 0 if its scores are of another kind."""
        if not self._is_prior_alike:
            return 0.0
        if self.policy.fading is Fading.HELD_OUT:
            if len(data.counts) < self.policy.reweigh * self._weighed:
                return self._weight
            self._weighed = len(data.counts)
            weigh: Callable[..., float] = HELD_OUT_WEIGHT.load()

            def scores(train: TrainingSet, margin: Column, test: TrainingSet) -> Column:
                return _scores_by(fit(train, margin, self.settings).scores, test)

            return weigh(data, beliefs, scores)
        weight = 0.5 ** (self._fitted / self.policy.half_life)
        return float(weight) if weight >= _LEAST_WEIGHT else 0.0

    def _find_fit(self) -> Fit | None:
        """The function that fits; None, with a notice, if its library is missing."""
        if self.notice:
            return None
        try:
            fit: Fit = importlib.import_module(self.settings.module).fit
        except (ImportError, OSError) as error:
            self.notice = self.settings.missing.format(error=error)
            self._on_notice(self.notice)
            return None
        return fit


def prior_scores(prior: CostModel, data: TrainingSet) -> Column:
    """The prior's scores of the programs of a training set (programs,)."""
    return _scores_by(prior.predict, data)


def _scores_by(predict: Callable[[Features], Scores], data: TrainingSet) -> Column:
    """The scores of the programs of a set (programs,), all with equally many rows at once."""
    scores = np.zeros(len(data.counts))
    starts = np.cumsum(data.counts) - data.counts
    for count in np.unique(data.counts):
        programs = np.nonzero(data.counts == count)[0]
        rows = starts[programs][:, None] + np.arange(count)
        scores[programs] = predict(data.rows[rows])
    return scores


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)


_TRAINED_HALF_LIFE = 512.0  # samples: a prior from many workloads outlasts a dozen rounds


def make_model(
    target: Target,
    threads: int,
    seed: int = 0,
    saved: SavedModel | str | os.PathLike[str] | None = None,
    on_notice: Callable[[str], None] | None = None,
    prior: CostModel | None = None,
    settings: FitSettings | None = None,
    features: FeatureSet = STATEMENT,
    fading: Fading = Fading.HALVING,
) -> LearnedModel:
    """The learned model, which starts from a prior, and from a saved model, if any.

    saved      the model or its file, which may be missing
    prior      a model trained on many workloads, which judges statements; None: the roofline.
               Other features have neither
    on_notice  told, in a sentence, if the library that fits is missing; a warning if None
    settings   how it is fitted; boosted trees on pairs if None
    fading     how the prior gives way to own measurements
    Raises:    RecordError for a file that is not a model, or a model for other features.
    """
    half_life = RefitPolicy().half_life if prior is None else _TRAINED_HALF_LIFE
    policy = RefitPolicy(half_life=half_life, fading=fading)
    if features is STATEMENT and isinstance(target, CpuTarget):
        prior = prior or RooflineModel(machine_of(target, threads))
    before: SavedModel | None = None
    if isinstance(saved, SavedModel):
        before = saved
    elif saved is not None and Path(saved).exists():
        before = load_model(saved)
    if before is not None:
        if before.feature_set != features.name:
            judged = f"the features {before.feature_set!r}"
            raise RecordError(
                stage="cost model",
                where=f"model of {before.samples} programs",
                reason=f"it judges {judged}, and not {features.name!r}",
                remedy=f"choose {judged}, or another model to start from",
            )
        is_alike = prior is not None and before.loss is not LossKind.SQUARES
        prior = BlendedModel(before, prior) if prior is not None and is_alike else before
    chosen = settings or BoostedSettings(seed=seed)
    return LearnedModel(chosen, prior, policy, on_notice, features)
