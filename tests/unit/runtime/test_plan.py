from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.runtime.networks import CHAIN, HOSTED, SIZE, TENSOR, add, arena, double, plan

from tensorwright import runtime
from tensorwright.base import DType, Grid, InternalError
from tensorwright.runtime.native.driver import load_program

ODD = plan(
    [
        runtime.HostStep(
            "odd",
            (
                ("exact", 1),
                ("flag", True),
                ("inf", float("-inf")),
                ("nested", (1, (2.5, "three"), ())),
                ("rounded", 1.0),
                ("to", DType.I64),
            ),
            (),
            (runtime.TypedRef(runtime.OutputRef(0), TENSOR),),
            "odd",
        )
    ]
)


def plan_to_json(plan: runtime.Plan) -> str:
    return json.dumps(runtime.plan_to_data(plan), allow_nan=False)


def plan_from_json(text: str) -> runtime.Plan:
    return runtime.plan_from_data(json.loads(text))


@pytest.mark.parametrize("shown", [CHAIN, HOSTED, ODD], ids="kernels hosted odd".split())
def test_a_plan_survives_json(shown: runtime.Plan) -> None:
    text = plan_to_json(shown)
    again = plan_from_json(text)
    assert again == shown
    assert repr(again) == repr(shown)
    assert plan_to_json(again) == text
    assert "NaN" not in text
    assert "Infinity" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1, 2]",
        '{"_": "Nothing"}',
        '{"_": "InputRef", "index": 1}',
        '{"_": "Plan", "name": "x"}',
        plan_to_json(CHAIN).replace('"f32"', '"f33"'),
        plan_to_json(CHAIN).replace('"index"', '"finger"'),
        plan_to_json(CHAIN)[:-5],
        "[" * 100_000,
    ],
    ids="empty object list class other fields dtype field cut deep".split(),
)
def test_what_is_no_plan_is_a_value_error(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        plan_from_json(text)


def on_a_grid(plan: runtime.Plan, *launches: Grid) -> runtime.Plan:
    first, *others = plan.kernels
    return replace(plan, kernels=(replace(first, launches=launches), *others))


def test_launches_survive_json_and_threads_are_not_written() -> None:
    """Plans for threads are what earlier versions wrote and read."""
    assert "launches" not in plan_to_json(CHAIN)
    grids = on_a_grid(CHAIN, Grid((4, 1, 1), (128, 1, 1), 1024), Grid((1, 1, 1), (32, 1, 1)))
    text = plan_to_json(grids)
    assert text.count("launches") == 1
    assert plan_from_json(text) == grids


def test_a_plan_shows_its_grids() -> None:
    grid = Grid((4, 2, 1), (128, 1, 1), 1024)
    assert str(grid) == "grid 4x2x1 of 128x1x1, 1024 bytes shared"
    assert f"@{grid}" in str(on_a_grid(CHAIN, grid))
    assert "grid" not in str(CHAIN)


def test_a_processor_launches_no_grid() -> None:
    with pytest.raises(InternalError, match="it is launched on a grid"):
        load_program(on_a_grid(CHAIN, Grid((1, 1, 1), (32, 1, 1))), ())


@pytest.mark.parametrize(
    ("grid", "block", "shared_bytes"),
    [((-1, 1, 1), (1, 1, 1), 0), ((1, 1, 1), (1, -1, 1), 0), ((1, 1, 1), (1, 1, 1), -1)],
)
def test_an_empty_grid_is_refused(
    grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int
) -> None:
    with pytest.raises(InternalError, match="its block is empty, or its grid"):
        Grid(grid, block, shared_bytes)


def test_a_plan_is_readable_json() -> None:
    data = json.loads(plan_to_json(CHAIN))
    assert data["steps"][0]["label"] == "double x"
    assert data["steps"][0]["arguments"][0] == {"_": "InputRef", "index": 0, "offset_bytes": 0}


@pytest.mark.parametrize("sound", [CHAIN, HOSTED, ODD], ids="kernels hosted odd".split())
def test_sound_plans_pass(sound: runtime.Plan) -> None:
    runtime.verify_plan(sound)


def chain_with(step: int, **changes: Any) -> runtime.Plan:
    steps = list(CHAIN.steps)
    steps[step] = replace(steps[step], **changes)
    return replace(CHAIN, steps=tuple(steps))


BEYOND = "384 bytes at {} exceed the buffer"


@pytest.mark.parametrize(
    ("broken", "where", "reason"),
    [
        (chain_with(0, kernel=2), "step 0 (double x)", "there is no number 2 among 2"),
        (chain_with(0, kernel=-1), "step 0 (double x)", "there is no number -1 among 2"),
        (
            chain_with(0, arguments=(runtime.InputRef(0),)),
            "step 0 (double x)",
            "double takes 2 arguments, not 1",
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(2), arena(0))),
            "step 0 (double x)",
            "there is no number 2 among 2",
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(0, 64), arena(0))),
            "step 0 (double x)",
            BEYOND.format("in0+64"),
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(0, -64), arena(0))),
            "step 0 (double x)",
            BEYOND.format("in0+-64"),
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(0), runtime.ArenaRef(0, 64))),
            "step 0 (double x)",
            BEYOND.format("arena[0:64]"),
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(0), runtime.ArenaRef(4 * SIZE, SIZE))),
            "step 0 (double x)",
            BEYOND.format("arena[1536:1920]"),
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(0), runtime.ArenaRef(4, SIZE))),
            "step 0 (double x)",
            "arena[4:388] does not begin on a multiple of 64 bytes",
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(0), runtime.InputRef(1))),
            "step 0 (double x)",
            "in1 is written",
        ),
        (
            chain_with(0, arguments=(runtime.InputRef(0), runtime.ConstantRef(0))),
            "step 0 (double x)",
            "const0 is written",
        ),
        (
            chain_with(0, arguments=(arena(3), arena(0))),
            "step 0 (double x)",
            "reads arena[1152:1536], which no earlier step wrote",
        ),
        (
            chain_with(1, arguments=(arena(0), runtime.ArenaRef(64, SIZE))),
            "step 1 (double again)",
            "two arguments overlap in arena[64:448]",
        ),
        (
            plan([double(runtime.InputRef(0), arena(0))]),
            "output z",
            "no step writes all of it",
        ),
        (
            plan([runtime.CopyStep(runtime.InputRef(0), runtime.OutputRef(0), 64)]),
            "output z",
            "no step writes all of it",
        ),
        (
            plan([add(runtime.InputRef(0), runtime.OutputRef(0), arena(0))]),
            "step 0 (add)",
            "reads out0[0:384], which no earlier step wrote",
        ),
    ],
)
def test_a_broken_plan_is_refused(broken: runtime.Plan, where: str, reason: str) -> None:
    with pytest.raises(InternalError) as caught:
        runtime.verify_plan(broken)
    assert (caught.value.where, caught.value.reason) == (where, reason)


def test_the_same_buffer_may_be_read_twice_in_a_step() -> None:
    runtime.verify_plan(plan([add(runtime.InputRef(0), runtime.InputRef(0), runtime.OutputRef(0))]))


def test_an_output_may_be_written_in_parts() -> None:
    first = runtime.CopyStep(runtime.InputRef(0), runtime.OutputRef(0), 128)
    second = runtime.CopyStep(runtime.InputRef(0, 128), runtime.OutputRef(0, 128), SIZE - 128)
    runtime.verify_plan(plan([second, first]))


def test_the_scratch_memory_is_that_of_the_greediest_kernel() -> None:
    one = replace(CHAIN.kernels[0], workspace_bytes=100, local_workspace_bytes=64)
    two = replace(CHAIN.kernels[1], workspace_bytes=200)
    shown = replace(CHAIN, kernels=(one, two))
    assert shown.scratch_bytes(1) == 200
    assert shown.scratch_bytes(4) == 356
    assert isinstance(CHAIN.steps[0], runtime.KernelStep)
