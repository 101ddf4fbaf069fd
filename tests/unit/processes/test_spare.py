"""Processes that are started before there is work for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tensorwright import processes

pytestmark = pytest.mark.usefixtures("spawned")


def touch(path: Path, text: str) -> None:
    path.write_text(text)


def test_a_spare_does_what_it_is_given_in_turn(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with processes.spare_worker(touch.__module__, "touch", first, "1"):
        assert processes.has_spare()
        processes.occupy_spare(processes.Job(touch, (second, "2")), 60.0)
        child = processes.take_spare()
        assert child is not None
        assert not processes.has_spare()
    try:
        outcomes = [child.connection.recv() for _ in range(2)]
        assert outcomes == [processes.Done(True), processes.Done(None)]
        assert (first.read_text(), second.read_text()) == ("1", "2")
    finally:
        child.kill()


def test_a_spare_that_nobody_takes_ends() -> None:
    with processes.spare_worker("time", "sleep", 600):
        (child,) = processes.pool._spares
    assert child.end is not None
    assert not processes.has_spare()
    assert processes.take_spare() is None
    processes.occupy_spare(processes.Job(os.getpid), 60.0)  # nobody does it


def test_compiling_goes_on_without_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(job: processes.Job) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(processes.pool, "Child", refuse)
    with processes.spare_worker("time", "sleep", 600):
        assert not processes.has_spare()
