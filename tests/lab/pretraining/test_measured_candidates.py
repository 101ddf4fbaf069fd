"""Random programs of a workload are measured, so many as are wanted."""

from __future__ import annotations

import math

from tests.targets import AVX512
from tests.unit.tuning.helpers import FakeBuilder, FakeRunner, matmul, numbered_space

from tensorwright.records import MemoryStore, Status
from tensorwright.tuning.task import Task
from tensorwright_lab.pretraining import CollectSetting, collect, known_records

TARGET = AVX512
WORKLOAD = matmul()
SETTING = CollectSetting(TARGET, "here", 2)


def test_programs_are_measured_until_enough_have_a_time() -> None:
    task = Task(WORKLOAD)
    numbered = numbered_space(task, TARGET)
    store = MemoryStore()
    tools = FakeBuilder(failing=(3, 4)), FakeRunner({5: Status.CRASHED})
    steps = list(collect(task, numbered, store, SETTING, tools, 10))
    assert steps[0] == (0, 0)
    assert steps[-1][0] >= 10
    records = known_records(store, SETTING, WORKLOAD)
    assert sum(record.status.is_timed for record in records) == steps[-1][0]
    assert len({record.trace for record in records}) == len(records)
    assert min(record.times_s[0] for record in records if record.times_s) < math.inf


def test_measuring_goes_on_where_it_was_left_and_ends_with_the_space() -> None:
    task = Task(WORKLOAD)
    numbered = numbered_space(task, TARGET, 12)
    store = MemoryStore()
    list(collect(task, numbered, store, SETTING, (FakeBuilder(), FakeRunner()), 5))
    runner = FakeRunner()
    steps = list(collect(task, numbered, store, SETTING, (FakeBuilder(), runner), 50))
    assert steps[0] == (5, 5)
    assert steps[-1] == (12, 12)
    assert len(runner.measured) == 7
