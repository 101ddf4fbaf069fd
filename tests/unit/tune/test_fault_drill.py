"""Kernels that crash, hang, want all memory or answer wrongly cost a record, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from tests.unit.tune.helpers import SIZE, doubled, kernel_of

from tensorwright.records import Status
from tensorwright.tune import Built, ChildRunner, Measurement, MeasureOptions

OPTIONS = MeasureOptions(repeats=3, min_sample_s=0.0005, limit_s=1.0)
SEGFAULT = "  store i32 1, ptr null\n"
DOUBLE_TO = """
  %from = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %from
  %twice = fadd float %value, %value
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[ChildRunner]:
    with ChildRunner(OPTIONS) as found:
        yield found


def measure(runner: ChildRunner, *kernels: Built, best_s: float = math.inf) -> list[Measurement]:
    found = runner.measure(doubled(), kernels, 1, best_s)
    assert found is not None
    return found


def check_good(runner: ChildRunner) -> None:
    (good,) = measure(runner, kernel_of())
    assert good.status is Status.OK
    assert len(good.times_s) == OPTIONS.repeats
    assert all(0 < time_s < 0.01 for time_s in good.times_s)


def test_a_good_kernel_is_timed(runner: ChildRunner) -> None:
    check_good(runner)


def test_a_crash(runner: ChildRunner) -> None:
    (one,) = measure(runner, kernel_of(SEGFAULT))
    assert one.status is Status.CRASHED
    assert "SIGSEGV" in one.error
    check_good(runner)


def test_an_endless_loop(runner: ChildRunner) -> None:
    (one,) = measure(runner, endless())
    assert one == Measurement(Status.TIMED_OUT, error="not done within 1 s")
    check_good(runner)


def endless() -> Built:
    """A loop of centuries, which LLVM may not remove."""
    return kernel_of('  call void asm sideeffect "", ""()\n', count=1 << 62)


def _fields(kernel: Built) -> tuple[object, ...]:
    return tuple(getattr(kernel, name) for name in kernel.__slots__)


def test_more_memory_than_there_is(runner: ChildRunner) -> None:
    (one,) = measure(runner, kernel_of(workspace_bytes=1 << 45))
    assert one.status is Status.OUT_OF_MEMORY
    check_good(runner)


def test_a_wrong_answer(runner: ChildRunner) -> None:
    body = (
        DOUBLE_TO + "  %to = getelementptr float, ptr %y, i64 %i\n  store float %value, ptr %to\n"
    )
    (one,) = measure(runner, kernel_of(body))
    assert one.status is Status.WRONG_ANSWER
    assert one.times_s == ()
    assert one.error.startswith(f"y: {SIZE} elements (100 %) are wrong, first at [0]:")
    check_good(runner)


def test_an_answer_that_is_not_finished(runner: ChildRunner) -> None:
    (one,) = measure(runner, kernel_of(count=SIZE - 1))
    assert one.status is Status.WRONG_ANSWER
    assert "1 elements" in one.error
    assert f"[{SIZE - 1}]: nan" in one.error


@pytest.mark.parametrize("place", [-1, SIZE])
def test_writing_beside_the_answer(runner: ChildRunner, place: int) -> None:
    body = DOUBLE_TO + (
        "  %to = getelementptr float, ptr %y, i64 %i\n  store float %twice, ptr %to\n"
        f"  %bad = getelementptr float, ptr %y, i64 {place}\n  store float 1.0, ptr %bad\n"
    )
    (one,) = measure(runner, kernel_of(body))
    assert one == Measurement(Status.WRONG_ANSWER, error="it wrote outside of y")
    check_good(runner)


def test_code_that_is_none(runner: ChildRunner) -> None:
    broken = Built(b"\x7fELF nonsense", "kernel", *_fields(kernel_of())[2:])  # type: ignore[arg-type]
    (one,) = measure(runner, broken)
    assert one.status is Status.RUN_ERROR
    check_good(runner)


def test_a_slow_kernel_is_dropped(runner: ChildRunner) -> None:
    (one,) = measure(runner, kernel_of(), best_s=1e-9)
    assert one.status is Status.CENSORED
    assert len(one.times_s) <= 2


def test_kernels_take_turns_and_wrong_ones_are_left_out(runner: ChildRunner) -> None:
    wrong = kernel_of(count=SIZE - 1)
    found = measure(runner, kernel_of(), wrong, kernel_of(), best_s=1e-9)
    assert [one.status for one in found] == [Status.OK, Status.WRONG_ANSWER, Status.OK]
    check_good(runner)


def test_turns_fail_together_where_one_ends_the_process(runner: ChildRunner) -> None:
    found = measure(runner, kernel_of(), kernel_of(SEGFAULT))
    assert [one.status for one in found] == [Status.CRASHED, Status.CRASHED]
    check_good(runner)


def test_the_wish_to_stop_abandons_a_kernel(runner: ChildRunner) -> None:
    assert runner.measure(doubled(), [endless()], 1, math.inf, lambda: True) is None
    check_good(runner)


def test_another_workload_is_prepared_when_it_comes(runner: ChildRunner) -> None:
    found = runner.measure(doubled("another"), [kernel_of()], 1, math.inf)
    assert found is not None
    assert found[0].status is Status.OK
    check_good(runner)


def test_caches_can_be_flushed_between_calls() -> None:
    options = MeasureOptions(repeats=3, min_sample_s=0.0005, flush_bytes=1 << 20)
    with ChildRunner(options) as runner:
        check_good(runner)
