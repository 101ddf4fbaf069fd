"""How a session learns: what describes programs, by which model, and from what it starts.

A trained cost model is kept from session to session in a file beside the record store. A session
starts from the trees of the file. At its end it replaces them by its own if it has enough samples.
With the same file, seed and measurements a session decides the same.

Otherwise a model may be fitted to what a record store has of other workloads. Records hold a
program's decisions and its schedule as text, and the store holds each workload's text: from these
the features are computed again. Features do not depend on the operator, so a convolution's records
help to predict a matrix product.

What a cost model expected of measured candidates is kept as sessions of the record store, each of
one workload on one machine. A record has the measured time only; the expectation exists only while
a candidate is proposed.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tensorwright import base, records
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning import models
from tensorwright.tuning.datasets import dataset
from tensorwright.tuning.features import (
    FEATURE_SETS,
    STATEMENT,
    FeatureSet,
    describes_statements,
    feature_set,
    features_for,
)
from tensorwright.tuning.models.losses import HELD_OUT_WEIGHT
from tensorwright.tuning.space import space_of
from tensorwright.tuning.strategies.sources import ModelGuides

_TREES = "trees"
_EMBEDDING = "embedding"
MODELS = tuple(f"{kind}-{loss.value}" for kind in (_TREES, _EMBEDDING) for loss in models.LossKind)
"""By the ranker that is fitted, and by its loss."""

DEFAULT_MODEL = f"{_TREES}-{models.LossKind.PAIRS.value}"


@dataclass(frozen=True, slots=True)
class RecordedStart:
    """Start from what was measured of other workloads.

    path   of the record store; the session's own if None
    """

    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Learning:
    """How a session learns; the defaults did best (`benchmarks/cost_models.py`).

    Raises:  UsageError for unknown names, a model that reads other features, and records of other
             workloads for features of one space; MachineError for what is part of the laboratory,
             where that is not installed.
    """

    features: str = base.option(
        STATEMENT.name,
        f"The features that describe programs to the cost model: {', '.join(FEATURE_SETS)}.",
        metavar="NAME",
    )
    model: str = base.option(DEFAULT_MODEL, f"The cost model: {', '.join(MODELS)}.", metavar="NAME")
    fading: models.Fading = base.option(
        models.Fading.HALVING, "How the start model gives way to measurements."
    )
    start: Path | RecordedStart | None = base.option(
        None,
        "The start of the cost model: a kept model, or the records of other workloads in a record"
        " store (records: the store in use); by default the model beside the records.",
        metavar="FILE|STORE|records",
    )

    def __post_init__(self) -> None:
        feature_set(self.features)
        if self.model not in MODELS:
            where, reason = f"model {self.model!r}", "there is no cost model of this name"
            raise base.unknown_name("tune", where, reason, self.model, MODELS)
        settings = self.settings(0)
        models.loss_maker(settings.loss)
        if self.fading is models.Fading.HELD_OUT:
            HELD_OUT_WEIGHT.load()
        if settings.reads not in ("", self.features):
            raise base.UsageError(
                stage="tune",
                where=f"model {self.model!r}",
                reason=f"it reads trees of loops, and not the features {self.features!r}",
                remedy=f"choose the features {settings.reads!r}",
            )
        if isinstance(self.start, RecordedStart) and not self.feature_set.is_shared:
            raise base.UsageError(
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

    def settings(self, seed: int) -> models.FitSettings:
        """How the model is fitted."""
        kind, _, loss = self.model.partition("-")
        if kind == _TREES:
            return models.BoostedSettings(loss=models.LossKind(loss), seed=seed)
        part = base.LaboratoryPart(f"model {self.model!r}", "cost_models", "NetworkSettings")
        settings: models.FitSettings = part.load()(loss=models.LossKind(loss), seed=seed)
        return settings


USUAL = Learning()
"""The learning of sessions without options."""


_LEAST_SAMPLES = 64
_LEAST_SHARE = 0.5  # of the samples of the file's trees, to replace them


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The file of the trees of one machine, target and number of threads."""

    path: Path
    hardware: str

    def load(self) -> models.SavedModel | None:
        """The trees; None, after a warning, if the file is damaged or another machine's."""
        if not self.path.exists():
            if self.path.with_suffix(".json").exists():
                self._warn("an earlier version wrote a .json; the session starts without it")
            return None
        try:
            model = models.load_model(self.path)
        except base.RecordError as error:
            self._warn(f"{error.reason}; the session starts without it and will replace it")
            return None
        if model.hardware != self.hardware:
            self._warn(f"it is of the machine {model.hardware}; the session starts without it")
            return None
        return model

    def keep(self, model: models.LearnedModel, before: models.SavedModel | None) -> bool:
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
        except base.TensorwrightError as error:
            self._warn(f"it is not written: {error}")
            return False

    def _warn(self, text: str) -> None:
        warnings.warn(f"cost model {self.path}: {text}", RuntimeWarning, stacklevel=4)


def model_file_of(
    store: records.RecordStore, setting: records.Setting, learning: Learning | None = None
) -> ModelFile | None:
    """The file beside a store; None for a store in memory, and if the knob switches it off.

    records.sqlite has records.model-<machine>-<digest of the target>-<threads>t.npz; for other
    features or another model than usual, their names come before the ending.
    """
    if not base.knobs.COST_MODEL.get() or isinstance(store, records.MemoryStore):
        return None
    store_path = Path(store.path).absolute()
    digest = hashlib.sha256(setting.target.key.encode()).hexdigest()[:8]
    learning = learning or USUAL
    kind = "" if learning.is_usual else f"-{_plain(learning.features)}-{learning.model}"
    name = f"{store_path.stem}.model-{setting.hardware}-{digest}-{setting.threads}t{kind}.npz"
    return ModelFile(store_path.with_name(name), setting.hardware)


def _plain(name: str) -> str:
    """A name of features in characters that every file system takes."""
    return "".join(each if each.isalnum() or each == "-" else "_" for each in name)


MOST_WORKLOADS = 24  # describing one takes 0.1 to 0.5 s, most of it for its space
MOST_PROGRAMS = 1536
_LEAST_PROGRAMS = 8  # of a workload; fewer are useless


@dataclass(frozen=True, slots=True)
class Past:
    """The records of other workloads.

    own   the workloads of the session: it learns their records anyway
    """

    store: records.RecordStore
    own: Sequence[Workload]


def learn_from_records(
    past: Past | None,
    learning: Learning,
    setting: records.Setting,
    seed: int = 0,
    path: Path | None = None,
) -> models.SavedModel | None:
    """A model of the programs that a store has of other workloads, in the same setting.

    path   of another store than that of the session

    Those of the session's operators are taken first, then those that were measured most.  None, and
    a warning, where there are none, or the library that fits is missing.
    """
    if past is None:
        return None
    features = features_for(learning.features, setting.target)
    model = models.LearnedModel(learning.settings(seed), features=features)
    with (
        nullcontext(past.store) if path is None else records.open_store(path, create=False) as store
    ):
        for samples in described(store, past, learning, setting, seed):
            model.observe(samples)
    if not model.samples:
        text = "the records hold no programs of other workloads on this machine, for this target"
        warnings.warn(f"{text} and so many threads: nothing to start from", stacklevel=2)
        return None
    return model.learned(setting.hardware)


def described(
    store: records.RecordStore,
    past: Past,
    learning: Learning,
    setting: records.Setting,
    seed: int,
) -> Iterator[tuple[models.Sample, ...]]:
    """The samples of each workload that teaches; a bounded number, drawn by the seed."""
    groups, target = _groups(store, past, setting), setting.target
    random = np.random.default_rng(seed)
    share = max(_LEAST_PROGRAMS, MOST_PROGRAMS // max(1, len(groups)))
    for workload, programs in groups:
        chosen = random.permutation(len(programs))[:share]
        records = [record for number in np.sort(chosen) for record in programs[number]]
        try:
            state = state_of(workload)
            space = space_of(state, target)
            source = features_for(learning.features, target).open(state, target, space)
            yield dataset(records, space, source).samples
        except base.TensorwrightError:  # of another version: useless here
            continue


def _groups(
    store: records.RecordStore, past: Past, setting: records.Setting
) -> list[tuple[Workload, list[list[records.Record]]]]:
    """The workloads that teach, each with the records of every program that was timed."""
    own = {workload.key for workload in past.own}
    names = {workload.name for workload in past.own}
    by_key: dict[str, dict[str, list[records.Record]]] = {}
    for record in store.query(**setting.fields):
        if record.workload not in own and record.status.is_timed and records.is_current(record):
            programs = by_key.setdefault(record.workload, {})
            programs.setdefault(record.trace, []).append(record)
    texts = {text.workload: text for text in store.workload_texts()}
    groups: list[tuple[Workload, list[list[records.Record]]]] = []
    for key, programs in by_key.items():
        if len(programs) < _LEAST_PROGRAMS or key not in texts:
            continue
        with suppress(base.TensorwrightError):
            groups.append((texts[key].program(), list(programs.values())))
    groups.sort(key=lambda each: (each[0].name not in names, -len(each[1])))
    return groups[:MOST_WORKLOADS]


@dataclass(frozen=True, slots=True)
class SessionLearning:
    """The guides of a session, and what it saves at its end.

    shared   the model of all tasks; None if each has its own, which is not saved
    file     of the shared model; None saves nothing
    before   the model that the session started from
    """

    make_guide: ModelGuides
    shared: models.LearnedModel | None = None
    file: ModelFile | None = None
    before: models.SavedModel | None = None

    def keep(self) -> bool:
        """As `ModelFile.keep`."""
        if self.file is None or self.shared is None:
            return False
        return self.file.keep(self.shared, self.before)


def open_learning(
    learning: Learning,
    setting: records.Setting,
    seed: int,
    file: ModelFile | None = None,
    prior: models.CostModel | None = None,
    past: Past | None = None,
) -> SessionLearning:
    """Open the cost models of a session.

    file    where earlier sessions kept what they learned     prior   as of `make_model`; it judges
                                                                      statements, and nothing else
    past    where records of other workloads are, for a start from them
    Raises:  RecordError for a model to start from that cannot be read, or is for other features.
    """
    target = setting.target
    features = features_for(learning.features, target)
    file = file if features.is_shared else None
    before = file.load() if file is not None else None
    start = before
    match learning.start:
        case Path():
            start = models.load_model(learning.start)
        case RecordedStart(path):
            start = learn_from_records(past, learning, setting, seed, path)

    def make() -> models.LearnedModel:
        return models.make_model(
            target,
            setting.threads,
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


_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for a candidate.

    trace     the candidate, as `trace_digest` names it
    round     of the session that measured it: those of one round come from one state of the model
    seconds   per call.  A model that learns in a session learns ranks: then only quotients within
              a round mean something
    """

    trace: str
    round: int
    seconds: float


def trace_digest(trace: str) -> str:
    """A short name of the text of a trace."""
    return hashlib.sha256(trace.encode()).hexdigest()[:_DIGITS]


def save_predictions(
    store: records.RecordStore,
    workload: str,
    setting: records.Setting,
    predictions: Sequence[Prediction],
) -> None:
    """Add the predictions for candidates of a workload; the first of a candidate stays."""
    earlier = load_predictions(store, workload, setting)
    every = {each.trace: each for each in predictions} | {each.trace: each for each in earlier}
    state = {each.trace: [each.round, each.seconds] for each in every.values()}
    name = f"predictions of {workload}"
    records.keep_fact(store, _about(workload, setting), json.dumps(state), name)


def load_predictions(
    store: records.RecordStore, workload: str, setting: records.Setting
) -> tuple[Prediction, ...]:
    """The predictions for candidates of a workload; none if this version cannot read them."""
    kept = records.kept_fact(store, _about(workload, setting))
    try:
        return tuple(
            Prediction(str(trace), int(number), float(seconds))
            for trace, (number, seconds) in json.loads(kept.state if kept else "{}").items()
        )
    except (ValueError, TypeError, AttributeError):
        return ()


def _about(workload: str, setting: records.Setting) -> dict[str, object]:
    return {"kind": "predictions", **setting.filters(workload)}
