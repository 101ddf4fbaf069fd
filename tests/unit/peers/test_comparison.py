"""One model in two runtimes, with functions in the place of runtimes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorwright.peers import compare_model

ADD = f"{Path(__file__).with_name('competitors.py')}:add"
CRASH = f"{Path(__file__).with_name('competitors.py')}:crash"
X = {"x": np.float32([1, 2])}


def test_both_are_checked_and_timed() -> None:
    row = compare_model("m", ADD, ADD, X, 1, "function", "function", 1, host_operators=["TopK"])
    assert (row.model, row.peer, row.failure) == ("m", "function", "")
    assert row.max_rel_error == 0.0
    assert row.ours_ms is not None
    assert row.peer_ms is not None
    assert row.ratio == pytest.approx(row.peer_ms / row.ours_ms)
    assert row.host_operators == ("TopK",)


def test_checking_alone_takes_no_times() -> None:
    row = compare_model("m", ADD, ADD, X, 1, "function", "function", rounds=0)
    assert (row.max_rel_error, row.ours_ms, row.peer_ms, row.ratio) == (0.0, None, None, None)


def test_a_refusal_or_a_crash_is_told_in_the_row(tmp_path: Path) -> None:
    row = compare_model("m", tmp_path / "none.py", ADD, X, 1, "function", "function")
    assert row.failure.startswith("peer ours refused: ")
    row = compare_model("m", ADD, CRASH, X, 1, "function", "function")
    assert row.failure.startswith("peer function crashed: the process ended with SIGKILL")
    assert (row.max_rel_error, row.ours_ms, row.peer_ms, row.ratio) == (None, None, None, None)
