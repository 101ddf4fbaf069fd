"""Versions of a network in one process, with functions in the place of networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import UsageError
from tensorwright.peers.process import PeerFailed, compare_versions

X = {"x": np.float32([1, 2])}


def function(name: str) -> str:
    return f"{Path(__file__).with_name('competitors.py')}:{name}"


def test_versions_share_a_process_and_take_turns() -> None:
    found = compare_versions("function", [function("process")] * 2, X, 1, rounds=1)
    one, other = found.outputs
    (name,) = one
    assert int(one[name]) == int(other[name])
    assert len(found.times_s) == 2
    assert min(found.times_s) > 0


def test_without_rounds_nothing_is_timed() -> None:
    found = compare_versions("function", [function("add")], X, 1, rounds=0)
    assert found.times_s == ()
    np.testing.assert_array_equal(found.outputs[0]["x"], X["x"])


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [("refuse", "refused", "this one refuses"), ("crash", "crashed", "last words")],
)
def test_a_failure_is_told(name: str, kind: str, text: str) -> None:
    with pytest.raises(PeerFailed, match=text) as caught:
        compare_versions("function", [function(name)], X, 1, rounds=0)
    assert caught.value.kind == kind


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(UsageError, match="no such kind"):
        compare_versions("nobody", ["x"], X, 1)
