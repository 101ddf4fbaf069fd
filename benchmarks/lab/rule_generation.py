"""Seconds of `tensorwright rules generate` on some numbers of workers, and whether the files agree.

    python benchmarks/lab/rule_generation.py WORK --processes 1 --processes 2 --json FILE
    python benchmarks/lab/rule_generation.py WORK --workers tcp://127.0.0.1:8786

A run that is not done after `--seconds` is killed with SIGKILL, and the same command goes on when
this script is called again: the seconds of all its parts count.  So a long comparison can be made
in short turns of a quiet machine.  Every process has one thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from tensorwright.base import write_atomically
from tensorwright.cli.printing import print_table

_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Run:
    """A run so far: who does the work, its seconds in so many parts, and its file."""

    workers: str
    time_s: float = 0.0
    parts: int = 0
    digest: str = ""
    rules: int = 0


@click.command()
@click.argument("work", type=click.Path(path_type=Path, file_okay=False))
@click.option("--preset", default="released", show_default=True)
@click.option("--max-ops", default=4, show_default=True)
@click.option("--processes", "counts", multiple=True, type=int, help="May be repeated.")
@click.option("--workers", "address", help="A farm, besides.")
@click.option("--seconds", default=280.0, show_default=True, help="Of this call.")
@click.option("--rules", "is_proved", is_flag=True, help="Prove, too; else candidates.")
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(
    work: Path,
    preset: str,
    max_ops: int,
    counts: tuple[int, ...],
    address: str | None,
    seconds: float,
    is_proved: bool,
    json_path: Path | None,
) -> None:
    """Run, or go on, until all runs are done or the seconds are over."""
    ends = time.monotonic() + seconds
    work.mkdir(parents=True, exist_ok=True)
    common: tuple[str, ...] = ("--preset", preset, "--max-ops", str(max_ops))
    common = common if is_proved else (*common, "--candidates")
    wanted = {f"{count} processes": ("--processes", str(count)) for count in counts}
    if address is not None:
        wanted["farm"] = ("--workers", address)
    runs = [_run(work, name, (*common, *own), ends) for name, own in wanted.items()]
    base_s = runs[0].time_s
    cells = [
        (
            run.workers,
            f"{run.time_s:.1f}",
            f"{base_s / run.time_s:.2f}" if run.digest else "not done",
            str(run.parts),
            str(run.rules),
            "yes" if run.digest == runs[0].digest else "no",
        )
        for run in runs
    ]
    print_table(("workers", "seconds", "times", "parts", "rules", "same bytes"), cells)
    if json_path is not None and all(run.digest for run in runs):
        about = {"preset": preset, "max_ops": max_ops, "proved": is_proved, "cores": os.cpu_count()}
        text = json.dumps({**about, "runs": [asdict(run) for run in runs]}, indent=1)
        write_atomically(json_path, text + "\n")


def _run(work: Path, name: str, options: tuple[str, ...], ends: float) -> Run:
    """A run, as far as it comes."""
    state = work / f"{name}.json"
    run = Run(**json.loads(state.read_text())) if state.exists() else Run(name)
    left_s = ends - time.monotonic()
    if run.digest or left_s < 5:
        return run
    output = work / f"{name}.rules"
    generate = (sys.executable, "-m", "tensorwright", "rules", "generate")
    start = time.monotonic()
    with (work / f"{name}.log").open("a") as log, suppress(subprocess.TimeoutExpired):
        command = (*generate, *options, "-o", str(output))
        environment = os.environ | _ONE_THREAD
        subprocess.run(command, check=True, timeout=left_s, stdout=log, env=environment)
    run = replace(run, time_s=run.time_s + time.monotonic() - start, parts=run.parts + 1)
    if output.exists():
        content = output.read_bytes()
        count = len([line for line in content.splitlines() if line and line[0] != ord("#")])
        run = replace(run, digest=hashlib.sha256(content).hexdigest(), rules=count)
    write_atomically(state, json.dumps(asdict(run)) + "\n")
    return run


if __name__ == "__main__":
    main()
