"""Another process chooses and builds, and leaves what it made in the caches."""

import time
from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import detect_target, knobs, override
from tensorwright.build import find_kernel
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.pipeline import cut
from tensorwright.runtime import named_cache
from tensorwright.tuning.selection import ahead, choose_untuned, open_predictor, working_ahead


def network() -> Graph:
    graph = GraphBuilder("two products")
    name = graph.input("x", (8, 24))
    for shape in ((24, 16), (16, 12)):
        weights = graph.constant(np.ones(shape, np.float32))
        (name,) = graph.apply("matmul", (name, weights))
    return graph.finish((name,))


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "machine").symlink_to(knobs.HOME.get() / "machine")
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(ahead, "_LEAST_WORKLOADS", 2)
    monkeypatch.setattr(ahead, "available_cores", lambda: 2)
    return tmp_path


def test_what_another_process_made_is_what_this_one_makes(home: Path) -> None:
    target = detect_target()
    with override(default_schedule="rule"):
        workloads = cut(network(), target, 1).workloads
    with working_ahead(workloads, target, 1):
        until = time.monotonic() + 300
        while named_cache("choices").count() < 2 and time.monotonic() < until:
            time.sleep(0.05)
    assert named_cache("choices").count() == len(workloads) == 2
    predictor = open_predictor(target, 1, is_cold=True)
    assert predictor is not None
    assert all(map(predictor.has_chosen, workloads))
    theirs = [choose_untuned(each, target, 1, is_cold=True) for each in workloads]
    assert predictor.counts["cached"] == 2
    assert find_kernel(theirs[1].workload, theirs[1].schedule, target) is not None
    with override(kernel_cache=False, home=home / "another"):
        assert [choose_untuned(each, target, 1, is_cold=True) for each in workloads] == theirs


def test_nothing_is_started_where_nothing_is_gained(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = detect_target()
    monkeypatch.setattr(ahead, "_start", lambda *_: pytest.fail("it was started"))
    workloads = cut(network(), target, 1).workloads
    with working_ahead(workloads[:1], target, 1):
        pass
    with override(kernel_cache=False), working_ahead(workloads, target, 1):
        pass
    with override(default_schedule="rule"), working_ahead(workloads, target, 1):
        pass
    monkeypatch.setattr(ahead, "available_cores", lambda: 1)
    with working_ahead(workloads, target, 1):
        pass
