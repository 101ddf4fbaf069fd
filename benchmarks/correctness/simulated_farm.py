"""Workers whose devices are simulated: what a program takes there is a function of its schedule.

    python benchmarks/correctness/simulated_farm.py worker ADDRESS NAME [--fault half|wrong|hang]
        [--after N]
    python benchmarks/correctness/simulated_farm.py client ADDRESS RECORDS SEED TRIALS

Such a worker builds nothing: the code of its kernels is the schedule's text.  So a drill knows of
every record whether it is true.  All else is as in any worker.  A faulty device halves all times,
or says that right programs are wrong, or stands still, from its Nth measurement on.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tensorwright.artifacts import BuildRequest, Kernel
from tensorwright.base import detect_target
from tensorwright.codegen import Signature
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.farm import Farm, connect, device_for
from tensorwright.farm.dask.worker import work
from tensorwright.graph import Workload, program
from tensorwright.records import Record, RecordStore, Setting, Status
from tensorwright.tuning import Task
from tensorwright.tuning.measuring import Measurement
from tensorwright.tuning.on_farm import kind_for, worker_functions
from tensorwright.tuning.session import Options, TuneResult, tune

MEASURE_S = 0.02
ROUND = 16
THREADS = 1


def true_time_s(trace: str) -> float:
    """Between 1 and 4 ms, by the schedule alone."""
    digest = hashlib.sha256(trace.encode()).digest()
    return 0.001 + 0.003 * int.from_bytes(digest[:4]) / 2**32


class SimulatedBuilder:
    def __init__(self, workers: int) -> None:
        pass

    def build(
        self, requests: Sequence[BuildRequest], should_stop: Callable[[], bool]
    ) -> list[Kernel]:
        return [
            Kernel(each.trace.encode(), Signature("kernel", ()), 0.0, each.target)
            for each in requests
        ]


class SimulatedRunner:
    """In place of a `ChildRunner`.  `fault` begins with the measurement number `after`."""

    fault = ""
    after = 0
    count = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def measure(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[Measurement]:
        time.sleep(MEASURE_S)
        cls = type(self)
        cls.count += 1
        fault = cls.fault if cls.count > cls.after else ""
        if fault == "hang":
            os.kill(os.getpid(), signal.SIGSTOP)
        times = [true_time_s(kernel.object_code.decode(errors="replace")) for kernel in kernels]
        if fault == "wrong":
            return [Measurement(Status.WRONG_ANSWER, error="off by 1") for _ in times]
        factor = 0.5 if fault == "half" else 1.0
        return [Measurement(Status.OK, (factor * time_s,)) for time_s in times]

    def close(self) -> None:
        pass


def run_worker(address: str, name: str, fault: str, after: int) -> None:
    SimulatedRunner.fault, SimulatedRunner.after = fault, after
    worker_functions.PoolBuilder = SimulatedBuilder  # type: ignore[misc, assignment]
    worker_functions.ChildRunner = SimulatedRunner  # type: ignore[misc, assignment]
    worker_functions._QUIET_EVERY_S = math.inf  # a simulated device is quiet
    device = device_for(detect_target())
    work(address, 2, device, name=name, tell=lambda line: print(line, flush=True))


def workload() -> Workload:
    a, b, k = placeholder("a", (256, 256)), placeholder("b", (256, 256)), reduce_axis("k", 256)
    y = compute("y", (256, 256), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    return program([y])


def search(farm: Farm, store: RecordStore, seed: int, trials: int) -> TuneResult:
    """A session of so many trials; each schedule is measured once."""
    target = detect_target()
    setting = Setting(target, THREADS, kind_for(farm, target).hardware)
    options = Options(
        round_size=ROUND, should_rank=False, recheck_rounds=0, strategy="random", seeds=0
    )
    how = replace(options, trials=trials, seed=seed, farm=farm)
    return tune([Task(workload())], setting, store, how)


def run_client(address: str, records: Path, seed: int, trials: int) -> None:
    with connect(address) as farm, RecordStore(records) as store:
        print(search(farm, store, seed, trials).trials, flush=True)


def judge(records: Sequence[Record], trials: int) -> dict[str, int]:
    """How many records are missing, doubled and false."""
    traces = [record.trace for record in records]
    false = [
        record
        for record in records
        if record.status is not Status.OK
        or not math.isclose(record.times_s[0], true_time_s(record.trace), rel_tol=1e-9)
    ]
    return {
        "lost": max(0, trials - len(set(traces))),
        "doubled": len(traces) - len(set(traces)),
        "false": len(false),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sides = parser.add_subparsers(dest="side", required=True)
    worker = sides.add_parser("worker")
    worker.add_argument("address")
    worker.add_argument("name")
    worker.add_argument("--fault", default="")
    worker.add_argument("--after", type=int, default=0)
    client = sides.add_parser("client")
    client.add_argument("address")
    client.add_argument("records", type=Path)
    client.add_argument("seed", type=int)
    client.add_argument("trials", type=int)
    asked = parser.parse_args()
    if asked.side == "worker":
        run_worker(asked.address, asked.name, asked.fault, asked.after)
    else:
        run_client(asked.address, asked.records, asked.seed, asked.trials)


if __name__ == "__main__":
    main()
