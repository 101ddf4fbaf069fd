"""Plans whose steps are in blocks: branches and loops."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.runtime import networks

from tensorwright import runtime
from tensorwright.base import DType, InternalError, TensorType
from tensorwright.runtime.native.segments import NativeSegment, cut_into_segments

CONDITION = runtime.TypedRef(runtime.InputRef(2), TensorType(DType.BOOL, ()))
COUNT = runtime.TypedRef(runtime.InputRef(3), TensorType(DType.I64, ()))
TURN = runtime.TypedRef(runtime.ArenaRef(3 * networks.SIZE, 8), TensorType(DType.I64, ()))
INPUTS = (
    networks.tensor("x"),
    networks.tensor("y"),
    runtime.TensorSpec("c", DType.BOOL, ()),
    runtime.TensorSpec("n", DType.I64, ()),
)


def with_blocks(*steps: Any, **changes: Any) -> runtime.Plan:
    return networks.plan(steps, inputs=INPUTS, **changes)


BRANCH = with_blocks(
    runtime.BranchStep(CONDITION, 1, 2),
    networks.double(runtime.InputRef(0), networks.arena(0)),
    networks.double(runtime.InputRef(1), networks.arena(1)),
    networks.double(networks.arena(1), networks.arena(0)),
    networks.add(networks.arena(0), runtime.InputRef(1), runtime.OutputRef(0)),
)
"""z = 2 x + y if c, else 4 y + y."""

ROWS = runtime.TypedRef(runtime.OutputRef(1), TensorType(DType.F32, (4, 96)))
LOOP = with_blocks(
    runtime.CopyStep(runtime.InputRef(0), runtime.OutputRef(0), networks.SIZE),
    runtime.LoopStep(COUNT, CONDITION, TURN, 5),
    runtime.BranchStep(CONDITION, 1, 0),
    networks.double(runtime.OutputRef(0), networks.arena(0)),
    networks.double(runtime.OutputRef(0), networks.arena(0)),
    runtime.CollectStep(
        runtime.TypedRef(networks.arena(0), TensorType(DType.F32, (96,))), TURN, ROWS
    ),
    runtime.CopyStep(networks.arena(0), runtime.OutputRef(0), networks.SIZE),
    outputs=(networks.tensor("z"), runtime.TensorSpec("rows", DType.F32, (4, 96))),
)
"""z = x doubled n times; rows are the values after each time."""


def call(n: int = 0, *, c: bool = True) -> dict[str, Any]:
    return {**networks.chain_inputs(), "c": np.array(c), "n": np.array(n)}


def test_a_branch_is_taken() -> None:
    network = networks.executable(BRANCH)
    x, y = (call()[name] for name in "xy")
    np.testing.assert_allclose(network.run(call())["z"], 2 * x + y, 1e-6)
    np.testing.assert_allclose(network.run(call(c=False))["z"], 5 * y, 1e-6)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_loop_counts_and_collects(n: int) -> None:
    network = networks.executable(LOOP)
    found = network.run(call(n))
    x = call()["x"]
    np.testing.assert_allclose(found["z"], x * 2**n, 1e-6)
    for turn in range(n):
        np.testing.assert_allclose(found["rows"][turn], x * 2 ** (turn + 1), 1e-6)
    np.testing.assert_array_equal(network.run(call(n, c=False))["z"], x)


def test_steps_of_a_loop_are_timed_in_all_iterations() -> None:
    times = networks.executable(LOOP).bind(call(4)).run_timed()
    assert len(times) == len(LOOP.steps)
    assert all(time_s >= 0 for time_s in times)
    assert times[1] > 0


@pytest.mark.parametrize("shown", [BRANCH, LOOP])
def test_a_plan_with_blocks_survives_json(shown: runtime.Plan) -> None:
    assert runtime.plan_from_data(json.loads(json.dumps(runtime.plan_to_data(shown)))) == shown


def test_blocks() -> None:
    assert list(runtime.blocks_of(LOOP.steps)) == [(0, ()), (1, ((2, 7),))]
    assert list(runtime.blocks_of(LOOP.steps, 2, 7)) == [
        (2, ((3, 4), (4, 4))),
        *((at, ()) for at in (4, 5, 6)),
    ]


def test_teams_end_where_blocks_do() -> None:
    for given, limits, teams in (
        (BRANCH, {}, [(0, 5)]),
        (BRANCH, {0: 1}, []),  # only the addition runs on several threads
        (LOOP, {}, [(1, 7)]),
        (LOOP, {0: 1}, []),
        (replace(LOOP, steps=(LOOP.steps[0], _counting(), *LOOP.steps[2:])), {}, [(2, 5)]),
    ):
        shown = runtime.choose_teams(replace(given, threads=2), lambda step, target: 1.0, limits)
        assert [(team.begin, team.end) for team in shown.teams] == teams


def _counting() -> runtime.LoopStep[runtime.TypedRef]:
    step = LOOP.steps[1]
    assert isinstance(step, runtime.LoopStep)
    return replace(step, counted="n")


def test_a_loop_of_native_steps_is_one_call_of_the_driver() -> None:
    assert cut_into_segments(LOOP) == ([(0, 7, 0)], (NativeSegment(0, 7, 0, 1),))
    shared = replace(LOOP, teams=(runtime.Team(1, 7),))
    assert cut_into_segments(shared)[0] == [(0, 1, 0), (1, 7, 1)]


@pytest.mark.parametrize(
    ("broken", "where", "reason"),
    [
        (
            with_blocks(
                runtime.BranchStep(CONDITION, 1, 1),
                networks.double(runtime.InputRef(0), networks.arena(0)),
                networks.double(runtime.InputRef(0), networks.arena(1)),
                networks.add(networks.arena(0), runtime.InputRef(1), runtime.OutputRef(0)),
            ),
            "step 3 (add)",
            "reads arena[0:384], which no earlier step wrote",
        ),
        (
            with_blocks(
                runtime.LoopStep(COUNT, CONDITION, TURN, 1),
                networks.double(runtime.InputRef(0), networks.arena(0)),
                networks.add(networks.arena(0), runtime.InputRef(1), runtime.OutputRef(0)),
            ),
            "step 2 (add)",
            "reads arena[0:384], which no earlier step wrote",
        ),
        (
            with_blocks(
                runtime.LoopStep(COUNT, CONDITION, TURN, 2),
                networks.double(runtime.InputRef(0), runtime.OutputRef(0)),
            ),
            "step 0 (loop)",
            "it has steps that do not exist",
        ),
        (
            with_blocks(runtime.BranchStep(COUNT, 0, 0)),
            "step 0 (branch)",
            "i64() is not a single bool",
        ),
        (
            replace(BRANCH, teams=(runtime.Team(1, 4),)),
            "team 1..4",
            "its steps do not always run one after the other",
        ),
    ],
)
def test_a_plan_with_broken_blocks_is_refused(
    broken: runtime.Plan, where: str, reason: str
) -> None:
    with pytest.raises(InternalError) as caught:
        runtime.verify_plan(broken)
    assert (caught.value.where, caught.value.reason) == (where, reason)
