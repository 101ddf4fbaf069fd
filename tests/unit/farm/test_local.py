"""Units give the same in this process and in others, and are done again where a worker ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorwright.base import MachineError
from tensorwright.farm import CALLER, FUNCTIONS, LocalFarm, NamedFunction, Payload, Unit, answers
from tensorwright.farm import functions as functions_module

HERE = __name__
UNITS = [Unit("farm.echo", Payload({"n": n}, (bytes([n]),))) for n in range(7)]


def test_processes_change_no_answer() -> None:
    here = dict(answers(CALLER, UNITS))
    assert here == dict(enumerate(unit.payload for unit in UNITS))
    with LocalFarm(2) as farm:
        assert dict(answers(farm, UNITS)) == here


def test_units_are_made_when_their_turn_comes() -> None:
    made: list[int] = []

    def units() -> Iterator[Unit]:
        for unit in UNITS:
            made.append(unit.payload.data["n"])
            yield unit

    with LocalFarm(1) as farm:
        results = farm.results(units())
        next(results)
        assert len(made) < len(UNITS)
        results.close()


def end_once(payload: Payload) -> Payload:
    """End the process, the first time."""
    mark = Path(payload.data)
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return payload


def end(payload: Payload) -> Payload:
    """End the process."""
    os._exit(1)


def refuse(payload: Payload) -> Payload:
    """Refuse."""
    raise MachineError(stage="rules", where="a unit", reason="no")
