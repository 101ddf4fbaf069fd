"""What tests take is kept by the run, and told by folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.durations import KEPT, MARKS, PAGE, ROOT, by_folder, page_table, table

SECONDS = {
    "tests/unit/base/test_knobs.py::test_one": 1.5,
    "tests/unit/base/files/test_lock.py::test_two[a::b]": 2.0,
    "tests/unit/test_words.py::test_three": 7.0,
    "tests/property/test_four.py::test_four": 0.4,
    "src/tensorwright/base/knobs.py::tensorwright.base.knobs": 0.1,
}


def test_folders_are_told_with_the_longest_first() -> None:
    folders = by_folder(SECONDS)
    assert folders == {
        "tests/unit": (1, 7.0),
        "tests/unit/base": (2, 3.5),
        "tests/property": (1, 0.4),
        "src (examples in docstrings)": (1, 0.1),
    }
    assert list(folders) == sorted(folders, key=lambda name: -folders[name][1])
    assert table(folders).splitlines()[2:] == [
        "| tests/unit | 1 | 7 |",
        "| tests/unit/base | 2 | 4 |",
        "| others | 2 | 0 |",
        "| all | 5 | 11 |",
    ]


def test_a_run_keeps_all_and_ends_with_its_own_summary(tmp_path: Path) -> None:
    kept, test = tmp_path / "new" / "durations.json", "tests/unit/base/test_cores.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "--keep-durations", str(kept), test]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = re.fullmatch(r"(\d+) passed in .*s.*", done.stdout.splitlines()[-1])
    assert last is not None, done.stdout
    seconds = json.loads(kept.read_text())
    assert len(seconds) == int(last[1])
    assert all(name.startswith(f"{test}::test_") and each >= 0 for name, each in seconds.items())
    assert f"| all | {last[1]} |" in done.stdout


def test_the_page_has_the_table_of_the_figures() -> None:
    """`python tests/durations.py build/durations.json --write` writes both."""
    shown = PAGE.read_text().partition(MARKS[0])[2].partition(MARKS[1])[0].strip()
    assert shown == (page_table() if KEPT.exists() else "")
