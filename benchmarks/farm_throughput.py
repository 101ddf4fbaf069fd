"""Trials a second of a session here, and of the same session on two workers of this machine.

    python benchmarks/farm_throughput.py [--trials 96] [--rounds 2] [--json FILE]

One worker measures, the other builds only; scheduler and client are processes of their own.  The
sessions take turns, each with a store of its own and the same seed.
Printed are trials a second, their ratio, and the overhead of a unit: its round trip when it does
nothing, one after the other, which sessions partly hide by sending the next one ahead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "correctness"))
from farm_faults import Processes, free_port, tell, wait_for
from simulated_farm import workload

from tensorwright.base import detect_target
from tensorwright.farm import Farm, Payload, Unit, connect
from tensorwright.records import MemoryStore, Setting
from tensorwright.tuning import Task
from tensorwright.tuning.on_farm import kind_for
from tensorwright.tuning.session import Options, tune

UNITS = 200


def session_s(farm: Farm | None, trials: int, hardware: str) -> float:
    setting = Setting(detect_target(), 2, hardware)
    options = Options(should_rank=False, recheck_rounds=0, strategy="random", seeds=0)
    how = replace(options, trials=trials, seed=0, farm=farm)
    started = time.monotonic()
    result = tune([Task(workload())], setting, MemoryStore(), how)
    assert result.trials == trials
    return time.monotonic() - started


def overhead_s(farm: Farm) -> float:
    """What a unit takes that does nothing, with a payload as large as a kernel, in a row."""
    blob = bytes(60_000)
    started = time.monotonic()
    for number in range(UNITS):
        farm.run([Unit("farm.wait", Payload({"seconds": 0, "number": number}, (blob,)))])
    return (time.monotonic() - started) / UNITS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        processes = Processes(Path(folder), free_port())
        command = (sys.executable, "-m", "tensorwright", "worker", processes.address)
        try:
            processes.start_scheduler()
            wait_for(processes.is_up)
            processes.start("shared", *command, "--slots", "1", "--device", "native", "--name", "1")
            processes.start("builds", *command, "--slots", "1", "--device", "none", "--name", "2")
            with connect(processes.address) as farm:
                wait_for(lambda: len(farm.workers()) == 2)
                hardware = kind_for(farm, detect_target()).hardware
                session_s(farm, 16, hardware)
                session_s(None, 16, hardware)
                here, there = [], []
                for _ in range(asked.rounds):
                    here.append(session_s(None, asked.trials, hardware))
                    there.append(session_s(farm, asked.trials, hardware))
                unit_s = overhead_s(farm)
        finally:
            processes.close()
    facts = {
        "trials": asked.trials,
        "here_trials_per_s": asked.trials / min(here),
        "farm_trials_per_s": asked.trials / min(there),
        "ratio": min(here) / min(there),
        "unit_overhead_ms": 1e3 * unit_s,
        "here_s": here,
        "farm_s": there,
    }
    tell(facts, asked.json)


if __name__ == "__main__":
    main()
