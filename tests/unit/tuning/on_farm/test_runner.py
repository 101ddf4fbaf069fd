"""What a session believes of the devices of a farm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import doubled

from tensorwright.artifacts import Kernel
from tensorwright.base import MachineError
from tensorwright.codegen import Signature
from tensorwright.farm import Device, Farm, FarmOutcome, FarmWorker, Lost, Payload, Unit
from tensorwright.processes import Done, never
from tensorwright.records import Status
from tensorwright.tuning.measuring import Measurement, Trial
from tensorwright.tuning.on_farm import DevicePool, FarmRunner, agree
from tensorwright.tuning.on_farm.worker_functions import write

OK, WRONG = Status.OK, Status.WRONG_ANSWER


class FakeFarm(Farm):
    """Devices in turn; each says of a kernel what its function makes of the true seconds."""

    def __init__(self, **devices: Callable[[float], Measurement | str | None]) -> None:
        self.devices = devices
        self.aside: dict[str, str] = {}
        self.asked: list[str] = []
        self.sizes: list[int] = []

    def results(
        self, units: Iterable[Unit], should_stop: Callable[[], bool] = never, ahead: int = 0
    ) -> Iterator[tuple[int, FarmOutcome]]:
        for index, unit in enumerate(units):
            yield index, self._do(unit)

    def _do(self, unit: Unit) -> FarmOutcome:
        if unit.function == "farm.set_aside":
            self.aside[unit.workers[0]] = unit.payload.data["reason"]
            return Done(Payload())
        names = unit.workers or tuple(self.devices)
        name = names[len(self.asked) % len(names)]
        self.asked.append(name)
        kernels = unit.payload.blobs[unit.payload.data["workloads"] :]
        said = [self.devices[name](float(kernel[-8:])) for kernel in kernels]
        if None in said:
            return Lost("gone")
        if isinstance(said[0], str):
            return Done(Payload({"drift": said[0], "worker": name}))
        self.sizes.append(len(said))
        answer = {"measured": write(tuple(said)), "worker": name, "reference_s": 1.0}
        return Done(Payload({**answer, "seconds": 0.1 * len(said)}))

    def workers(self) -> tuple[FarmWorker, ...]:
        device = Device("kind", "hardware", "")
        return tuple(FarmWorker(name, name, 1, device) for name in self.devices)

    def close(self) -> None: ...


def honest(true_s: float) -> Measurement:
    return Measurement(OK, (true_s,))


def halving(true_s: float) -> Measurement:
    return Measurement(OK, (true_s / 2,))


def refusing(true_s: float) -> Measurement:
    return Measurement(WRONG, error="off by 1")


def measured(farm: FakeFarm, count: int = 8) -> list[Measurement]:
    runner = FarmRunner(farm, "kind", native_target())
    workload = doubled()
    trials = [
        Trial(
            n,
            workload,
            Kernel(f"{0.001 * (n + 1):8.6f}".encode(), Signature("k", ()), 0.0, native_target()),
            1,
            math.inf,
        )
        for n in range(count)
    ]
    found = {trial.index: one for trial, one in runner.measure_each(trials, most=count)}
    return [found[n] for n in range(count)]


TRUE = [Measurement(OK, (float(f"{0.001 * (n + 1):8.6f}"),)) for n in range(8)]


@pytest.mark.parametrize("lie", [halving, refusing])
def test_a_device_that_lies_is_set_aside_and_its_results_are_measured_anew(
    lie: Callable[[float], Measurement],
) -> None:
    farm = FakeFarm(a=honest, liar=lie, c=honest)
    assert measured(farm) == TRUE
    assert list(farm.aside) == ["liar"]
    assert "2 agree" in farm.aside["liar"]


def test_of_two_devices_that_disagree_neither_is_believed() -> None:
    with pytest.raises(MachineError, match="no third device says who"):
        measured(FakeFarm(a=honest, liar=halving))


def test_a_device_that_becomes_unreliable_in_a_round_is_set_aside() -> None:
    """It was honest about its fastest program and lies about its last one alone."""

    def tiring(true_s: float) -> Measurement:
        return halving(true_s) if true_s > 0.0065 else honest(true_s)

    farm = FakeFarm(a=honest, tired=tiring, c=honest)
    assert measured(farm) == TRUE
    assert list(farm.aside) == ["tired"]


def test_devices_that_agree_share_the_round() -> None:
    farm = FakeFarm(a=honest, b=honest)
    assert measured(farm) == TRUE
    assert not farm.aside
    assert set(farm.asked) == {"a", "b"}


def test_a_single_device_is_believed() -> None:
    farm = FakeFarm(a=honest)
    assert measured(farm) == TRUE
    assert sum(farm.sizes) == len(TRUE)


def test_a_unit_has_several_trials_where_devices_get_enough_of_them() -> None:
    farm = FakeFarm(a=honest)
    assert len(measured(farm, 64)) == 64
    assert max(farm.sizes) == 10  # of a tenth of a second each
    assert sum(farm.sizes) == 64


def test_trials_of_a_unit_that_ended_its_worker_are_measured_one_by_one() -> None:
    deadly = float(f"{0.001 * 40:8.6f}")
    farm = FakeFarm(a=lambda true_s: None if true_s == deadly else honest(true_s))
    statuses = [one.status for one in measured(farm, 64)]
    assert statuses.index(Status.LOST) == 39
    assert statuses.count(OK) == 63


def test_a_program_that_fails_everywhere_has_failed() -> None:
    farm = FakeFarm(a=refusing, b=refusing)
    assert [one.status for one in measured(farm)] == [WRONG] * 8
    assert not farm.aside


def test_a_device_that_drifts_measures_nothing() -> None:
    farm = FakeFarm(a=honest, hot=lambda _: "the reference kernel takes 2 ms, not 1 ms", c=honest)
    assert measured(farm) == TRUE
    assert "reference kernel" in farm.aside["hot"]


def test_what_every_device_loses_is_lost() -> None:
    assert [one.status for one in measured(FakeFarm(a=lambda _: None))] == [Status.LOST] * 8


def test_times_agree_up_to_a_ratio_and_failures_among_themselves() -> None:
    assert agree(Measurement(OK, (1.0, 2.0)), Measurement(OK, (1.3,)))
    assert not agree(Measurement(OK, (1.0,)), Measurement(OK, (0.5,)))
    assert agree(Measurement(WRONG), Measurement(Status.CRASHED))
    assert not agree(Measurement(WRONG), Measurement(OK, (1.0,)))


def test_devices_that_are_away_are_not_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorwright.tuning.on_farm.devices._REFRESH_S", 0.0)
    farm = FakeFarm(a=honest, b=honest)
    pool = DevicePool(farm, "kind")
    pool.put_aside("a", "it lies")
    assert pool.names() == ("b",)
    there, farm.devices = farm.devices, {}
    assert pool.names() == ()
    farm.devices = {"a": there["a"]}
    with pytest.raises(MachineError, match="all are set aside: a: it lies"):
        pool.names()


@pytest.mark.parametrize(
    ("said", "expected_s", "aside"),
    [
        ({"false": 1.0}, 0.0, set()),
        ({"false": 1.0, "a": 2.0}, 0.0, set()),
        ({"false": 1.0, "a": 2.0, "b": 2.1}, 2.05, {"false"}),
        ({"a": 2.0, "b": 2.2}, 2.1, set()),
        ({"a": 1.0, "b": 2.0, "false": 4.0}, 0.0, set()),  # busy machines
    ],
)
def test_the_time_of_the_reference_is_what_most_devices_say(
    said: dict[str, float], expected_s: float, aside: set[str]
) -> None:
    farm = FakeFarm(false=halving, a=honest, b=honest)
    pool = DevicePool(farm, "kind")
    for name, time_s in said.items():
        pool.note_reference(name, time_s)
    assert pool.expected_reference_s() == pytest.approx(expected_s)
    assert farm.aside.keys() == aside


def test_a_device_alone_is_compared_with_itself() -> None:
    pool = DevicePool(FakeFarm(a=honest), "kind")
    pool.note_reference("a", 2.0)
    assert pool.expected_reference_s() == 2.0
