"""Where tests that draw begin: the seed of a run, which is the commit's unless one is given.

The same commit gives the same run, every commit looks elsewhere, and `--hypothesis-seed` repeats
a run.  Tests of Hypothesis need nothing more; others are marked `drawn`, and draw from seeds that
begin with `first_seed()`.
"""

from __future__ import annotations

import random
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

WITHOUT_COMMITS = 2026
T = TypeVar("T")
_SEED = {"run": WITHOUT_COMMITS}

settings.register_profile(
    "tests",
    deadline=None,  # how long an example takes depends on the machine
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    derandomize=False,
    database=None,
    print_blob=False,
)
settings.load_profile("tests")


def first_seed() -> int:
    """The first of 65,536 seeds that no run with another seed uses."""
    return _SEED["run"] << 16


def random_source(*names: object) -> random.Random:
    """A source of what a test of some name draws, another one in each run."""
    return random.Random(f"{first_seed()} {names}")


def some_of(cases: Iterable[T], count: int, *names: object) -> list[T]:
    """So many of the cases, others in each run: `make drill` comes to all of them.

    For tests that go through one path for each case. They are marked `drawn`.
    """
    every = list(cases)
    chosen = random_source("some of", *names).sample(range(len(every)), min(count, len(every)))
    return [every[number] for number in sorted(chosen)]


def commit_seed(folder: Path) -> int:
    """The seed of the commit that is checked out in a folder; a fixed one where none is."""
    command = ("git", "-C", str(folder), "rev-parse", "HEAD")
    try:
        told = subprocess.run(command, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return WITHOUT_COMMITS
    return int(told.stdout[:8], 16)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give Hypothesis the seed of the run; other processes of a run get it with the options."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = commit_seed(Path(__file__).parent)
    _SEED["run"] = int(config.option.hypothesis_seed)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what Hypothesis draws, before marks choose what is run."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("drawn")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Say how to repeat a test that draws and fails."""
    report = yield
    if report.failed and item.get_closest_marker("drawn") is not None:
        seed = item.config.option.hypothesis_seed
        command = f"python -m pytest --hypothesis-seed={seed} {shlex.quote(item.nodeid)}"
        report.sections.append(("draws", f"repeat: {command}"))
    return report
