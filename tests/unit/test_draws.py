"""Seeds of tests that draw: one a commit, and a command that repeats a failure."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.correctness.drill import TESTS, Row, cases_in
from tests.draws import WITHOUT_COMMITS, commit_seed, first_seed, some_of

ROOT = Path(__file__).parents[2]
AS_SOMEBODY = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
FAILING = """
import random
import pytest
from hypothesis import given, strategies as st
from tests.draws import first_seed

@given(st.integers(0, 1 << 60))
def test_hypothesis(number):
    assert number < 1 << 40, number

@pytest.mark.drawn
def test_other():
    number = random.Random(first_seed()).random()
    assert number > 1

def test_plain():
    assert False
"""


PASSING = """
import pytest
from hypothesis import given, settings, strategies as st

@settings(max_examples=30)
@given(st.integers())
def test_hypothesis(number):
    assert number == number

@pytest.mark.drawn
def test_other():
    assert True
"""


def run(folder: Path, text: str, *words: str) -> str:
    """What pytest prints of a file of tests with these contents."""
    (folder / "test_some.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "tests.draws", "-p", "no:cacheprovider"]
    options = ["-c", "/dev/null", f"--rootdir={folder}", "-o", f"pythonpath={ROOT}"]
    options += ["-o", "markers=drawn", *words]
    ran = subprocess.run(
        [*command, *options], check=False, cwd=folder, capture_output=True, text=True
    )
    return ran.stdout


def test_each_commit_has_a_seed_that_changed_files_keep(tmp_path: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("no git")

    def git(*words: str) -> None:
        command = ("git", "-C", str(tmp_path), *AS_SOMEBODY, *words)
        subprocess.run(command, check=True, capture_output=True)

    assert commit_seed(tmp_path) == WITHOUT_COMMITS
    git("init")
    seeds = []
    for message in ("one", "two"):
        (tmp_path / "file").write_text(message)
        git("add", "file")
        git("commit", "-m", message)
        seeds.append(commit_seed(tmp_path))
        (tmp_path / "file").write_text("changed")
        assert commit_seed(tmp_path) == seeds[-1]
    assert len({WITHOUT_COMMITS, *seeds}) == 3


def test_some_of_the_cases_are_the_same_in_a_run_and_in_order() -> None:
    some = some_of(range(40), 8, "here")
    assert some == sorted(set(some)) == some_of(range(40), 8, "here")
    assert len(some) == 8
    assert some != some_of(range(40), 8, "there")
    assert some_of("ab", 5) == ["a", "b"]


def test_a_failure_says_what_repeats_it(tmp_path: Path) -> None:
    whole = run(tmp_path, FAILING)
    commands = re.findall(r"python -m pytest (--hypothesis-seed=(\d+) .*)", whole)
    assert [words.rpartition("::")[2] for words, _ in commands] == ["test_hypothesis", "test_other"]
    assert {int(seed) << 16 for _, seed in commands} == {first_seed()}
    for words, _ in commands:
        again = run(tmp_path, FAILING, *shlex.split(words))
        errors = re.findall(r"^E .*", again, re.MULTILINE)
        assert errors
        assert all(line in whole for line in errors)


def test_the_drill_counts_examples_and_other_tests(tmp_path: Path) -> None:
    output = run(tmp_path, PASSING, "-m", "drawn", "--hypothesis-show-statistics")
    assert "2 passed" in output
    assert cases_in(output) == 31


def test_the_drill_leaves_out_what_has_failed() -> None:
    row = Row("some", f"{TESTS} tests/some")
    row.faults["python -m pytest --hypothesis-seed=1 'tests/some/test_a.py::test_b[1, 2]'"] = "log"
    assert shlex.split(row.command_of(7).removeprefix(row.command)) == [
        "--hypothesis-seed=7",
        "--deselect",
        "tests/some/test_a.py::test_b[1, 2]",
    ]
    assert Row("other", "python a.py --part {part}/60").command_of(61) == (
        "python a.py --part 1/60 --seed 61"
    )
