"""A session on a farm: what workers do goes through the bytes that travel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import doubled

from tensorwright.base import MachineError
from tensorwright.farm import Farm, FarmOutcome, FarmWorker, Server, Unit, device_for, name_worker
from tensorwright.farm.serving import pack_request, unpack_answer
from tensorwright.graph import program
from tensorwright.processes import never
from tensorwright.records import MemoryStore, Setting, Status
from tensorwright.tuning import Task
from tensorwright.tuning.on_farm import devices, kind_for
from tensorwright.tuning.session import Options, tune


class HereFarm(Farm):
    """One worker, in this process."""

    def __init__(self, *, measures: bool = True) -> None:
        self.server, self.measures = Server(), measures
        self.done: list[str] = []

    def results(
        self, units: Iterable[Unit], should_stop: Callable[[], bool] = never, ahead: int = 0
    ) -> Iterator[tuple[int, FarmOutcome]]:
        for index, unit in enumerate(units):
            self.done.append(unit.function)
            request = pack_request(unit, b"")
            yield index, unpack_answer(self.server.answer(request, should_stop), request, b"")

    def workers(self) -> tuple[FarmWorker, ...]:
        device = device_for(native_target()) if self.measures else None
        return (FarmWorker("here", "here", 1, device),)

    def close(self) -> None:
        self.server.close()


def test_a_session_builds_and_measures_on_the_farm() -> None:
    name_worker("here")
    options = Options(round_size=2, should_rank=False, strategy="random", recheck_rounds=1)
    with HereFarm() as farm:
        how = replace(options, trials=3, seed=0, farm=farm)
        hardware = kind_for(farm, native_target()).hardware
        setting = Setting(native_target(), 1, hardware)
        store = MemoryStore()
        tune([Task(program(doubled().outputs))], setting, store, how)
    found = tuple(store.query())
    assert len({record.trace for record in found}) == 3
    assert {record.hardware for record in found} == {hardware}
    assert all(record.status in (Status.OK, Status.CENSORED) for record in found)
    assert farm.done.count("tune.build") >= 3
    assert farm.done.count("tune.measure") >= 3


def test_a_farm_without_such_a_device_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_WAITED_S", 0.0)
    with (
        HereFarm(measures=False) as farm,
        pytest.raises(MachineError, match="the farm has no device at all"),
    ):
        kind_for(farm, native_target())
