"""One session with real kernels, real workers and a real store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import doubled, matmul

from tensorwright.records import RecordStore, Setting, Status, best_record
from tensorwright.tuning.session import Options, StopReason, tune
from tensorwright.tuning.task import Task


def test_two_workloads_are_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "rule")  # else the tiny one waits its turn
    tasks = (Task(matmul(64), 2.0), Task(doubled()))
    target = native_target()
    with RecordStore(tmp_path / "records.sqlite") as store:
        search = Options(trials=8)
        result = tune(tasks, Setting(target, 2, "here"), store, search, name="two")
        assert result.reason in (StopReason.BUDGET_SPENT, StopReason.EXHAUSTED)
        for one in result.tasks:
            assert one.error == ""
            assert 0 < one.best_s <= one.default_s < 0.1
            assert best_record(store, one.task.workload, Setting(target, 2, "here")) is not None
        statuses = {record.status for record in store.query()}
        assert Status.OK in statuses
        assert Status.WRONG_ANSWER not in statuses
        (session,) = (each for each in store.sessions() if "trials" in each.state)
        assert session.model == "two"
