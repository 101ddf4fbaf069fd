"""Run every drill that needs nothing but this machine, and every test that draws, for some time.

    python benchmarks/correctness/drill.py [--minutes 30] [--json build/drill/table.json]
        [--only TEXT ...]

One thing runs at a time, each time with a seed that is new: the drills of this folder, and the
tests that draw, folder by folder.  The next is always the one that has had the least time.  A test
that has failed is left out from then on.  The table at the end says of each what it was, its seeds,
how many cases it tried, its seconds and its faults, each with the command that repeats it.  The
table is written to the file of `--json` after each run, and the output of each run with a fault
beside it, so Ctrl-C loses nothing.  `--only` takes what has one of the texts in its name.  Exit
code 1 if there are faults.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent.relative_to(ROOT)
KEPT = Path("build/drill")
PT2 = KEPT / "pt2"
LIMIT_S = 1800.0
"""A run that takes longer than this has a fault."""
_NETWORKS = ("mixer_s16", "deberta", "wavenet", "lstm_tagger", "pointnet", "dlrm")
DRILLS = {
    "device schedules": "device_schedules.py --shim 60 --pocl 0",
    "enumerated schedules": "enumerated_schedules.py --part {part}/60 --most 1 --walks 10",
    "farm faults": "farm_faults.py --kills 4 --devices 2 --minutes 3",
    "malformed models": "malformed_models.py --workers 1 --count 100",
    "damaged .pt2 files": f"without_pytorch.py damage {PT2} --count 60",
    "ONNX's node cases": "onnx_backend.py --processes 1 --threads 2 --count 60",
    "open sizes": "open_sizes.py --count 4",
    "rewriting searches": "rewriting_searches.py --count 8",
    "short numbers": "short_networks.py --count 35",
}
"""Each takes `--seed` besides, and prints `repeat: COMMAND` for a fault; {part}: the seed % 60."""
TESTS = "python -m pytest -q -m 'drawn and not slow' --tb=short --hypothesis-show-statistics"
_NONE_SELECTED = 5  # pytest's exit code


@dataclass
class Row:
    """What was run, and what became of it; mutable.

    seeds    of its runs         cases    that it tried         seconds    that it took
    faults   commands that repeat them, each with the file that has the output
    """

    name: str
    command: str
    seeds: list[int] = field(default_factory=list)
    cases: int = 0
    seconds: float = 0.0
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def is_test(self) -> bool:
        return self.command.startswith(TESTS)

    def command_of(self, seed: int) -> str:
        """The command of a run; of tests without those that have failed."""
        if not self.is_test:
            return f"{self.command.format(part=seed % 60)} --seed {seed}"
        failed = (shlex.split(command)[-1] for command in self.faults)
        left_out = "".join(f" --deselect {shlex.quote(each)}" for each in failed if "::" in each)
        return f"{self.command} --hypothesis-seed={seed}{left_out}"


def all_rows() -> list[Row]:
    """The drills, and the folders that have tests that draw."""
    drills = [Row(name, f"python {HERE / command}") for name, command in DRILLS.items()]
    word = re.compile(r"^ *@given\(|^ *@pytest.mark.drawn$", re.MULTILINE)
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    drawing = [path.relative_to(ROOT) for path in files if word.search(path.read_text())]
    by_part: dict[str, list[str]] = {}
    for path in drawing:
        by_part.setdefault("/".join(path.parent.parts[:3]), []).append(str(path))
    tests = [Row(part, f"{TESTS} {' '.join(paths)}") for part, paths in by_part.items()]
    return drills + tests


def run(row: Row, seed: int) -> None:
    """Run it once with a seed, and add to its row what came out."""
    command, began = row.command_of(seed), time.monotonic()
    row.seeds.append(seed)
    code, output = output_of(command)
    row.seconds += time.monotonic() - began
    row.cases += cases_in(output)
    if code == 0 or (row.is_test and code == _NONE_SELECTED):
        return
    log = KEPT / f"{re.sub(r'[^a-z0-9.]+', '-', row.name.lower())}-{seed}.txt"
    log.write_text(f"{command}\n{output}")
    repeating = re.findall(r"^repeat: (.*)$", output, re.MULTILINE) or [command]
    row.faults |= dict.fromkeys(repeating, str(log))


def output_of(command: str) -> tuple[int | None, str]:
    """The exit code of a command and what it printed; no code if it took too long."""
    words = [sys.executable, *shlex.split(command)[1:]]
    process = subprocess.Popen(
        words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        process_group=0, env=os.environ | {"PYTHONPATH": "."},
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        _end(process)
        return None, f"it did not end within {LIMIT_S:.0f} s"
    except KeyboardInterrupt:
        _end(process)
        raise
    return process.returncode, output


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt what runs, so that it ends what it has started; kill it if it does not listen."""
    for each in (signal.SIGINT, signal.SIGKILL):
        os.killpg(process.pid, each)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            continue
        return


def cases_in(output: str) -> int:
    """How many cases a drill says it tried, or examples and other tests that passed."""
    drill = re.search(r"^(\d+) cases, \d+ faults$", output, re.MULTILINE)
    if drill:
        return int(drill[1])
    examples = re.findall(r"(\d+) passing, \d+ failing", output)
    by_hypothesis = len(re.findall(r"^  - Stopped because", output, re.MULTILINE))
    passed = re.search(r"(\d+) passed", output)
    return sum(map(int, examples)) + max(0, int(passed[1] if passed else 0) - by_hypothesis)


def table_of(rows: list[Row]) -> str:
    """A line for each row, and one for all; below, the command that repeats each fault."""
    lines = [f"{'what':32} {'seeds':>6} {'cases':>8} {'seconds':>8} {'faults':>7}"]
    figures = [(r.name, len(r.seeds), r.cases, r.seconds, len(r.faults)) for r in rows]
    figures.append(("all", *(sum(column) for column in list(zip(*figures, strict=True))[1:])))
    for name, seeds, cases, seconds, faults in figures:
        lines.append(f"{name:32} {seeds:6} {cases:8} {seconds:8.0f} {faults:7}")
    for row in rows:
        for command, log in row.faults.items():
            lines.append(f"\n{row.name}, see {log}:\n  {command}")
    return "\n".join(lines)


def prepare() -> None:
    """Export the networks whose files are damaged, where they are not there yet."""
    PT2.mkdir(parents=True, exist_ok=True)
    if any(not (PT2 / f"{name}.pt2").exists() for name in _NETWORKS):
        command = f"python {HERE}/without_pytorch.py export {PT2} {' '.join(_NETWORKS)}"
        code, output = output_of(command)
        if code:
            raise SystemExit(f"{command}\n{output}")


def main() -> int:
    """Run what has had the least time, until the time is over; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--json", type=Path, default=KEPT / "table.json")
    parser.add_argument("--only", nargs="*", default=[""], metavar="TEXT")
    asked = parser.parse_args()
    os.chdir(ROOT)
    began, source = time.monotonic(), random.SystemRandom()
    rows = [row for row in all_rows() if any(text in row.name for text in asked.only)]
    if not rows:
        parser.error(f"nothing has one of these in its name: {', '.join(asked.only)}")
    try:
        prepare()
        while time.monotonic() - began < 60 * asked.minutes:
            row, seed = min(rows, key=lambda each: each.seconds), source.randrange(1 << 31)
            run(row, seed)
            asked.json.write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n")
            line = f"{row.name}, seed {seed}: {row.cases} cases in {row.seconds:.0f} s"
            print(f"{line}, {len(row.faults)} faults so far", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    print(table_of(rows))
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
