"""Turns of measuring exclude each other."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

import pytest

from tensorwright.base import override
from tensorwright.processes import hold_turn


def test_turns_exclude_other_benchmarks(tmp_path: Path) -> None:
    path = tmp_path / "turn.lock"
    with (
        override(home=str(tmp_path)),
        hold_turn(),
        path.open() as file,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_an_error_ends_the_turn_and_is_passed_on(tmp_path: Path) -> None:
    with override(home=str(tmp_path)):
        with pytest.raises(TimeoutError, match="of the caller"), hold_turn():
            raise TimeoutError("of the caller")
        with hold_turn() as again:
            assert again


def test_who_measures_keeps_the_others_waiting_until_they_no_longer_want_to() -> None:
    deadline = time.monotonic() + 0.3
    with hold_turn() as mine, hold_turn(lambda: time.monotonic() > deadline) as theirs:
        assert mine
        assert not theirs
    with hold_turn() as again:
        assert again
