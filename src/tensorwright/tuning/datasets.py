"""From records to samples for a cost model.

A record whose decisions are those of a sketch of its space gets its features together with the
others of that sketch, as columns; any other from the loop nest that its trace lowers to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tensorwright.base import TensorwrightError
from tensorwright.records import Record, Status
from tensorwright.schedule import parse_trace
from tensorwright.tuning.features import FeatureSource
from tensorwright.tuning.models import Features, Sample
from tensorwright.tuning.space.sketch import Space


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples of a workload, each with its record, and the number of useless records.

    skipped  their traces do not replay: another version wrote them
    """

    samples: tuple[Sample, ...]
    records: tuple[Record, ...]
    skipped: int = 0


def dataset(records: Iterable[Record], space: Space, featurizer: FeatureSource) -> Dataset:
    """The timed records of one workload as samples, each trace once, in the order of the records.

    The fastest complete time of a trace counts, because other load only adds time.
    """
    kept = _one_each(records)
    features: dict[str, Features] = {}
    others: list[Record] = []
    by_sketch: dict[int, tuple[list[Record], list[tuple[int, ...]]]] = {}
    for record in kept:
        match = space.locate(record.trace, dict(record.decisions))
        if match is None:
            others.append(record)
            continue
        number, genes = match
        members, rows = by_sketch.setdefault(number, ([], []))
        members.append(record)
        rows.append(genes)
    for number, (members, rows) in by_sketch.items():
        sketch = space.sketches[number]
        described = featurizer.of_sketch(sketch, np.array(rows, np.int64).reshape(len(rows), -1))
        features |= {record.trace: one for record, one in zip(members, described, strict=True)}
    for record in others:
        with suppress(TensorwrightError):  # it does not replay
            features[record.trace] = featurizer.of_trace(parse_trace(record.trace))[0]
    usable = [record for record in kept if record.trace in features]
    samples = tuple(
        Sample(
            record.workload,
            features[record.trace],
            min(record.times_s),
            record.status is Status.CENSORED,
        )
        for record in usable
    )
    return Dataset(samples, tuple(usable), len(kept) - len(usable))


def _one_each(records: Iterable[Record]) -> Sequence[Record]:
    """The best timed record of each trace; a censored one only if there is no other."""
    best: dict[str, Record] = {}
    for record in records:
        if not record.status.is_timed:
            continue
        fastest = best.get(record.trace)
        if fastest is None or _rank(record) < _rank(fastest):
            best[record.trace] = record
    return tuple(best.values())


def _rank(record: Record) -> tuple[bool, float]:
    return record.status is Status.CENSORED, min(record.times_s)
