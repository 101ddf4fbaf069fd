"""A farm of a thousand devices that sleep: does the client keep up, and stay small?

    python benchmarks/correctness/farm_scale.py [--devices 1000] [--hours 1] [--speed 7.5]
        [--trial-s 5] [--round 40] [--json FILE]

Scheduler, client and devices are three processes.  A device is a worker of its own, with its own
connection, that has one unit at a time.  It sleeps `--trial-s` simulated seconds for each trial:
what a small board needs to load a program, check its answer and time it.  All devices are in one
process.  Simulated time runs `--speed` times as fast as real time.  The client is the runner of a
session, with its references and its second opinions: it gets rounds of `--round` trials a device,
each with a kernel of its own, until the time is over.

Printed are the share of the time that devices spent on trials; the seconds of processor that each
process used for a simulated second; and the memory of the client after each tenth of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import dask
from farm_faults import Processes, free_port, tell, wait_for
from simulated_farm import workload

from tensorwright.artifacts import Kernel
from tensorwright.base import detect_target
from tensorwright.codegen import Signature
from tensorwright.farm import Device, Payload, Server, connect
from tensorwright.farm.dask.worker import RESOURCE, FarmDaskWorker, apply_settings
from tensorwright.farm.serving import pack_answer, unpack_request
from tensorwright.processes import Done
from tensorwright.records import Status
from tensorwright.tuning.measuring import Measurement, Trial
from tensorwright.tuning.on_farm import FarmRunner
from tensorwright.tuning.on_farm.worker_functions import write

KIND = "sleeper"
START_S = 400.0
KERNEL_BYTES = 8_000
PARTS = 10


class SleepingServer(Server):
    """Answers as a device that takes so many real seconds, and says simulated ones, for a trial."""

    def __init__(self, name: str, trial_s: float, speed: float) -> None:
        super().__init__()
        self.name, self.trial_s, self.speed = name, trial_s, speed

    def answer(self, request: bytes, should_stop: Callable[[], bool] = lambda: False) -> bytes:
        unit = unpack_request(request, b"").unit
        kernels = unit.payload.blobs[unit.payload.data["workloads"] :]
        seconds = self.trial_s * len(kernels)
        time.sleep(seconds / self.speed)
        said = {
            "measured": write(tuple(Measurement(Status.OK, (true_s(each),)) for each in kernels)),
            "worker": self.name,
            "reference_s": 0.001,
            "seconds": seconds,
        }
        return pack_answer(Done(Payload(said)), request, b"")


def true_s(kernel: bytes) -> float:
    """What a program takes, by its code alone."""
    return 0.001 + int.from_bytes(kernel[-2:]) * 1e-8


async def sleep_through(
    address: str, devices: int, trial_s: float, speed: float, folder: str
) -> None:
    """All devices, until the process is ended."""
    apply_settings()
    for name in ("system-monitor.interval", "tick.interval", "tick.cycle"):
        dask.config.set({f"distributed.admin.{name}": "1h"})  # each looks at the whole process
    executor = ThreadPoolExecutor(devices)
    state = json.dumps(asdict(Device(KIND, KIND, "")))
    for number in range(devices):
        worker = FarmDaskWorker(
            address,
            nthreads=1,
            name=f"device-{number}",
            resources={f"{RESOURCE}{KIND}": 1},
            executor=executor,
            memory_limit=0,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            local_directory=f"{folder}/{number}",
            metrics={"tensorwright": lambda _: {"device": state}},
        )
        worker.farm_server = SleepingServer(f"device-{number}", trial_s, speed)
        await worker
    await asyncio.Event().wait()


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_s(process: int) -> float:
    """Seconds of processor that a process has used until now."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Course:
    """What was done until now, and the memory after each part of the time."""

    real_s: float
    started: float = field(default_factory=time.monotonic)
    trials: int = 0
    rounds: int = 0
    memory_mib: list[float] = field(default_factory=list)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    @property
    def is_over(self) -> bool:
        return self.elapsed_s > self.real_s

    def look(self) -> None:
        """Note the memory after each part of the time."""
        if self.elapsed_s > (len(self.memory_mib) + 1) * self.real_s / PARTS:
            self.memory_mib.append(round(resident_mib(), 1))
            print(f"{self.elapsed_s:6.1f} s: {self.memory_mib[-1]} MiB", flush=True)


def use(farm_here: Processes, asked: argparse.Namespace) -> dict[str, object]:
    """Keep the devices busy until the time is over; what was done and what it took."""
    processes = {"client": os.getpid()}
    processes |= {name: one.pid for name, one in farm_here.running.items()}
    target, code, one = detect_target(), os.urandom(KERNEL_BYTES), workload()

    def trials(course: Course) -> Iterator[Trial]:
        for number in range(asked.round * asked.devices):
            course.look()
            if course.is_over:
                return
            own = code + (number % 65536).to_bytes(2)
            kernel = Kernel(own, Signature("kernel", ()), 0.0, target)
            yield Trial(number, one, kernel, 1, math.inf)

    with connect(farm_here.address) as farm:
        wait_for(lambda: len(farm.workers()) == asked.devices, START_S, every_s=2.0)
        runner = FarmRunner(farm, KIND, target)
        before_s = {name: processor_s(pid) for name, pid in processes.items()}
        course = Course(3600 * asked.hours / asked.speed)
        while not course.is_over:
            for trial, measured in runner.measure_each(
                trials(course), most=asked.round * asked.devices
            ):
                assert measured.times_s == (true_s(trial.kernel.object_code),), measured
                course.trials += 1
            course.rounds += 1
        elapsed_s = course.elapsed_s
        used_s = {name: processor_s(pid) - before_s[name] for name, pid in processes.items()}
        assert not runner.devices.set_aside
    simulated_s = elapsed_s * asked.speed
    return {
        "trials": course.trials,
        "rounds": course.rounds,
        "real_s": elapsed_s,
        "trials_per_simulated_s": course.trials / simulated_s,
        "busy_share": course.trials * asked.trial_s / (asked.devices * simulated_s),
        "client_ms_per_trial": 1e3 * used_s["client"] / max(1, course.trials),
        **{f"{name}_share_of_a_processor": each / simulated_s for name, each in used_s.items()},
        "memory_mib": course.memory_mib,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--speed", type=float, default=7.5)
    parser.add_argument("--trial-s", type=float, default=5.0)
    parser.add_argument("--round", type=int, default=40)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sleep-at", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if asked.sleep_at:
        asyncio.run(
            sleep_through(
                asked.sleep_at, asked.devices, asked.trial_s, asked.speed, tempfile.mkdtemp()
            )
        )
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        farm = Processes(Path(folder), free_port())
        try:
            farm.start_scheduler(silent_s=600)
            wait_for(farm.is_up)
            farm.start(
                "devices",
                *(sys.executable, __file__, "--sleep-at", farm.address),
                *("--devices", str(asked.devices), "--speed", str(asked.speed)),
                *("--trial-s", str(asked.trial_s)),
            )
            facts = use(farm, asked)
        finally:
            farm.close()
    facts = {
        "devices": asked.devices,
        "simulated_hours": asked.hours,
        "speed": asked.speed,
        "trial_s": asked.trial_s,
        "round": asked.round,
        **facts,
    }
    tell(facts, asked.json)


if __name__ == "__main__":
    main()
