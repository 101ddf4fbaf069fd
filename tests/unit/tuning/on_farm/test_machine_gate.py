"""Who measures has the machine for himself."""

from __future__ import annotations

import threading

from tensorwright.processes import never
from tensorwright.tuning.on_farm.worker_functions import while_building, while_measuring


def test_a_build_waits_for_a_measurement_and_a_measurement_for_builds() -> None:
    order: list[str] = []

    def build() -> None:
        with while_building():
            order.append("build")

    with while_measuring(never) as is_held:
        assert is_held
        thread = threading.Thread(target=build)
        thread.start()
        thread.join(0.1)
        order.append("measured")
    thread.join()
    assert order == ["measured", "build"]


def test_who_should_stop_does_not_measure() -> None:
    with while_building(), while_building(), while_measuring(lambda: True) as is_held:
        assert not is_held
