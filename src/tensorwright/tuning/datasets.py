"""From records to samples for a cost model.

A record whose decisions are those of a sketch of its space gets its features together with the
others of that sketch, as columns; any other from the loop nest that its trace lowers to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.base import TensorwrightError
from tensorwright.records import Record, Status
from tensorwright.schedule import format_trace, parse_trace
from tensorwright.tuning.features import FeatureSource
from tensorwright.tuning.models import Features, Sample
from tensorwright.tuning.space.sketch import Sketch, Space


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
    by_sketch: dict[int, tuple[Sketch, list[Record], list[tuple[int, ...]]]] = {}
    for record in kept:
        match = find_sketch(record, space)
        if match is None:
            others.append(record)
            continue
        sketch, genes = match
        _, members, rows = by_sketch.setdefault(id(sketch), (sketch, [], []))
        members.append(record)
        rows.append(genes)
    for sketch, members, rows in by_sketch.values():
        described = featurizer.of_sketch(sketch, np.array(rows, np.int64).reshape(len(rows), -1))
        features |= {record.trace: one for record, one in zip(members, described, strict=True)}
    for record in others:
        lowered = _from_trace(record.trace, featurizer)
        if lowered is not None:
            features[record.trace] = lowered
    usable = [record for record in kept if record.trace in features]
    samples = tuple(_sample(record, features[record.trace]) for record in usable)
    return Dataset(samples, tuple(usable), len(kept) - len(usable))


def find_sketch(record: Record, space: Space) -> tuple[Sketch, tuple[int, ...]] | None:
    """The sketch of a space that a record's program comes from, and its rows; or None."""
    decisions = dict(record.decisions)
    for sketch in space.sketches:
        genes = sketch.genes_of(decisions)
        if genes is not None and format_trace(sketch.bound(decisions)) == record.trace:
            return sketch, genes
    return None


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


def _sample(record: Record, features: Features) -> Sample:
    is_censored = record.status is Status.CENSORED
    return Sample(record.workload, features, min(record.times_s), is_censored)


def _from_trace(text: str, featurizer: FeatureSource) -> Features | None:
    """The features of a trace; None if it does not replay."""
    try:
        features: Features = featurizer.of_trace(parse_trace(text))[0]
    except TensorwrightError:
        return None
    return features
