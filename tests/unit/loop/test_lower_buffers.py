"""How the buffers of local stages lie."""

from __future__ import annotations

from tensorwright import schedule
from tensorwright.base import DType
from tensorwright.expr import compute, placeholder
from tensorwright.loop import lower


def scheduled(steps: tuple[schedule.Primitive, ...]) -> schedule.ScheduleState:
    x = placeholder("x", (16, 6), DType.F32)
    doubled = compute("doubled", (16, 6), lambda i, j: x[i, j] * 2.0, ("i", "j"))
    turned = compute("turned", (6, 16), lambda j, i: doubled[i, j] + 1.0, ("j", "i"))
    state = schedule.initial_state((turned,))
    for step in steps:
        step.check(state)
        state = step.apply(state)
    return state


def test_a_local_buffer_lies_along_its_vectors() -> None:
    at_row = schedule.ComputeAt("doubled", "turned", "j")
    plain = scheduled((at_row,))
    assert "local doubled: f32 (16, 1)" in str(lower(plain))
    steps = (at_row, schedule.Reorder("doubled", ("j", "i")), schedule.Vectorize("doubled", "i"))
    assert "local doubled: f32 (1, 16)" in str(lower(scheduled(steps)))
