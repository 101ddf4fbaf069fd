"""The learned model: boosted trees over statements, fitted again as measurements come in.

The score of a program is the sum of the trees' values over its statements, so that one model
serves programs of any number of statements, and all operators.

Before there are measurements, and where LightGBM cannot load, its prior answers: trees that were
trained before, or the roofline.  Later the trees start from the prior's scores, which count for
half as much with each `half_life` samples.

Source:   Zheng et al., Ansor, OSDI 2020, section 5.2.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.tuning.models.forest import Forest
from tensorwright.tuning.models.losses import Column, Loss, PairwiseLogistic, WeightedSquares
from tensorwright.tuning.models.protocol import CostModel, Features, Sample, Scores
from tensorwright.tuning.models.random_model import RandomModel
from tensorwright.tuning.models.saved_model import SavedModel, forest_scores
from tensorwright.tuning.models.settings import BoostedSettings, LossKind
from tensorwright.tuning.models.training import TrainingSet, training_set

TREES_MODULE = "tensorwright.tuning.models.lightgbm_trees"

Fit = Callable[[TrainingSet, Loss, Column, BoostedSettings], Forest]


@dataclass(frozen=True, slots=True)
class RefitPolicy:
    """When trees are fitted again, and on how much.

    A fit takes time in proportion to its samples, a measurement a constant one: so fitting takes a
    bounded share of the time, some 5 percent, if it waits for a share of new samples.

    first      so many samples are needed at all      least  new samples of a refit
    growth     new samples of a refit, as a share of those that there were
    half_life  with so many samples the prior counts half
    most       so many samples are kept: the first go first
    """

    first: int = 16
    least: int = 8
    growth: float = 0.06
    half_life: float = 64.0
    most: int = 8192

    def is_due(self, fitted: int, new: int) -> bool:
        """Whether to fit again, after `fitted` samples at the last fit and `new` ones since."""
        if fitted + new < self.first:
            return False
        return new >= self.least and new >= self.growth * fitted


class BoostedModel:
    """Learns from samples of any workloads; scores of different workloads do not compare.

    prior      answers before there are samples; random where None
    on_notice  told once, in a sentence, if LightGBM cannot be used; a warning where None
    """

    def __init__(
        self,
        settings: BoostedSettings | None = None,
        prior: CostModel | None = None,
        policy: RefitPolicy | None = None,
        on_notice: Callable[[str], None] | None = None,
    ) -> None:
        self.settings = settings or BoostedSettings()
        self.policy = policy or RefitPolicy()
        self.samples: list[Sample] = []
        self.fits = 0
        self.notice = ""
        self._prior: CostModel = prior or RandomModel(self.settings.seed)
        self._on_notice = on_notice or _warn
        self._forest: Forest | None = None
        self._weight = 1.0
        self._fitted = 0
        self._new = 0

    @property
    def is_trained(self) -> bool:
        """Whether own measurements count yet."""
        return self._forest is not None

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        if self._forest is None:
            return self._prior.predict(features)
        found = forest_scores(self._forest, features)
        if self._weight:
            found += self._weight * self._prior.predict(features)
        return found

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
        """Fit now, whatever the policy says; False where there is nothing to fit, or no LightGBM.

        The first fit imports LightGBM, which takes a second or two.
        """
        fit = self._find_fit() if self.samples else None
        if fit is None:
            return False
        self._fitted, self._new = self._fitted + self._new, 0
        weight = self._prior_weight()
        data = training_set(self.samples)
        margin = np.zeros(len(data.counts))
        if weight:
            margin += weight * _prior_scores(self._prior, data)
        self._forest = fit(data, make_loss(data, self.settings), margin, self.settings)
        self._weight = weight
        self.fits += 1
        return True

    def save(self, path: str | os.PathLike[str], hardware: str) -> bool:
        """Write the trees to a file, without the prior; False where there are none yet.

        They are fitted anew, on all samples, without the prior's scores.
        Raises:  OutputError.
        """
        fit = self._find_fit() if self.samples else None
        if fit is None:
            return False
        data = training_set(self.samples)
        margin = np.zeros(len(data.counts))
        forest = fit(data, make_loss(data, self.settings), margin, self.settings)
        SavedModel(forest, self.settings.loss, hardware, len(self.samples)).save(path)
        return True

    def _prior_weight(self) -> float:
        """How much the prior counts; scores that mean something else do not count at all."""
        match self._prior:
            case RandomModel():
                return 0.0
            case SavedModel(loss=loss):
                is_alike = loss is self.settings.loss
            case _:
                is_alike = self.settings.loss is LossKind.PAIRS
        weight = 0.5 ** (self._fitted / self.policy.half_life)
        return float(weight) if is_alike and weight >= 0.05 else 0.0

    def _find_fit(self) -> Fit | None:
        """The function that fits; None, with a notice, where LightGBM or libgomp is missing."""
        if self.notice:
            return None
        try:
            fit: Fit = importlib.import_module(TREES_MODULE).fit
        except (ImportError, OSError) as error:
            self.notice = (
                f"the cost model learns nothing, because LightGBM cannot be loaded ({error}): "
                "candidates are judged by the analytic model alone; install lightgbm and libgomp"
            )
            self._on_notice(self.notice)
            return None
        return fit


def make_loss(data: TrainingSet, settings: BoostedSettings) -> Loss:
    """The loss that the settings name."""
    match settings.loss:
        case LossKind.PAIRS:
            return PairwiseLogistic(data, seed=settings.seed)
        case LossKind.SQUARES:
            return WeightedSquares(data)


def _prior_scores(prior: CostModel, data: TrainingSet) -> Column:
    """The prior's scores of the programs of a training set (programs,)."""
    found = np.zeros(len(data.counts))
    starts = np.cumsum(data.counts) - data.counts
    for count in np.unique(data.counts):
        places = np.nonzero(data.counts == count)[0]
        rows = starts[places][:, None] + np.arange(count)
        found[places] = prior.predict(data.rows[rows])
    return found


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)
