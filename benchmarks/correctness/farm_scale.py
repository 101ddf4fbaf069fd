"""A farm of a thousand devices that sleep: does the client keep up, and stay small?

    python benchmarks/correctness/farm_scale.py [--devices 1000] [--hours 1] [--speed 15]
        [--unit-s 60] [--json FILE]

Scheduler, client and devices are three processes.  A device is a worker of its own, with its own
connection, that has one unit at a time and sleeps through it; all of them are in one process.
Simulated time runs `--speed` times as fast as real time.  The client hands out units of `--unit-s`
simulated seconds, such as a board needs for a round of candidates, until the time is over.  Printed
are the share of the time in which devices were busy, the units a second, the seconds of processor
that the client used for one, and the growth of its memory after the first quarter.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from farm_faults import Processes, free_port, tell, wait_for

from tensorwright.farm import Payload, Unit, connect
from tensorwright.farm.dask.settings import apply_settings
from tensorwright.farm.dask.worker import RESOURCE, FarmDaskWorker
from tensorwright.farm.serving import Server
from tensorwright.processes import Done

KIND = "sleeper"
START_S = 180.0
BLOB = bytes(20_000)  # about a kernel


async def sleep_through(address: str, devices: int) -> None:
    """All devices, until the process is ended."""
    apply_settings()
    server, executor = Server(), ThreadPoolExecutor(devices)
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
        )
        worker.farm_server = server
        await worker
    await asyncio.Event().wait()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def use(address: str, devices: int, real_s: float, unit_real_s: float) -> dict[str, float]:
    """Keep the devices busy for so many real seconds; what was done and what it took."""
    with connect(address) as farm:
        wait_for(lambda: len(farm.workers()) == devices, START_S)
        started, memory, done, first_memory = time.monotonic(), 0, 0, 0
        processor = resource.getrusage(resource.RUSAGE_SELF)

        def units() -> Iterator[Unit]:
            number = 0
            while time.monotonic() - started < real_s:
                yield Unit(
                    "farm.wait",
                    Payload({"seconds": unit_real_s, "number": number}, (BLOB,)),
                    device=KIND,
                )
                number += 1

        for _, outcome in farm.results(units(), ahead=devices + devices // 5):
            assert isinstance(outcome, Done), outcome
            done += 1
            memory = max(memory, resident_bytes()) if done % 500 == 0 else memory
            if not first_memory and time.monotonic() - started > real_s / 4:
                first_memory = resident_bytes()
        elapsed_s = time.monotonic() - started
        used = resource.getrusage(resource.RUSAGE_SELF)
    used_s = used.ru_utime + used.ru_stime - processor.ru_utime - processor.ru_stime
    return {
        "units": done,
        "units_per_s": done / elapsed_s,
        "real_s": elapsed_s,
        "busy_share": done * unit_real_s / (devices * elapsed_s),
        "client_ms_per_unit": 1e3 * used_s / max(1, done),
        "memory_mib": memory / 2**20,
        "memory_growth_mib": (memory - first_memory) / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--speed", type=float, default=15.0)
    parser.add_argument("--unit-s", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sleep-at", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if asked.sleep_at:
        asyncio.run(sleep_through(asked.sleep_at, asked.devices))
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        farm = Processes(Path(folder), free_port())
        try:
            farm.start_scheduler(silent_s=600)
            wait_for(farm.is_up)
            farm.start(
                "devices",
                *(sys.executable, __file__, "--sleep-at", farm.address),
                *("--devices", str(asked.devices)),
            )
            real_s = 3600 * asked.hours / asked.speed
            facts = use(farm.address, asked.devices, real_s, asked.unit_s / asked.speed)
        finally:
            farm.close()
    facts = {
        "devices": asked.devices,
        "simulated_hours": asked.hours,
        "speed": asked.speed,
        **facts,
    }
    tell(facts, asked.json)


if __name__ == "__main__":
    main()
