"""The turns from which the first figures of a report come."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.runtime.networks import CHAIN, executable

from tensorwright.report.rivals import rival_values


def test_this_program_and_the_untuned_one_take_turns() -> None:
    ours, other = executable(CHAIN, threads=1), executable(CHAIN, threads=1)
    inputs = {spec.name: np.ones(spec.shape, np.float32) for spec in ours.inputs}
    values = rival_values(ours, other, inputs, None)
    compared = values["untuned"]
    assert values["rivals"] == []
    assert not compared["is_same"]
    assert compared["tuned_us"] == values["ours"]["time_us"] > 0
    ratio = compared["untuned_us"] / compared["tuned_us"]
    assert compared["speed_up"] == pytest.approx(ratio, rel=1e-3)
    assert compared["least"] <= compared["speed_up"] <= compared["most"]


def test_without_an_untuned_program_it_is_the_same() -> None:
    ours = executable(CHAIN, threads=1)
    inputs = {spec.name: np.ones(spec.shape, np.float32) for spec in ours.inputs}
    values = rival_values(ours, None, inputs, None)
    assert values["untuned"]["is_same"]
    assert values["untuned"]["tuned_us"] == values["ours"]["time_us"]
