"""Another process chooses and builds, and leaves what it made in the caches."""

import time
from pathlib import Path

import numpy as np
import pytest

from tensorwright import processes
from tensorwright.artifacts import find_kernel
from tensorwright.base import KNOBS, OpenSize, cpu_target, override
from tensorwright.expr import named_size
from tensorwright.graph import Graph, GraphBuilder, bind_workload, representative
from tensorwright.pipeline import cut
from tensorwright.processes import has_spare, spare_worker
from tensorwright.records import Setting
from tensorwright.runtime import named_cache
from tensorwright.tuning.selection import (
    Chooser,
    ahead,
    open_predictor,
    suppose,
    working_ahead,
)


def network(rows: int | OpenSize = 8) -> Graph:
    graph = GraphBuilder("two products")
    name = graph.input("x", (rows, 24))
    for shape in ((24, 16), (16, 12)):
        weights = graph.constant(np.ones(shape, np.float32))
        (name,) = graph.apply("matmul", (name, weights))
    return graph.finish((name,))


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(ahead, "_LEAST_WORKLOADS", 2)
    monkeypatch.setattr(ahead.base, "available_cores", lambda: 2)
    return tmp_path


def wait_for_choices(count: int) -> None:
    until = time.monotonic() + 300
    while named_cache("choices").count() < count and time.monotonic() < until:
        time.sleep(0.05)


@pytest.mark.parametrize("rows", [8, named_size("rows", 8, 8 + 1)], ids=["fixed", "open"])
def test_what_another_process_made_is_what_this_one_makes(home: Path, rows: int | OpenSize) -> None:
    target = cpu_target("native")
    with override(default_schedule="rule"):
        workloads = cut(network(rows), target, 1).workloads
    with working_ahead(workloads, Setting(target, 1)):
        wait_for_choices(2)
    assert named_cache("choices").count() == len(workloads) == 2
    predictor = open_predictor(target, 1, is_cold=True)
    assert predictor is not None
    typical = [bind_workload(each, representative(each.sizes)) for each in workloads]
    assert all(map(predictor.has_chosen, typical))
    theirs = [Chooser(Setting(target, 1), is_cold=True).unmeasured(each) for each in workloads]
    assert predictor.counts["cached"] >= 2
    assert not predictor.counts["chosen"] or rows != 8
    assert find_kernel(theirs[1].workload, theirs[1].schedule, target) is not None
    with override(kernel_cache=False, home=home / "another"):
        assert [
            Chooser(Setting(target, 1), is_cold=True).unmeasured(each) for each in workloads
        ] == theirs


def test_nothing_is_started_where_nothing_is_gained(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = cpu_target("native")
    monkeypatch.setattr(processes, "Child", lambda: pytest.fail("it was started"))
    workloads = cut(network(), target, 1).workloads
    with working_ahead(workloads[:1], Setting(target, 1)):
        pass
    with override(kernel_cache=False), working_ahead(workloads, Setting(target, 1)):
        pass
    with override(default_schedule="rule"), working_ahead(workloads, Setting(target, 1)):
        pass
    monkeypatch.setattr(ahead.base, "available_cores", lambda: 1)
    with working_ahead(workloads, Setting(target, 1)):
        pass


def test_a_process_that_is_ready_begins_with_what_is_supposed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = cpu_target("native")
    with override(default_schedule="rule"):
        workloads = cut(network(), target, 1).workloads
    monkeypatch.setattr(ahead, "_LEAST_WORKLOADS", 99)  # for none would one be started now
    values = {knob.name: knob.get() for knob in KNOBS}
    suppose(lambda: pytest.fail("nobody is there to begin"), Setting(target, 1))
    with spare_worker(ahead.__name__, "get_ready", target, 1, values):
        suppose(lambda: workloads, Setting(target, 1))
        assert has_spare()
        wait_for_choices(2)
        with override(home=home / "another"), working_ahead(workloads, Setting(target, 1)):
            assert not has_spare()
    assert named_cache("choices").count() == 2
