from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.base import InternalError
from tensorwright.runtime import Lifetime, plan_memory


@st.composite
def lifetimes(draw: st.DrawFn) -> tuple[Lifetime, ...]:
    """Up to 24 tensors."""
    tensors: list[Lifetime] = []
    for number in range(draw(st.integers(0, 24))):
        first = draw(st.integers(0, 12))
        last = first + draw(st.integers(0, 6))
        size = draw(st.sampled_from([0, 4, 64, 100, 4096, 5000, 65536]))
        tensors.append(Lifetime(f"t{number}", size, first, last))
    return tuple(tensors)


@settings(max_examples=100)
@given(lifetimes())
def test_tensors_that_are_alive_together_never_share_a_byte(tensors: tuple[Lifetime, ...]) -> None:
    plan = plan_memory(tensors)
    offsets = dict(plan.offsets)
    by_name = {tensor.name: tensor for tensor in tensors}
    assert offsets.keys() == by_name.keys()
    for tensor in tensors:
        begin = offsets[tensor.name]
        assert begin % 64 == 0
        assert 0 <= begin <= plan.peak_bytes - tensor.size_bytes
    for i, one in enumerate(tensors):
        for other in tensors[:i]:
            is_together = one.first_step <= other.last_step and other.first_step <= one.last_step
            if is_together:
                begins = offsets[one.name], offsets[other.name]
                ends = begins[0] + one.size_bytes, begins[1] + other.size_bytes
                assert max(begins) >= min(ends)


@settings(max_examples=100)
@given(lifetimes())
def test_the_arena_is_between_what_lives_and_what_there_is(tensors: tuple[Lifetime, ...]) -> None:
    plan = plan_memory(tensors)
    total = sum(-(-t.size_bytes // 64) * 64 for t in tensors)
    assert plan.live_bytes <= plan.peak_bytes <= total
    assert plan == plan_memory(tuple(tensors))


def test_a_chain_needs_two_tensors() -> None:
    plan = plan_memory([Lifetime(f"t{i}", 1000, i, i + 1) for i in range(50)])
    assert plan.peak_bytes == plan.live_bytes == 2 * 1024


def test_a_residual_network_needs_no_more_than_what_lives() -> None:
    """Each block keeps its input for the addition at its end."""
    tensors = []
    for block in range(16):
        step = 3 * block
        tensors += [
            Lifetime(f"in{block}", 64 << 10, step, step + 3),
            Lifetime(f"a{block}", 16 << 10, step + 1, step + 2),
            Lifetime(f"b{block}", 16 << 10, step + 2, step + 3),
        ]
    plan = plan_memory(tensors)
    assert plan.peak_bytes == plan.live_bytes


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([Lifetime("a", 4, 0, 1)] * 2, "two of them have the same name"),
        ([Lifetime("a", 4, 2, 1)], "its size or its lifetime is negative"),
        ([Lifetime("a", -4, 0, 1)], "its size or its lifetime is negative"),
    ],
    ids="names steps size".split(),
)
def test_what_cannot_be_planned_is_refused(tensors: list[Lifetime], message: str) -> None:
    with pytest.raises(InternalError) as caught:
        plan_memory(tensors)
    assert caught.value.reason == message
