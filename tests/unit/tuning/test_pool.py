"""Worker processes outlive what their jobs do to them."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorwright.base import InternalError
from tensorwright.processes import Job, WorkerPool
from tensorwright.processes.outcomes import Died, Done, Raised, Stopped, TimedOut


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2) as found:
        yield found


def test_outcomes_come_in_the_order_of_the_jobs(pool: WorkerPool) -> None:
    jobs = [Job(operator.mul, (number, 10)) for number in range(20)]
    assert pool.run(jobs, 10) == [Done(10 * number) for number in range(20)]


def test_an_error_is_an_outcome(pool: WorkerPool) -> None:
    (outcome,) = pool.run([Job(operator.truediv, (1, 0))], 10)
    assert isinstance(outcome, Raised)
    assert outcome.kind == "ZeroDivisionError"
    assert "division by zero" in str(outcome)
    assert not outcome.is_memory


def test_no_memory_is_told_apart(pool: WorkerPool) -> None:
    (outcome,) = pool.run([Job(bytearray, (1 << 62,))], 10)
    assert isinstance(outcome, Raised)
    assert outcome.is_memory


def test_a_worker_that_crashes_is_replaced_and_the_others_go_on(pool: WorkerPool) -> None:
    jobs = [
        Job(os._exit, (3,)),
        Job(os.abort, ()),
        Job(signal.raise_signal, (signal.SIGKILL,)),
        *(Job(operator.add, (number, 1)) for number in range(4)),
    ]
    exited, aborted, killed, *rest = pool.run(jobs, 10)
    assert exited == Died("the process ended with exit code 3", was_killed=False)
    assert isinstance(aborted, Died)
    assert aborted.cause.startswith("the process ended with SIGABRT (Aborted)")
    assert killed == Died("the process ended with SIGKILL (Killed)", was_killed=True)
    assert rest == [Done(number + 1) for number in range(4)]


def test_a_worker_that_hangs_is_killed(pool: WorkerPool) -> None:
    start = time.monotonic()
    jobs = [Job(time.sleep, (60,)), Job(operator.add, (1, 1))]
    assert pool.run(jobs, 0.3) == [TimedOut(0.3), Done(2)]
    assert time.monotonic() - start < 5


def test_stopping_abandons_what_is_under_way(pool: WorkerPool) -> None:
    start = time.monotonic()
    jobs = [Job(time.sleep, (60,)) for _ in range(3)]
    outcomes = pool.run(jobs, 60, lambda: time.monotonic() > start + 0.3)
    assert outcomes == [Stopped()] * 3
    assert time.monotonic() - start < 5
    assert pool.run([Job(operator.add, (1, 1))], 10) == [Done(2)]


def test_a_pool_whose_workers_cannot_start_says_so() -> None:
    broken = WorkerPool(1, Job(operator.truediv, (1, 0)))
    with broken, pytest.raises(InternalError, match="division by zero"):
        broken.run([Job(operator.add, (1, 1))], 10)


def test_a_closed_pool_refuses() -> None:
    pool = WorkerPool(1)
    pool.close()
    pool.close()
    with pytest.raises(InternalError, match="it is closed"):
        pool.run([Job(operator.add, (1, 1))], 10)


OWNER = """
import operator, sys, time
from tensorwright.processes import Job, WorkerPool
pool = WorkerPool(1)
pool.run([Job(operator.add, (1, 1))], 10)
print(pool._children[0].pid, flush=True)
pool.run([Job(time.sleep, (600,))], 600)
"""


def test_workers_end_with_their_owner_however_it_ends() -> None:
    source = str(Path(__file__).parents[3] / "src")
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": source},
    )
    with owner:
        assert owner.stdout is not None
        worker = int(owner.stdout.readline())
        owner.kill()
    deadline = time.monotonic() + 5
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(worker)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
