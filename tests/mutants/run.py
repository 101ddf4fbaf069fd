"""Make wrong changes, one at a time, and see whether the tests catch each of them.

    python tests/mutants/run.py [--only PATTERN] [--sample N --seed S]

`changes.toml` lists the changes: the file below `src/tensorwright`, the text that stands there, the
text that replaces it, and the tests that should fail.  They are made in a copy of the working tree,
and only the named tests run, until the first that fails.  A change is caught if a test fails that
passes without the change: all tests that failed run once more, at the end, in the copy without
changes.  Prints a table, and how many were caught of each room.  Exit code 1 if one survived.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src/tensorwright")
CHANGES = Path(__file__).parent / "changes.toml"
LIMIT_S = 600.0  # a change that makes its tests hang is caught
COPIED = ("src", "lab", "tests", "benchmarks/correctness", "examples", "docs", "runtime")


@dataclass(frozen=True, slots=True)
class Change:
    """A wrong change of one file.

    name    what is wrong, in words       file    below `src/tensorwright`
    old     the text that stands there    new     the text that replaces it
    tests   files of tests, or tests      room    the folder, or the module beside the folders
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def room(self) -> str:
        return self.file.split("/")[0]

    def fault(self, root: Path = ROOT) -> str:
        """Why the change cannot be made or its tests cannot run; "" if they can."""
        path = root / PACKAGE / self.file
        if not path.is_file():
            return f"there is no file {self.file}"
        count = path.read_text(encoding="utf-8").count(self.old)
        if count != 1:
            return f"its text stands {count} times in {self.file}, not once"
        if self.old == self.new:
            return "it changes nothing"
        missing = [each for each in self.tests if not (root / each.split("::")[0]).exists()]
        return f"there is no {missing[0]}" if missing else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first test that a change makes fail; "" if it survived, HUNG if the tests do not end."""

    change: Change
    caught_by: str
    seconds: float


HUNG = "the tests do not end"


def read_changes(path: Path = CHANGES) -> tuple[Change, ...]:
    """All wrong changes, in the order of the file."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["change"]
    return tuple(Change(**{**row, "tests": tuple(row["tests"])}) for row in rows)


def copy_tree(folder: Path) -> None:
    """Copy what the tests need of the working tree, files that git does not know yet included."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", "*.py", "*.toml", "*.md", *COPIED],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def make_change(change: Change, folder: Path) -> Outcome:
    """Make a change in the copy, run its tests, and undo it."""
    path = folder / PACKAGE / change.file
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(change.old, change.new), encoding="utf-8")
    started = time.monotonic()
    try:
        failed = run_tests(folder, change.tests, stop_at_first=True)
    finally:
        path.write_text(before, encoding="utf-8")
    return Outcome(change, next(iter(failed), ""), time.monotonic() - started)


def run_tests(folder: Path, tests: Sequence[str], *, stop_at_first: bool) -> tuple[str, ...]:
    """The tests, of some files, that fail in the copy."""
    code = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "--no-header", *tests]
    paths = [str(folder / each) for each in ("src", "lab/src", ".", "benchmarks")]
    process = subprocess.Popen(
        [*code, *(["-x"] if stop_at_first else [])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "1000"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return (HUNG,)
    except BaseException:  # Ctrl-C goes to this process alone
        os.killpg(process.pid, signal.SIGKILL)
        raise
    failed = [
        line.split(" ", 1)[1].split(" - ")[0]
        for line in output.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    ]
    if not failed and process.returncode:
        raise SystemExit(f"pytest ended with {process.returncode}:\n{output[-2000:]}")
    return tuple(failed)


def print_table(outcomes: Sequence[Outcome], doubtful: Sequence[str]) -> int:
    """Print how many were caught of each room; returns how many were not."""
    caught = Counter(
        each.change.room for each in outcomes if each.caught_by and each.caught_by not in doubtful
    )
    of_all = Counter(each.change.room for each in outcomes)
    print(f"\n{'room':<22} {'caught':>6} {'of':>4}")
    for room in sorted(of_all):
        print(f"{room:<22} {caught[room]:>6} {of_all[room]:>4}")
    total = sum(caught.values())
    print(f"{'all':<22} {total:>6} {len(outcomes):>4}   {total / max(1, len(outcomes)):.0%}")
    for name in doubtful:
        print(f"fails without a change, too: {name}")
    return len(outcomes) - total


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", default="*", help="of the name or the file")
    parser.add_argument("--sample", type=int, metavar="N", help="as many changes, drawn")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the draw")
    arguments = parser.parse_args()
    changes = [
        each
        for each in read_changes()
        if any(fnmatch.fnmatch(text, f"*{arguments.only}*") for text in (each.name, each.file))
    ]
    if arguments.sample is not None:
        count = min(arguments.sample, len(changes))
        changes = random.Random(arguments.seed).sample(changes, count)
    for change in changes:
        if change.fault():
            raise SystemExit(f"{change.name}: {change.fault()}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name).resolve()
        copy_tree(folder)
        outcomes = []
        for change in changes:
            outcome = make_change(change, folder)
            outcomes.append(outcome)
            verdict = "caught" if outcome.caught_by else "SURVIVED"
            told = f"{verdict:<8} {outcome.seconds:>5.0f} s  {change.file}: {change.name}"
            print(told, flush=True)
            if outcome.caught_by:
                print(f"{'':<17}by {outcome.caught_by.removeprefix('tests/')}", flush=True)
        names = sorted({each.caught_by for each in outcomes} - {"", HUNG})
        doubtful = run_tests(folder, names, stop_at_first=False) if names else ()
    return 1 if print_table(outcomes, doubtful) else 0


if __name__ == "__main__":
    sys.exit(main())
