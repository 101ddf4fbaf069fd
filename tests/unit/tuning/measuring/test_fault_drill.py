"""Kernels that crash, hang, want all memory or answer wrongly cost a record, and nothing else.

First each fault alone, then all of them in one session, then a session killed in mid-round.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.targets import native_target
from tests.unit.tuning import helpers

from tensorwright.artifacts import BuildRequest, Kernel
from tensorwright.base import CpuTarget
from tensorwright.records import (
    MemoryStore,
    Record,
    RecordStore,
    Setting,
    Status,
    best_record,
    open_store,
)
from tensorwright.tuning import measuring
from tensorwright.tuning.session import Options, SessionParts, StopReason, tune
from tensorwright.tuning.space import Space
from tensorwright.tuning.task import Task

OPTIONS = measuring.MeasureOptions(repeats=3, min_sample_s=0.0005, limit_s=1.0)
SEGFAULT = """
  %nowhere = getelementptr float, ptr %x, i64 -100000000000
  store i32 1, ptr %nowhere
"""
DOUBLE_TO = """
  %from = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %from
  %twice = fadd float %value, %value
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[measuring.ChildRunner]:
    with measuring.ChildRunner(OPTIONS) as found:
        yield found


def measure(
    runner: measuring.ChildRunner, *kernels: Kernel, best_s: float = math.inf
) -> list[measuring.Measurement]:
    found = runner.measure(helpers.doubled(), kernels, 1, best_s)
    assert found is not None
    return found


def check_good(runner: measuring.ChildRunner) -> None:
    (good,) = measure(runner, helpers.kernel_of())
    assert good.status is Status.OK
    assert len(good.times_s) == OPTIONS.repeats
    assert all(0 < time_s < 0.01 for time_s in good.times_s)


def test_a_good_kernel_is_timed(runner: measuring.ChildRunner) -> None:
    check_good(runner)


def test_a_crash(runner: measuring.ChildRunner) -> None:
    (one,) = measure(runner, helpers.kernel_of(SEGFAULT))
    assert one.status is Status.CRASHED
    assert "SIGSEGV" in one.error
    check_good(runner)


def test_an_endless_loop(runner: measuring.ChildRunner) -> None:
    (one,) = measure(runner, endless())
    assert one == measuring.Measurement(Status.TIMED_OUT, error="not done within 1 s")
    check_good(runner)


def endless() -> Kernel:
    """A loop of centuries, which LLVM may not remove."""
    return helpers.kernel_of('  call void asm sideeffect "", ""()\n', count=1 << 62)


def test_more_memory_than_there_is(runner: measuring.ChildRunner) -> None:
    (one,) = measure(runner, helpers.kernel_of(workspace_bytes=1 << 45))
    assert one.status is Status.OUT_OF_MEMORY
    check_good(runner)


def test_a_wrong_answer(runner: measuring.ChildRunner) -> None:
    body = (
        DOUBLE_TO + "  %to = getelementptr float, ptr %y, i64 %i\n  store float %value, ptr %to\n"
    )
    (one,) = measure(runner, helpers.kernel_of(body))
    assert one.status is Status.WRONG_ANSWER
    assert one.times_s == ()
    assert one.error.startswith(f"y: {helpers.SIZE} elements (100 %) are wrong, first at [0]:")
    check_good(runner)


def test_an_answer_that_is_not_finished(runner: measuring.ChildRunner) -> None:
    (one,) = measure(runner, helpers.kernel_of(count=helpers.SIZE - 1))
    assert one.status is Status.WRONG_ANSWER
    assert "1 elements" in one.error
    assert f"[{helpers.SIZE - 1}]: nan" in one.error


@pytest.mark.parametrize("place", [-1, helpers.SIZE])
def test_writing_beside_the_answer(runner: measuring.ChildRunner, place: int) -> None:
    body = DOUBLE_TO + (
        "  %to = getelementptr float, ptr %y, i64 %i\n  store float %twice, ptr %to\n"
        f"  %bad = getelementptr float, ptr %y, i64 {place}\n  store float 1.0, ptr %bad\n"
    )
    (one,) = measure(runner, helpers.kernel_of(body))
    assert one == measuring.Measurement(Status.WRONG_ANSWER, error="it wrote outside of y")
    check_good(runner)


COUNTED = """
  %before = load i64, ptr @elements
  %after = add i64 %before, 1
  store i64 %after, ptr @elements
"""
LATER = COUNTED + f"  %is.later = icmp sge i64 %before, {helpers.SIZE}\n"
ELEMENTS = "@elements = internal global i64 0\n"


@pytest.mark.parametrize("count", [1, 2])
def test_an_answer_that_is_right_once(runner: measuring.ChildRunner, count: int) -> None:
    """All calls after the first give x in the place of 2 x."""
    body = LATER + helpers.DOUBLE.replace(
        "fadd float %value, %value",
        "fadd float %value, %more.value\n",
    ).replace("  %twice", "  %more.value = select i1 %is.later, float 0.0, float %value\n  %twice")
    *_, one = measure(
        runner, *[helpers.kernel_of()] * (count - 1), helpers.kernel_of(body, beside=ELEMENTS)
    )
    assert one.status is Status.WRONG_ANSWER
    assert one.times_s == ()
    text = f"after it was timed, on other inputs, y: {helpers.SIZE} elements (100 %) are wrong"
    assert one.error.startswith(text)
    check_good(runner)


def test_an_answer_that_is_kept_from_the_first_call(runner: measuring.ChildRunner) -> None:
    """Later calls write nothing: fast, and right for as long as the inputs stay the same."""
    body = (
        LATER
        + DOUBLE_TO
        + (
            "  %right = getelementptr float, ptr %y, i64 %i\n"
            "  %nowhere = getelementptr float, ptr @unread, i64 %i\n"
            "  %to = select i1 %is.later, ptr %nowhere, ptr %right\n"
            "  store float %twice, ptr %to\n"
        )
    )
    unread = f"@unread = internal global [{helpers.SIZE} x float] zeroinitializer\n"
    (one,) = measure(runner, helpers.kernel_of(body, beside=ELEMENTS + unread))
    assert one.status is Status.WRONG_ANSWER
    assert "on other inputs" in one.error
    check_good(runner)


def test_guards_that_are_broken_while_it_is_timed(runner: measuring.ChildRunner) -> None:
    body = (
        LATER
        + helpers.DOUBLE
        + (
            f"  %beyond = getelementptr float, ptr %y, i64 {helpers.SIZE}\n"
            "  %aim = select i1 %is.later, ptr %beyond, ptr @elsewhere\n"
            "  store float 1.0, ptr %aim\n"
        )
    )
    elsewhere = "@elsewhere = internal global float 0.0\n"
    (one,) = measure(runner, helpers.kernel_of(body, beside=ELEMENTS + elsewhere))
    assert one.status is Status.WRONG_ANSWER
    assert one.error == "it wrote outside of its results while it was timed"
    check_good(runner)


def test_code_that_is_none(runner: measuring.ChildRunner) -> None:
    broken = replace(helpers.kernel_of(), object_code=b"\x7fELF nonsense")
    (one,) = measure(runner, broken)
    assert one.status is Status.RUN_ERROR
    check_good(runner)


def test_a_slow_kernel_is_dropped(runner: measuring.ChildRunner) -> None:
    (one,) = measure(runner, helpers.kernel_of(), best_s=1e-9)
    assert one.status is Status.CENSORED
    assert len(one.times_s) <= 2


def test_kernels_take_turns_and_wrong_ones_are_left_out(runner: measuring.ChildRunner) -> None:
    wrong = helpers.kernel_of(count=helpers.SIZE - 1)
    found = measure(runner, helpers.kernel_of(), wrong, helpers.kernel_of(), best_s=1e-9)
    assert [one.status for one in found] == [Status.OK, Status.WRONG_ANSWER, Status.OK]
    check_good(runner)


def test_turns_fail_together_where_one_ends_the_process(runner: measuring.ChildRunner) -> None:
    found = measure(runner, helpers.kernel_of(), helpers.kernel_of(SEGFAULT))
    assert [one.status for one in found] == [Status.CRASHED, Status.CRASHED]
    check_good(runner)


def test_the_wish_to_stop_abandons_a_kernel(runner: measuring.ChildRunner) -> None:
    assert runner.measure(helpers.doubled(), [endless()], 1, math.inf, lambda: True) is None
    check_good(runner)


def test_another_workload_is_prepared_when_it_comes(runner: measuring.ChildRunner) -> None:
    found = runner.measure(helpers.doubled("another"), [helpers.kernel_of()], 1, math.inf)
    assert found is not None
    assert found[0].status is Status.OK
    check_good(runner)


def test_caches_can_be_flushed_between_calls() -> None:
    options = measuring.MeasureOptions(repeats=3, min_sample_s=0.0005, flush_bytes=1 << 20)
    with measuring.ChildRunner(options) as runner:
        check_good(runner)


# All faults in one session

MMAP = """
  %got = call i64 asm sideeffect "syscall",
    "={rax},{rax},{rdi},{rsi},{rdx},{r10},{r8},{r9},~{rcx},~{r11},~{memory}"
    (i64 9, i64 0, i64 SIZE, i64 3, i64 34, i64 -1, i64 0)
"""
FAULTS = {
    2: Status.CRASHED,  # writes to address 0
    3: Status.TIMED_OUT,  # never ends
    4: Status.OUT_OF_MEMORY,  # a workspace of 32 TiB
    5: Status.WRONG_ANSWER,  # half of each value
    6: Status.WRONG_ANSWER,  # writes before its output
    7: Status.RUN_ERROR,  # no machine code
    9: Status.BUILD_ERROR,  # does not build
}
COUNT = 12


class FaultyBuilder(helpers.FakeBuilder):
    """Real kernels; those of the numbers in `FAULTS` have each a fault of their own."""

    def _one(self, request: BuildRequest) -> measuring.BuildResult:
        match helpers.number_of(request.trace):
            case 2:
                return helpers.kernel_of(SEGFAULT)
            case 3:
                return endless()
            case 4:
                return helpers.kernel_of(workspace_bytes=1 << 45)
            case 5:
                return helpers.kernel_of(helpers.DOUBLE.replace("%value, %value", "%value, 0.0"))
            case 6:
                stray = "  %before = getelementptr float, ptr %y, i64 -1\n"
                return helpers.kernel_of(
                    helpers.DOUBLE + stray + "  store float 1.0, ptr %before\n"
                )
            case 7:
                return replace(helpers.kernel_of(), object_code=b"nonsense")
            case 9:
                return measuring.BuildFailed(Status.BUILD_ERROR, "while building, it fell")
            case _:
                return helpers.kernel_of()


def small_space(task: Task, target: CpuTarget) -> Space:
    return helpers.numbered_space(task, target, COUNT)


def test_a_session_survives_all_faults_and_none_of_them_wins() -> None:
    store = MemoryStore()
    with measuring.ChildRunner(OPTIONS) as runner:
        result = tune(
            [Task(helpers.doubled())],
            Setting(native_target(), 1, "here"),
            store,
            Options(trials=100, seed=0, round_size=COUNT),
            parts=SessionParts(FaultyBuilder(), runner, make_space=small_space),
        )
    assert result.reason is StopReason.EXHAUSTED
    newest: dict[int, Record] = {helpers.number_of(one.trace): one for one in store.query()}
    assert set(newest) == set(range(1, COUNT + 1))
    assert {n: newest[n].status for n in FAULTS} == FAULTS
    assert all(newest[n].error and not newest[n].times_s for n in FAULTS)
    assert all(newest[n].status.is_timed for n in newest.keys() - FAULTS.keys())
    ranked = store.top(
        COUNT, workload="doubled", target=native_target().key, hardware="here", threads=1
    )
    assert not {helpers.number_of(one.trace) for one in ranked} & FAULTS.keys()
    assert helpers.number_of(result.tasks[0].trace) not in FAULTS
    found = best_record(store, helpers.doubled(), Setting(native_target(), 1, "here"))
    assert found is None or helpers.number_of(found[0].trace) not in FAULTS


@pytest.mark.skipif(native_target().arch != "x86-64", reason="the system call is x86-64's")
def test_a_kernel_that_takes_all_memory(runner: measuring.ChildRunner) -> None:
    """It maps memory until none is left, and gives none back."""
    body = MMAP.replace("SIZE", str(1 << 30))
    (one,) = measure(runner, helpers.kernel_of(body + helpers.DOUBLE, count=helpers.SIZE))
    assert one.status in (Status.OUT_OF_MEMORY, Status.OK)
    (small,) = measure(runner, helpers.kernel_of(MMAP.replace("SIZE", str(1 << 20)), count=1 << 19))
    assert small.status not in (Status.OK, Status.CENSORED)
    check_good(runner)


# Killed in mid-round

PROGRAM = """
import tensorwright
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over

x, w, k = placeholder("x", (16, 48)), placeholder("w", (48, 64)), reduce_axis("k", 48)
layer = compute("y", (16, 64), lambda i, j: sum_over(x[i, k] * w[k, j], k))
"""
TRIALS = 24


def test_a_killed_tuner_loses_no_record_and_the_same_command_goes_on(tmp_path: Path) -> None:
    module, path = tmp_path / "layer.py", tmp_path / "records.sqlite"
    module.write_text(PROGRAM)
    command = [sys.executable, "-m", "tensorwright", "tune", f"{module}:layer"]
    command += ["--trials", str(TRIALS), "--threads", "1", "--records", str(path)]
    source = str(Path(__file__).parents[4] / "src")
    variables = os.environ | {"PYTHONPATH": source, "TENSORWRIGHT_HOME": str(tmp_path / "home")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stderr is not None
        assert any("(search)" in line for line in process.stderr)
        time.sleep(0.1)  # into the next round
        process.send_signal(signal.SIGKILL)
    with RecordStore(path) as store:
        kept = tuple(store.query())
    assert 2 <= len(kept) < TRIALS
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{TRIALS} trials in" in done.stdout
    with open_store(path) as store:
        records = tuple(store.query())
        best = store.top(1, **_setting(records[0]))[0]
    assert records[: len(kept)] == kept
    assert len({one.trace for one in records}) == TRIALS
    assert best.status is Status.OK


def _setting(record: Record) -> dict[str, str | int]:
    return {name: getattr(record, name) for name in ("workload", "target", "hardware", "threads")}
