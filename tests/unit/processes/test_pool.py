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

from tensorwright.base import InternalError, MachineError
from tensorwright.processes import Died, Done, Job, Raised, Stopped, TimedOut, WorkerPool

pytestmark = pytest.mark.usefixtures("spawned")


def refuse(reason: str) -> None:
    raise MachineError(stage="rules", where="here", reason=reason)


def garble(text: bytes) -> None:
    """Write what is no answer where answers are expected."""
    (descriptor,) = (int(name) for name in sys.argv[1:])
    os.write(descriptor, len(text).to_bytes(4, "big") + text)
    time.sleep(60)


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


def test_a_job_may_allow_less_time_than_its_pool(pool: WorkerPool) -> None:
    jobs = [Job(time.sleep, (60,), limit_s=0.3), Job(time.sleep, (60,), limit_s=90.0)]
    assert pool.run(jobs, 0.5) == [TimedOut(0.3), TimedOut(0.5)]


def test_stopping_abandons_what_is_under_way(pool: WorkerPool) -> None:
    start = time.monotonic()
    jobs = [Job(time.sleep, (60,)) for _ in range(3)]
    outcomes = pool.run(jobs, 60, lambda: time.monotonic() > start + 0.3)
    assert outcomes == [Stopped()] * 3
    assert time.monotonic() - start < 5
    assert pool.run([Job(operator.add, (1, 1))], 10) == [Done(2)]


def test_results_come_with_their_indices_and_failures_among_them(pool: WorkerPool) -> None:
    jobs = [Job(operator.add, (1, 1)), Job(time.sleep, (60,)), Job(os._exit, (3,))]
    outcomes = dict(pool.results([*jobs, Job(operator.truediv, (1, 0))], 0.5))
    assert outcomes[0] == Done(2)
    assert str(outcomes[1]) == "no answer within 0.5 seconds"
    assert str(outcomes[2]) == "the process ended with exit code 3"
    assert str(outcomes[3]).startswith("ZeroDivisionError: division by zero\nTraceback")


def test_an_error_of_ours_is_raised_again(pool: WorkerPool) -> None:
    with pytest.raises(MachineError) as caught:
        list(pool.results([Job(refuse, ("no",))], 10))
    assert caught.value == MachineError(stage="rules", where="here", reason="no")
    (outcome,) = pool.run([Job(refuse, ("no",))], 10)
    assert outcome == Raised("MachineError", str(caught.value), error=caught.value)


def test_a_caller_that_leaves_takes_the_work_along(pool: WorkerPool) -> None:
    for _, outcome in pool.results([Job(operator.add, (1, 1)), Job(time.sleep, (60,))]):
        assert outcome == Done(2)
        break
    assert pool.run([Job(operator.add, (2, 2))] * 3, 10) == [Done(4)] * 3


@pytest.mark.parametrize("answer", [b"no pickle", b"I7\n.", b"cno_such_module\nname\n."])
def test_a_garbled_answer_is_an_outcome(pool: WorkerPool, answer: bytes) -> None:
    garbled, other = pool.run([Job(garble, (answer,)), Job(operator.add, (1, 1))], 10)
    assert isinstance(garbled, Died)
    assert garbled.cause.startswith("the process garbled its answer (")
    assert other == Done(2)


def test_no_more_processes_start_than_there_are_jobs() -> None:
    with WorkerPool(3) as pool:
        pool.run([Job(operator.add, (1, 1))], 10)
        assert len(pool._children) == 1
        pool.start()
        assert len(pool._children) == 3


def test_variables_and_the_first_job_reach_every_process() -> None:
    first = Job(os.chdir, ("/",))
    with WorkerPool(1, first, {"A_VARIABLE": "here"}) as pool:
        for _ in range(2):
            assert pool.run([Job(os.getenv, ("A_VARIABLE",)), Job(os.getcwd)], 10) == [
                Done("here"),
                Done("/"),
            ]
            pool.replace()


def test_ctrl_c_spares_the_workers(pool: WorkerPool) -> None:
    (outcome,) = pool.run([Job(os.getpgrp)], 10)
    assert isinstance(outcome, Done)
    assert outcome.value != os.getpgrp()
    assert pool.run([Job(signal.raise_signal, (signal.SIGINT,))], 10) == [Done(None)]


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
