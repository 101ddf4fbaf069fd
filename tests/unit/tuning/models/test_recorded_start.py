"""A session's model starts from the records of other workloads."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.targets import native_target

from tensorwright.base import UsageError
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.graph import Workload, program
from tensorwright.records import (
    MemoryStore,
    Record,
    RecordStore,
    Setting,
    Status,
    WorkloadText,
    is_store,
)
from tensorwright.schedule import state_of
from tensorwright.tuning import learning as starting
from tensorwright.tuning.learning import (
    Learning,
    Past,
    RecordedStart,
    described,
    learn_from_records,
    open_learning,
)
from tensorwright.tuning.models import LearnedModel
from tensorwright.tuning.population import make_space_tables, sample
from tensorwright.tuning.space import space_of
from tensorwright_lab.cost_models.accuracy import count_pairs

TARGET = native_target()
THREADS = 2
START = Learning(start=RecordedStart())


def product(rows: int, size: int = 48) -> Workload:
    x, w, k = placeholder("x", (rows, size)), placeholder("w", (size, size)), reduce_axis("k", size)
    y = compute("y", (rows, size), lambda i, j: sum_over(x[i, k] * w[k, j], k))
    return program(y, constants=["w"], name="product")


def turned(rows: int) -> Workload:
    x, w, k = placeholder("x", (48, rows)), placeholder("w", (48, 48)), reduce_axis("k", 48)
    y = compute("y", (rows, 48), lambda i, j: sum_over(x[k, i] * w[k, j], k))
    return program(y, name="turned")


def measured(workload: Workload, count: int = 24, hardware: str = "here") -> list[Record]:
    """Records of drawn programs: the larger the decisions, the slower they are."""
    space = space_of(state_of(workload), TARGET)
    drawn = sample(make_space_tables(space), 8 * count, np.random.default_rng(0))
    found = []
    for each in drawn.take(drawn.first_of_each()[:count]).candidates(space):
        time_s = 1e-4 * (1 + math.fsum(math.log2(1 + value) for _, value in each.decisions))
        found.append(
            Record(
                workload.key,
                TARGET.key,
                hardware,
                THREADS,
                each.trace,
                (time_s,),
                Status.OK,
                decisions=each.decisions,
            )
        )
    return found


def store_of(*workloads: Workload, hardware: str = "here") -> MemoryStore:
    store = MemoryStore()
    for workload in workloads:
        text = WorkloadText.of(workload)
        store.append(measured(workload, hardware=hardware), [text])
    return store


def groups(store: MemoryStore, own: Workload) -> dict[str, int]:
    """How many samples each workload gives."""
    past = Past(store, (own,))
    found = described(store, past, START, Setting(TARGET, THREADS, "here"), 0)
    return {samples[0].workload: len(samples) for samples in found}


def test_other_workloads_teach_those_of_the_same_operator_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, alike, other = product(32), product(64), turned(32)
    store = store_of(own, other, alike)
    counts = {len(measured(each)) for each in (alike, other)}
    assert counts == {24}
    assert list(groups(store, own)) == [alike.key, other.key]
    assert set(groups(store, own).values()) == counts
    assert list(groups(store, turned(8))) == [other.key, own.key, alike.key]
    monkeypatch.setattr(starting, "MOST_PROGRAMS", 20)
    assert set(groups(store, own).values()) == {10}
    monkeypatch.setattr(starting, "MOST_WORKLOADS", 1)
    assert groups(store, own) == {alike.key: 20}


def test_what_they_teach_orders_programs_of_another_size() -> None:
    own = product(32)
    past = Past(store_of(product(64), product(16)), (own,))
    found = learn_from_records(past, START, Setting(TARGET, THREADS, "here"))
    assert found is not None
    assert found.samples == sum(len(measured(product(rows))) for rows in (64, 16))
    (samples,) = described(
        store_of(own), Past(past.store, ()), START, Setting(TARGET, THREADS, "here"), 0
    )
    scores = np.array([found.predict(each.features[None])[0] for each in samples])
    times_s = np.array([each.time_s for each in samples])
    right, pairs = count_pairs(scores, times_s)
    assert right > 0.6 * pairs
    learned = open_learning(START, Setting(TARGET, THREADS, "here"), 0, past=past)
    assert isinstance(learned.shared, LearnedModel)
    assert not learned.shared.is_trained  # own measurements come, and what was before fades
    plain = open_learning(Learning(), Setting(TARGET, THREADS), 0)
    assert plain.shared is not None
    features = samples[0].features[None]
    assert learned.shared.predict(features)[0] != plain.shared.predict(features)[0]


def test_records_of_another_store_teach(tmp_path: Path) -> None:
    path = tmp_path / "others.sqlite"
    teaching = store_of(product(64))
    with RecordStore(path) as store:
        store.append(teaching.query(), teaching.workload_texts())
    past = Past(MemoryStore(), (product(32),))
    found = learn_from_records(past, START, Setting(TARGET, THREADS, "here"), path=path)
    assert found is not None
    assert is_store(path)
    found.save(tmp_path / "model.npz")
    assert not is_store(tmp_path / "model.npz")


def test_where_nothing_teaches_a_warning_says_so() -> None:
    own = product(32)
    unknown = MemoryStore()
    unknown.append(measured(product(64)))  # without a text
    few = MemoryStore()
    few.append(measured(product(64), 4), [WorkloadText.of(product(64))])
    for store in (unknown, few, store_of(own), store_of(product(64), hardware="elsewhere")):
        with pytest.warns(UserWarning, match="nothing to start from"):
            assert (
                learn_from_records(Past(store, (own,)), START, Setting(TARGET, THREADS, "here"))
                is None
            )


def test_features_of_one_space_cannot_start_from_others() -> None:
    with pytest.raises(UsageError, match="say nothing about others"):
        Learning("knob", start=RecordedStart())
