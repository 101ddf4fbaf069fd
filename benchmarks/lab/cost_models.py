"""Measured programs of ten workloads as samples for cost models, by any features.

`measured.jsonl.xz` holds 300 uniform draws of each workload of `tensorwright bench costmodel`, from
one machine; that command measures others (`--records FILE --programs 3000`).
"""

from __future__ import annotations

import lzma
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import CpuTarget, detect_target
from tensorwright.records import Record
from tensorwright.records.record import from_fields, parse_object
from tensorwright.schedule import state_of
from tensorwright.tuning.datasets import dataset
from tensorwright.tuning.features import feature_set
from tensorwright.tuning.models import Sample
from tensorwright.tuning.space import Space, space_of
from tensorwright_lab.bench.costmodel import Case, cases

MEASURED = Path(__file__).parents[1] / "results" / "cost_models" / "measured.jsonl.xz"
THREADS = 2
POPULATION = 512  # programs that are described at once, to time it


@dataclass(frozen=True, slots=True)
class Measured:
    """A workload, its space, and what was measured of it."""

    case: Case
    space: Space
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """The samples of a workload by some features.

    describe_us   processor time to describe a program of a population, its formulas made before
    """

    case: Case
    samples: tuple[Sample, ...]
    describe_us: float


def read_measured(path: Path = MEASURED, target: CpuTarget | None = None) -> tuple[Measured, ...]:
    """The measured programs of every workload that has some."""
    content = path.read_bytes()
    content = lzma.decompress(content) if path.suffix == ".xz" else content
    by_key: dict[str, list[Record]] = {}
    for line in filter(None, content.decode().splitlines()):
        fields = parse_object(line, f"file {path}")
        if fields["kind"] == "record":
            record = from_fields(fields, f"file {path}")
            by_key.setdefault(record.workload, []).append(record)
    chosen = target or detect_target()
    return tuple(
        Measured(
            case,
            space_of(state_of(case.workload), chosen),
            tuple(by_key[case.workload.key]),
        )
        for case in cases(chosen)
        if case.workload.key in by_key
    )


def describe(
    measured: Sequence[Measured], features: str, target: CpuTarget | None = None
) -> tuple[Described, ...]:
    """The samples of workloads by the features of a name."""
    chosen = target or detect_target()
    found = []
    for each in measured:
        state = state_of(each.case.workload)
        source = feature_set(features).open(state, chosen, each.space)
        samples = dataset(each.records, each.space, source).samples
        sketch = each.space.sketches[0]
        genes = np.zeros((POPULATION, len(sketch.choices)), np.int64)
        source.of_sketch(sketch, genes[:1])
        start = time.process_time()
        source.of_sketch(sketch, genes)
        microseconds = 1e6 * (time.process_time() - start) / POPULATION
        found.append(Described(each.case, samples, microseconds))
    return tuple(found)


def times_of(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """Seconds of each (samples,)."""
    return np.array([sample.time_s for sample in samples])
