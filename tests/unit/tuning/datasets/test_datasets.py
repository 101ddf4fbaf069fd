from __future__ import annotations

import numpy as np
import pytest
from tests.targets import AVX512
from tests.unit.tuning.helpers import matmul

from tensorwright.records import Record, Status
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.datasets import dataset
from tensorwright.tuning.features import Featurizer
from tensorwright.tuning.space import Sketch, Space, space_of

TARGET = AVX512
WORKLOAD = matmul()
STATE = state_of(WORKLOAD)


@pytest.fixture(scope="module")
def space() -> Space:
    return space_of(STATE, TARGET)


def record_of(
    sketch: Sketch, times_s: tuple[float, ...], status: Status = Status.OK, trace: str = ""
) -> Record:
    decisions = sketch.defaults
    return Record(
        WORKLOAD.key,
        TARGET.key,
        "here",
        2,
        trace or format_trace(sketch.bound(decisions)),
        times_s,
        status,
        decisions=tuple(sorted(decisions.items())),
    )


def test_a_record_finds_its_sketch(space: Space) -> None:
    for sketch in space.sketches:
        found = space.locate(record_of(sketch, (1.0,)).trace, sketch.defaults)
        assert found is not None
        assert space.sketches[found[0]] is sketch
        assert sketch.decisions_of(found[1]) == sketch.defaults
    assert space.locate("split(c, i, [4])", space.sketches[0].defaults) is None


def test_columns_and_traces_give_samples_in_the_order_of_the_records(space: Space) -> None:
    first, last = space.sketches[0], space.sketches[-1]
    elsewhere = record_of(first, (4.0,), trace="split(relu, i, [4])")
    broken = record_of(first, (4.0,), trace="split(nothing, i, [4])")
    failed = record_of(first, (), Status.WRONG_ANSWER, trace="split(relu, i, [8])")
    slow = record_of(last, (3.0,), Status.CENSORED)
    good, best = record_of(last, (2.0, 5.0)), record_of(first, (1.0,))
    records = [elsewhere, good, broken, failed, slow, best]
    found = dataset(records, space, Featurizer(STATE, TARGET))
    assert found.skipped == 1
    assert [sample.time_s for sample in found.samples] == [4.0, 2.0, 1.0]
    assert found.records == (elsewhere, good, best)
    assert not any(sample.is_censored for sample in found.samples)
    assert all(np.isfinite(sample.features).all() for sample in found.samples)
    mads = [float(np.exp2(sample.features[:, 0].max()) - 1) for sample in found.samples]
    assert mads == pytest.approx([32**3] * 3, rel=1e-3)


def test_a_censored_record_is_a_bound(space: Space) -> None:
    cut = record_of(space.sketches[0], (3.0, 2.5), Status.CENSORED)
    (sample,) = dataset([cut], space, Featurizer(STATE, TARGET)).samples
    assert sample.is_censored
    assert sample.time_s == 2.5
