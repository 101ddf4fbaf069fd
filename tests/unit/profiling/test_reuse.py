"""How far away operands are, counted by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.runtime.networks import CHAIN, HOSTED, SIZE

from tensorwright.profiling import Operand, operands_of
from tensorwright.runtime import KernelStep

WHOLE = 4 * SIZE + 4 * SIZE  # the arena; x, y, z and w


def distances(operands: tuple[Operand, ...]) -> list[int]:
    return [operand.distance_bytes // SIZE for operand in operands]


def test_what_the_last_step_wrote_is_near_and_inputs_are_a_run_away() -> None:
    # double x: x -> a0     double again: a0 -> a1     add: a1, y -> a0     add: a0, w -> z
    operands = operands_of(CHAIN)
    assert [each.size_bytes for step in operands for each in step] == [SIZE] * 10
    assert distances(operands[0]) == [8, 2]
    assert distances(operands[1]) == [2, 7]
    assert distances(operands[2]) == [3, 8, 3]
    assert distances(operands[3]) == [3, 8, 8]
    assert max(each.distance_bytes for step in operands for each in step) <= WHOLE


def test_host_steps_and_copies_have_operands() -> None:
    operands = operands_of(HOSTED)
    assert [len(step) for step in operands] == [2, 2, 3, 2]
    assert distances(operands[1])[0] == 2


def test_a_kernel_that_reads_a_part_of_a_table_leaves_the_rest_alone() -> None:
    steps = tuple(
        replace(step, bytes_moved=SIZE + 4) if isinstance(step, KernelStep) else step
        for step in CHAIN.steps
    )
    operands = operands_of(replace(CHAIN, steps=steps))
    assert [each.size_bytes for each in operands[0]] == [4, SIZE]
