"""Prices of programs for graphics processors: what must be cheaper, and what is chosen by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.grids import OPENCL_GENERIC, SM_80
from tests.unit.schedule.expressions import matmul, total

from tensorwright.base import ON_PROCESSOR, GpuTarget, override, parse_target
from tensorwright.expr import Compute, compute, placeholder
from tensorwright.graph import program
from tensorwright.loop import lower
from tensorwright.machine import card_of
from tensorwright.records import Setting
from tensorwright.schedule import parse_trace, replay, state_of
from tensorwright.tuning.features import Featurizer
from tensorwright.tuning.selection import Chooser, open_predictor
from tensorwright.tuning.selection.scheduling import Source
from tensorwright.tuning.space import default_trace
from tensorwright.tuning.time_model import launch_seconds

POCL = replace(OPENCL_GENERIC, name="opencl", features=(ON_PROCESSOR,))


def seconds(output: Compute, trace: str, target: GpuTarget = SM_80) -> float:
    state = state_of(program([output]))
    features = Featurizer(state, target).of_trace(parse_trace(trace))
    return float(launch_seconds(features, card_of(target))[0])


def copied(rows: int, columns: int, *, is_turned: bool = False) -> Compute:
    x = placeholder("x", (rows, columns))
    if is_turned:
        return compute("y", (columns, rows), lambda i, j: x[j, i] * 2.0)
    return compute("y", (rows, columns), lambda i, j: x[i, j] * 2.0)


def test_memory_bounds_what_only_moves() -> None:
    """256 MiB in and out take their time at the bandwidth, and little more."""
    output = copied(1 << 16, 1024)
    bound = "split(y, j, [256])\nfuse(y, [i, j_o])\nbind(y, i_j_o, block.x)\nbind(y, j_i, thread.x)"
    least = 2 * 4 * (1 << 26) / SM_80.bandwidth
    assert least < seconds(output, bound) < 1.2 * least


def test_far_lanes_and_few_threads_are_slower() -> None:
    bound = "bind(y, i, block.x)\nbind(y, j, thread.x)"
    near, far = copied(1024, 1024), copied(1024, 1024, is_turned=True)
    assert seconds(far, bound) > 1.3 * seconds(near, bound)
    alone = seconds(near, "bind(y, i, block.x)")
    assert alone > 5 * seconds(near, bound)


def test_a_launch_costs_more_outside_of_a_graph() -> None:
    bound = "bind(y, i, block.x)\nbind(y, j, thread.x)"
    in_graph, short = card_of(SM_80).unit.launch_s, seconds(copied(8, 32), bound)
    with override(device_graphs=False):
        alone = card_of(SM_80).unit.launch_s
        assert seconds(copied(8, 32), bound) == pytest.approx(short + alone - in_graph)
    assert alone == card_of(OPENCL_GENERIC).unit.launch_s > in_graph


@pytest.mark.parametrize("target", [SM_80, POCL, parse_target("cuda:sm_90a")], ids=str)
def test_the_choice_is_no_more_expensive_than_the_rule(target: GpuTarget) -> None:
    workload = matmul(256, 256, 256)
    state = workload.state
    rule = default_trace(state, target)
    made = program(list(workload.outputs))
    with override(kernel_cache=False):
        chosen = Chooser(Setting(target, 1)).unmeasured(made)
    assert chosen.source is Source.MODEL
    features = Featurizer(state, target)
    card, traces = card_of(target), (rule, chosen.trace)
    of_rule, of_choice = (launch_seconds(features.of_trace(each), card) for each in traces)
    assert of_choice < of_rule
    assert lower(replay(state, chosen.trace))


def test_rules_choose_where_they_are_asked_for() -> None:
    made = program(list(matmul(64, 64, 64).outputs))
    with override(default_schedule="rule"):
        assert Chooser(Setting(SM_80, 1)).unmeasured(made).source is Source.RULE
        assert open_predictor(SM_80, 1) is None


def test_a_program_of_one_element_has_a_price() -> None:
    predictor = open_predictor(SM_80, 1)
    assert predictor is not None
    made = program(list(total().outputs))
    estimate = predictor.estimate(made, default_trace(state_of(made), SM_80))
    assert estimate is not None
    assert np.isfinite(estimate.seconds)
    assert estimate.seconds == estimate.upper_seconds
