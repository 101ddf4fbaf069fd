"""Units give the same in this process and in others, and are done again where a worker ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from tensorwright.base import MachineError
from tensorwright.farm import Farm, FarmOutcome, FarmWorker, LocalFarm, Payload, Unit
from tensorwright.processes import Died, Done, Raised, never
from tensorwright_lab.rule_generation.answers import CALLER, answers

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


class Unreliable(Farm):
    """Loses each unit the first `losses` times, and refuses what is named so."""

    def __init__(self, losses: int) -> None:
        self.losses = dict.fromkeys(range(len(UNITS)), losses)

    def results(
        self, units: Iterable[Unit], should_stop: Callable[[], bool] = never, ahead: int = 0
    ) -> Iterator[tuple[int, FarmOutcome]]:
        for index, unit in enumerate(units):
            number = unit.payload.data["n"]
            self.losses[number] -= 1
            lost = self.losses[number] >= 0
            yield index, Died("signal 9", was_killed=True) if lost else Done(unit.payload)

    def workers(self) -> tuple[FarmWorker, ...]:
        return ()

    def close(self) -> None:
        pass


def test_a_unit_whose_worker_ends_is_done_again() -> None:
    assert dict(answers(Unreliable(2), UNITS)) == dict(answers(CALLER, UNITS))
    with pytest.raises(MachineError, match="3 workers ended while they had it"):
        list(answers(Unreliable(3), UNITS))


def test_what_a_unit_raises_is_raised() -> None:
    refused = MachineError(stage="rules", where="a unit", reason="no")

    class Refusing(Unreliable):
        def results(
            self, units: Iterable[Unit], should_stop: Callable[[], bool] = never, ahead: int = 0
        ) -> Iterator[tuple[int, FarmOutcome]]:
            for index, _ in enumerate(units):
                yield index, Raised("MachineError", "no", error=refused)

    with pytest.raises(MachineError) as caught:
        list(answers(Refusing(0), UNITS[:1]))
    assert caught.value == refused
