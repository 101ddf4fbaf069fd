"""Processes that do one thing at a time and can be killed."""

from __future__ import annotations

import os
import time

import pytest

from tensorwright.base import MachineError
from tensorwright.rewrite.prove.crew import Crew, Lost


def work(item: float) -> float:
    """What children do: a negative number is an error, 99 never ends, 98 ends the process."""
    if item < 0:
        raise MachineError(stage="rules", where="here", reason="no")
    if item == 99:
        time.sleep(600)
    if item == 98:
        os._exit(1)
    return item * 2


def test_results_come_with_their_places() -> None:
    with Crew(work, workers=2, patience_s=60) as crew:
        assert dict(crew.run([1.0, 2.0, 3.0])) == {0: 2.0, 1: 4.0, 2: 6.0}
        assert dict(crew.run([5.0])) == {0: 10.0}


def test_what_hangs_is_killed() -> None:
    with Crew(work, workers=1, patience_s=0.5) as crew:
        assert dict(crew.run([99.0])) == {0: Lost("no answer within 0.5 seconds")}


def test_another_process_takes_the_place_of_one_that_ended() -> None:
    with Crew(work, workers=1, patience_s=60) as crew:
        assert dict(crew.run([98.0, 4.0])) == {0: Lost("the process ended"), 1: 8.0}


def test_an_error_of_ours_is_raised_again() -> None:
    with Crew(work, workers=1, patience_s=60) as crew, pytest.raises(MachineError):
        list(crew.run([-1.0]))
