"""Chunks of work give the same wherever they are done."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from tensorwright.base import MachineError
from tensorwright_lab.rule_generation.parallel import map_chunks


@dataclass(frozen=True)
class Scaled:
    """A function with data of its own, which goes to each process once."""

    factor: int

    def __call__(self, chunk: int) -> tuple[int, str | None]:
        return self.factor * chunk, os.environ.get("OMP_NUM_THREADS")


def leave(chunk: int) -> None:
    os._exit(1)


def refuse(chunk: int) -> None:
    raise MachineError(stage="rules", where="a chunk", reason="no")


CHUNKS = [70, 30, 50]


def test_processes_change_no_result_and_use_one_thread_each() -> None:
    here = [result for result, _ in map_chunks(Scaled(2), CHUNKS, 1)]
    assert here == [140, 60, 100]
    assert list(map_chunks(Scaled(2), CHUNKS, 2)) == [(result, "1") for result in here]


def test_a_worker_that_ends_is_told_with_the_way_on() -> None:
    with pytest.raises(MachineError, match="--resume and fewer workers") as caught:
        list(map_chunks(leave, CHUNKS, 2))
    assert caught.value.reason.endswith("the process ended with exit code 1")


def test_an_error_of_ours_comes_through() -> None:
    with pytest.raises(MachineError) as caught:
        list(map_chunks(refuse, CHUNKS, 2))
    assert caught.value == MachineError(stage="rules", where="a chunk", reason="no")
