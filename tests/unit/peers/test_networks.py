"""One model in two runtimes, with functions in the place of runtimes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import MachineError
from tensorwright.peers import Arrays, PeerFailed, PeerInfo, compare_model
from tensorwright.peers.comparison import networks as comparison

ADD = f"{Path(__file__).with_name('competitors.py')}:add"
CRASH = f"{Path(__file__).with_name('competitors.py')}:crash"
X = {"x": np.float32([1, 2])}


def test_both_are_checked_and_timed() -> None:
    row = compare_model("m", ADD, ADD, X, 1, ["function"], "function", 1, host_operators=["TopK"])
    assert (row.model, row.peer, row.failure) == ("m", "function", "")
    assert row.max_rel_error == 0.0
    assert row.ours_ms is not None
    assert row.peer_ms is not None
    assert row.ratio == pytest.approx(row.peer_ms / row.ours_ms)
    assert row.host_operators == ("TopK",)
    assert row.peak_share is None


def test_checking_alone_takes_no_times() -> None:
    row = compare_model("m", ADD, ADD, X, 1, ["function"], "function", rounds=0)
    assert (row.max_rel_error, row.ours_ms, row.peer_ms, row.ratio) == (0.0, None, None, None)


def test_a_refusal_or_a_crash_is_told_in_the_row(tmp_path: Path) -> None:
    row = compare_model("m", tmp_path / "none.py", ADD, X, 1, ["function"], "function")
    assert row.failure.startswith("peer ours refused: ")
    row = compare_model("m", ADD, CRASH, X, 1, ["function"], "function", 0)
    assert row.failure.startswith("peer function crashed: the process ended with SIGKILL")
    assert row.peer == "function"
    assert (row.max_rel_error, row.ours_ms, row.peer_ms, row.ratio) == (None, None, None, None)


@dataclass
class FakeProcess:
    """A competitor that answers and takes times by its name, without a process."""

    name: str
    kind: str

    def __enter__(self) -> FakeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def load(self, path: str, threads: int) -> PeerInfo:
        if self.kind == "missing":
            raise MachineError(stage="peers", where="peer missing", reason="not installed")
        return PeerInfo("1.0", "")

    def check(self, inputs: Arrays) -> Arrays:
        if self.kind == "refusing":
            raise PeerFailed(where="peer refusing", reason="too new", kind="refused")
        return {"y": np.float32([1, 1.1 if self.kind == "wrong" else 1 + 1e-6])}

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        if self.kind == "dying":
            raise PeerFailed(where="peer dying", reason="gone", kind="crashed")
        return ({"fast": 2e-3, "ours": 1e-3}.get(self.kind, 4e-3),) * repeat


def test_the_best_counts_and_what_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    names = ["refusing", "missing", "slow", "wrong", "dying", "fast"]
    row = compare_model("m", "a", "b", X, 1, names, rounds=3, flops=2e6, peak=4e9)
    assert (row.failure, row.peer, row.peer_ms, row.ours_ms) == ("", "fast", 2.0, 1.0)
    assert row.ratio == pytest.approx(2.0)
    assert row.peak_share == pytest.approx(0.5)
    assert row.max_rel_error == 0.0
    assert [(each.peer, each.time_ms, each.failure) for each in row.peers] == [
        ("refusing", None, "peer refusing refused: too new"),
        ("missing", None, "peer missing: not installed"),
        ("slow", 4.0, ""),
        ("wrong", None, "peer wrong answers differently: by 1.0e-01 of the largest number"),
        ("dying", None, "dying crashed: gone"),
        ("fast", 2.0, ""),
    ]


def test_without_any_peer_that_runs_the_row_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    row = compare_model("m", "a", "b", X, 1, ["refusing", "missing"], rounds=3)
    assert row.failure == "peer refusing refused: too new"
    assert (row.max_rel_error, row.ours_ms, row.ratio) == (None, 1.0, None)
