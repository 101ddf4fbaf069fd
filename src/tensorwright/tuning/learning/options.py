"""What a session learns with, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tensorwright.base import LaboratoryPart, UsageError, unknown_name
from tensorwright.tuning.features import STATEMENT, FeatureSet, feature_set
from tensorwright.tuning.models import BoostedSettings, Fading, FitSettings, LossKind, loss_maker
from tensorwright.tuning.models.fading import HELD_OUT_WEIGHT

_TREES = "trees"
_EMBEDDING = "embedding"
MODELS = tuple(f"{kind}-{loss.value}" for kind in (_TREES, _EMBEDDING) for loss in LossKind)
"""By the ranker that is fitted, and by its loss."""

DEFAULT_MODEL = f"{_TREES}-{LossKind.PAIRS.value}"


@dataclass(frozen=True, slots=True)
class RecordedStart:
    """Start from what was measured of other workloads.

    path   of the record store; the session's own if None
    """

    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Learning:
    """How a session learns; the defaults did best (`benchmarks/cost_models.py`).

    features   name of a feature set (`feature_set.py`)
    model      one of `MODELS`
    fading     how what was known before gives way to own measurements
    start      a file with a model to start from, or records of other workloads to fit one to; what
               earlier sessions kept if None

    Raises:  UsageError for unknown names, a model that reads other features, and records of other
             workloads for features of one space; MachineError for what is part of the laboratory,
             where that is not installed.
    """

    features: str = STATEMENT.name
    model: str = DEFAULT_MODEL
    fading: Fading = Fading.HALVING
    start: Path | RecordedStart | None = None

    def __post_init__(self) -> None:
        feature_set(self.features)
        if self.model not in MODELS:
            where, reason = f"model {self.model!r}", "there is no cost model of this name"
            raise unknown_name("tune", where, reason, self.model, MODELS)
        settings = self.settings(0)
        loss_maker(settings.loss)
        if self.fading is Fading.HELD_OUT:
            HELD_OUT_WEIGHT.load()
        if settings.reads not in ("", self.features):
            raise UsageError(
                stage="tune",
                where=f"model {self.model!r}",
                reason=f"it reads trees of loops, and not the features {self.features!r}",
                remedy=f"choose the features {settings.reads!r}",
            )
        if isinstance(self.start, RecordedStart) and not self.feature_set.is_shared:
            raise UsageError(
                stage="tune",
                where=f"features {self.features!r}",
                reason="they describe programs of one workload, and say nothing about others",
                remedy=f"choose the features {STATEMENT.name!r} to start from records",
            )

    @property
    def feature_set(self) -> FeatureSet:
        """How programs are described."""
        return feature_set(self.features)

    @property
    def is_usual(self) -> bool:
        """Whether features and model are those of sessions that say nothing."""
        return self.features == STATEMENT.name and self.model == DEFAULT_MODEL

    def settings(self, seed: int) -> FitSettings:
        """How the model is fitted."""
        kind, _, loss = self.model.partition("-")
        if kind == _TREES:
            return BoostedSettings(loss=LossKind(loss), seed=seed)
        part = LaboratoryPart(f"model {self.model!r}", "cost_models", "NetworkSettings")
        settings: FitSettings = part.load()(loss=LossKind(loss), seed=seed)
        return settings


USUAL = Learning()
"""The learning of sessions without options."""
