"""Constants that move from call to call."""

from __future__ import annotations

import math

import numpy as np
from tests.targets import native_target
from tests.unit.tuning.helpers import kernel_of, matmul

from tensorwright.artifacts import Kernel, build, build_request
from tensorwright.base import DType
from tensorwright.records import Status
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.measuring import ChildRunner, MeasureOptions
from tensorwright.tuning.measuring.timing import cold_table
from tensorwright.tuning.space import space_of

ARGUMENTS = np.array([64, 128, 192], np.uint64)


def test_every_call_has_constants_of_its_own() -> None:
    constants = [(1, DType.F32, (32, 33)), (2, DType.F32, (2048,))]
    table = cold_table(ARGUMENTS, constants, 1 << 20)
    strides = 4224 + 8192
    assert table.shape == ((1 << 20) // strides, 3)
    assert (table[:, 0] == 64).all()
    assert (np.diff(table[:, 1:], axis=0) == strides).all()
    assert (table[:, 2] - table[:, 1] == 4224).all()
    assert (table[:, 1:] % 64 == 0).all()


def test_one_place_where_more_are_not_worth_it() -> None:
    assert (cold_table(ARGUMENTS, [(1, DType.F32, (16,))], 1 << 20) == ARGUMENTS).all()
    assert (cold_table(ARGUMENTS, [(1, DType.I32, (4096,))], 1 << 20) == ARGUMENTS).all()
    assert (cold_table(ARGUMENTS, [(1, DType.F32, (4096,))], 30_000) == ARGUMENTS).all()
    assert cold_table(ARGUMENTS, [(1, DType.F32, (4096,))], 0).shape == (1, 3)


def built(size: int) -> Kernel:
    workload, target = matmul(size), native_target()
    space = space_of(state_of(workload), target)
    return build(build_request(workload, format_trace(space.default_trace), target))


def test_answers_are_checked_with_the_true_constants() -> None:
    options = MeasureOptions(repeats=3, min_sample_s=0.0005, cold_bytes=1 << 20)
    with ChildRunner(options) as runner:
        found = runner.measure(matmul(64), [built(64)], 1, math.inf)
        assert found is not None
        assert found[0].status is Status.OK
        wrong = runner.measure(matmul(64), [kernel_of()], 1, math.inf)
        assert wrong is not None
        assert wrong[0].status is not Status.OK
