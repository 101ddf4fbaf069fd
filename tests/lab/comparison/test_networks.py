"""One model in two runtimes, with functions in the place of runtimes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import CpuTarget, MachineError, cpu_target
from tensorwright.peers.process import Arrays, PeerFailed, PeerInfo, process
from tensorwright.peers.process.process import holding_variables
from tensorwright_lab.comparison import Compiled, compare_model
from tensorwright_lab.comparison import networks as comparison
from tensorwright_lab.comparison.network_rows import summarise_ratios

FUNCTIONS = Path(__file__).parents[2] / "unit" / "peers" / "competitors.py"
ADD, CRASH = f"{FUNCTIONS}:add", f"{FUNCTIONS}:crash"
X = {"x": np.float32([1, 2])}


def test_both_are_checked_and_timed() -> None:
    top_k = Compiled(("TopK",))
    row = compare_model(
        "m", ADD, ADD, X, 1, ["function"], runtime="function", rounds=1, compiled=top_k
    )
    assert (row.model, row.peer, row.failure) == ("m", "function", "")
    assert row.max_rel_error == 0.0
    assert row.ours_ms is not None
    assert row.peer_ms is not None
    assert row.ratio == pytest.approx(row.peer_ms / row.ours_ms)
    assert row.host_operators == ("TopK",)
    assert row.peak_share is None


def test_checking_alone_takes_no_times() -> None:
    row = compare_model("m", ADD, ADD, X, 1, ["function"], runtime="function", rounds=0)
    assert (row.max_rel_error, row.ours_ms, row.peer_ms, row.ratio) == (0.0, None, None, None)


def test_a_refusal_or_a_crash_is_told_in_the_row(tmp_path: Path) -> None:
    row = compare_model("m", tmp_path / "none.py", ADD, X, 1, ["function"], runtime="function")
    assert row.failure.startswith("peer ours refused: ")
    row = compare_model("m", ADD, CRASH, X, 1, ["function"], runtime="function", rounds=0)
    assert row.failure.startswith("peer function crashed: the process ended with SIGKILL")
    assert row.peer == "function"
    assert (row.max_rel_error, row.ours_ms, row.peer_ms, row.ratio) == (None, None, None, None)


WRONG = "peer wrong answers wrongly: off by 1.0e-01; "


@dataclass
class FakeProcess:
    """A competitor that answers and takes times by its name, without a process."""

    name: str
    kind: str
    target: CpuTarget | None = None

    def __enter__(self) -> FakeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def load(self, path: str, threads: int) -> PeerInfo:
        if self.kind == "missing":
            raise MachineError(stage="peers", where="peer missing", reason="not installed")
        return PeerInfo("1.0", "", 32 if self.kind == "slow" else 0)

    def check(self, inputs: Arrays) -> Arrays:
        if self.kind == "refusing":
            raise PeerFailed(where="peer refusing", reason="too new", kind="refused")
        last = {"wrong": 1.1, "worse": 1.3}.get(self.kind, 1 + 1e-6)
        return {"y": np.float32([1, last])}

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        if self.kind == "dying":
            raise PeerFailed(where="peer dying", reason="gone", kind="crashed")
        times_s = {"fast": 2e-3, "ours": 1e-3, "ours untuned": 1.5e-3}
        return (times_s.get(self.name, 4e-3),) * repeat


def test_the_best_counts_and_what_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    names = ["refusing", "missing", "slow", "wrong", "dying", "fast"]
    row = compare_model(
        "m", "a", "b", X, 1, names, rounds=3, compiled=Compiled(flops=2e6, peak=4e9)
    )
    assert (row.failure, row.peer, row.peer_ms, row.ours_ms) == ("", "fast", 2.0, 1.0)
    assert row.ratio == pytest.approx(2.0)
    assert row.peak_share == pytest.approx(0.5)
    assert row.max_rel_error == 0.0
    assert [(each.peer, each.time_ms, each.failure) for each in row.peers] == [
        ("refusing", None, "peer refusing refused: too new"),
        ("missing", None, "peer missing: not installed"),
        ("slow", 4.0, ""),
        ("wrong", None, WRONG + "slow, dying, fast, ours agree"),
        ("dying", None, "dying crashed: gone"),
        ("fast", 2.0, ""),
    ]


def test_what_is_wrong_counts_nowhere_ours_no_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    about = Compiled(flops=2e6, peak=4e9)
    row = compare_model(
        "m", "a", "b", X, 1, ["fast", "slow", "wrong"], untuned="c", runtime="worse", compiled=about
    )
    assert row.is_wrong
    assert row.max_rel_error == pytest.approx(0.3, rel=1e-4)
    assert row.failure == ("ours answers wrongly: off by 3.0e-01; fast, slow agree")
    assert [each.failure for each in row.peers] == ["", "", WRONG + "fast, slow agree"]
    figures = (row.ours_ms, row.untuned_ms, row.ratio, row.untuned_ratio, row.peak_share)
    assert figures == (None,) * 5
    assert summarise_ratios([row]) == ()


def test_one_wrong_peer_does_not_make_all_others_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    row = compare_model("m", "a", "b", X, 1, ["wrong", "fast", "slow"], rounds=3)
    assert (row.failure, row.peer, row.ratio) == ("", "fast", pytest.approx(2.0))
    assert row.peers[0].failure.endswith("; fast, slow, ours agree")
    row = compare_model("m", "a", "b", X, 1, ["wrong"], rounds=3)
    assert row.failure.startswith("ours answers wrongly: off by 9.1e-02")
    assert row.failure.endswith("; that of wrong counts")
    same = compare_model("m", "a", "b", X, 1, ["fast", "wrong"], runtime="wrong", rounds=3)
    assert same.is_wrong  # a peer that is wrong as ours is does not help us
    assert (row.ours_ms, row.ratio) == (None, None)


def test_without_any_peer_that_runs_the_row_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    row = compare_model("m", "a", "b", X, 1, ["refusing", "missing"], rounds=3)
    assert row.failure == "peer refusing refused: too new"
    assert (row.max_rel_error, row.ours_ms, row.ratio) == (None, 1.0, None)


def test_untuned_and_tuned_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    row = compare_model("m", "a", "b", X, 1, ["fast"], untuned="c", rounds=3)
    assert (row.ours_ms, row.untuned_ms, row.peer_ms) == (1.0, 1.5, 2.0)
    assert row.untuned_ratio == pytest.approx(4 / 3)
    assert row.untuned_share == pytest.approx(2 / 3)


def test_who_is_held_to_a_narrower_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    machine = replace(cpu_target("x86-64-avx512"), name="native")
    monkeypatch.setattr(process, "detect_target", lambda: machine)
    narrow = cpu_target("x86-64-avx2")
    row = compare_model("m", "a", "b", X, 1, ["slow", "fast"], target=narrow, rounds=3)
    assert [(each.peer, each.is_held) for each in row.peers] == [("slow", True), ("fast", False)]
    assert (row.peer_ms, row.held_ms) == (2.0, 4.0)
    assert holding_variables(narrow)["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert not holding_variables(machine)
    row = compare_model("m", "a", "b", X, 1, ["slow"], target=machine, rounds=3)
    assert [each.is_held for each in row.peers] == [None]
