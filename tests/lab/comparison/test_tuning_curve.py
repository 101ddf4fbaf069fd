"""Curves of another tuner, and the parts of the TVM peer that do not tune."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import InputError, cpu_target
from tensorwright.peers.process import PeerProcess
from tensorwright_lab.competitors import CurvePoint, read_curve, seconds_to_reach
from tensorwright_lab.competitors.tuning_curve import append_points

POINTS = (CurvePoint(1, 2.5, math.inf), CurvePoint(2, 2.5, 0.5), CurvePoint(3, 4.0, 0.25))


def test_points_go_there_and_back(tmp_path: Path) -> None:
    assert read_curve(tmp_path) == ()
    append_points(tmp_path, POINTS[:1])
    append_points(tmp_path, POINTS[1:])
    assert read_curve(tmp_path) == POINTS
    with (tmp_path / "curve.jsonl").open("a") as file:
        file.write('{"trials": 4, "elap')
    assert read_curve(tmp_path) == POINTS


def test_a_line_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "curve.jsonl").write_text('{"trials": 1}\n')
    with pytest.raises(InputError, match="is not a point of a curve"):
        read_curve(tmp_path)


def test_when_a_time_was_reached() -> None:
    assert seconds_to_reach(POINTS, 0.5) == 2.5
    assert seconds_to_reach(POINTS, 0.3) == 4.0
    assert seconds_to_reach(POINTS, 0.1) is None


def test_workloads_by_name_and_by_shape() -> None:
    pytest.importorskip("tvm", exc_type=ImportError)
    peer = importlib.import_module("tensorwright_lab.competitors.metaschedule.peer")
    for path, shape in (("GMM.1", None), ("GMM", [1, 128, 128, 128]), ("matmul", [2, 3, 4])):
        tensors = peer.make_workload(path, shape)
        assert len(tensors) == 3
    assert [int(extent) for extent in tensors[-1].shape] == [2, 3]
    for path in ("nothing.1", "GMM.9"):
        with pytest.raises(ValueError, match=r"neither one of|cases 1 to"):
            peer.make_workload(path, None)
    assert "llvm" in str(peer.make_target(cpu_target("x86-64-avx2"), 2))


def test_calls_of_all_copies_are_native() -> None:
    tvm = pytest.importorskip("tvm", exc_type=ImportError)
    calls = importlib.import_module("tensorwright_lab.competitors.metaschedule.peer")
    a = tvm.te.placeholder((64,), "float32", "a")
    b = tvm.te.compute((64,), lambda i: a[i] * 2 + 1, "b")
    target = tvm.target.Target({"kind": "llvm"})
    function = tvm.compile(tvm.te.create_prim_func([a, b]), target=target)["main"]
    rows = [
        tuple(tvm.runtime.tensor(np.full(64, number, np.float32)) for number in (copy, 0.0))
        for copy in range(3)
    ]
    calls.NativeCalls(function, rows)()
    assert [row[1].numpy().tolist() for row in rows] == [[2.0 * n + 1] * 64 for n in range(3)]
    small = tvm.runtime.tensor(np.zeros(3, np.float32))
    with pytest.raises(RuntimeError, match="ended with code"):
        calls.NativeCalls(function, [(small, rows[0][1])])()


@pytest.mark.slow
def test_two_trials_are_tuned_and_then_used(tmp_path: Path) -> None:
    pytest.importorskip("tensorwright_lab.competitors.metaschedule.peer", exc_type=ImportError)
    a, b = (np.random.default_rng(n).random((1, 128, 128), np.float32) for n in (0, 1))
    options = {"trials": 2, "batch": 2, "work_dir": str(tmp_path)}
    for _ in range(2):  # the second time nothing is left to tune
        with PeerProcess("tvm", "tvm") as process:
            assert "2 trials" in process.load("GMM.1", 2, options).detail
            np.testing.assert_allclose(process.check({"a": a, "b": b})["0"], a @ b, rtol=1e-4)
    assert [point.trials for point in read_curve(tmp_path)] == [1, 2]
