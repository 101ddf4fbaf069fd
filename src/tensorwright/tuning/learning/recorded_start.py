"""A model to start from, fitted to what a record store has of other workloads.

Records hold a program's decisions and its schedule as text, and the store holds each workload's
text: from these the features are computed again.  Features do not depend on the operator, so a
convolution's records help to predict a matrix product.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tensorwright.base import Target, TensorwrightError
from tensorwright.records import Record, RecordStore, is_current, open_store
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning.datasets import dataset, parse_workload
from tensorwright.tuning.features import features_for
from tensorwright.tuning.learning.options import Learning
from tensorwright.tuning.models import LearnedModel, Sample, SavedModel
from tensorwright.tuning.space import space_of

MOST_WORKLOADS = 24  # describing one takes 0.1 to 0.5 s, most of it for its space
MOST_PROGRAMS = 1536
_LEAST_PROGRAMS = 8  # of a workload; fewer are useless


@dataclass(frozen=True, slots=True)
class Past:
    """The records of other workloads.

    hardware   whose records count
    own        the workloads of the session: it learns their records anyway
    """

    store: RecordStore
    hardware: str
    own: Sequence[Workload]


def learn_from_records(
    past: Past | None,
    learning: Learning,
    target: Target,
    threads: int,
    seed: int = 0,
    path: Path | None = None,
) -> SavedModel | None:
    """A model of the programs that a store has of other workloads, in the same setting.

    path   of another store than that of the session

    Those of the session's operators are taken first, then those that were measured most.  None, and
    a warning, where there are none, or the library that fits is missing.
    """
    if past is None:
        return None
    model = LearnedModel(learning.settings(seed), features=features_for(learning.features, target))
    with nullcontext(past.store) if path is None else open_store(path, create=False) as store:
        for samples in described(store, past, learning, target, threads, seed):
            model.observe(samples)
    if not model.samples:
        text = "the records hold no programs of other workloads on this machine, for this target"
        warnings.warn(f"{text} and so many threads: nothing to start from", stacklevel=2)
        return None
    return model.learned(past.hardware)


def described(
    store: RecordStore,
    past: Past,
    learning: Learning,
    target: Target,
    threads: int,
    seed: int,
) -> Iterator[tuple[Sample, ...]]:
    """The samples of each workload that teaches; a bounded number, drawn by the seed."""
    groups = _groups(store, past, target, threads)
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
        except TensorwrightError:  # of another version: useless here
            continue


def _groups(
    store: RecordStore, past: Past, target: Target, threads: int
) -> list[tuple[Workload, list[list[Record]]]]:
    """The workloads that teach, each with the records of every program that was timed."""
    own = {workload.key for workload in past.own}
    names = {workload.name for workload in past.own}
    by_key: dict[str, dict[str, list[Record]]] = {}
    for record in store.query(target=target.key, hardware=past.hardware, threads=threads):
        if record.workload not in own and record.status.is_timed and is_current(record):
            programs = by_key.setdefault(record.workload, {})
            programs.setdefault(record.trace, []).append(record)
    texts = dict(store.workload_texts())
    groups: list[tuple[Workload, list[list[Record]]]] = []
    for key, programs in by_key.items():
        if len(programs) < _LEAST_PROGRAMS or key not in texts:
            continue
        with suppress(TensorwrightError):
            groups.append((parse_workload(texts[key]), list(programs.values())))
    groups.sort(key=lambda each: (each[0].name not in names, -len(each[1])))
    return groups[:MOST_WORKLOADS]
