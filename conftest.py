"""What all tests share, also examples in docstrings: a machine, seeds, turns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fcntl import LOCK_EX, LOCK_SH, flock
from pathlib import Path

import pytest

from tensorwright.base import ASSUMED, cpu_target, knobs, missing_here

pytest_plugins = ("tests.draws", "tests.durations")
_SOURCES = [Path(__file__).parent / folder for folder in ("src", "lab/src")]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Of the sources, look only at modules with examples: to import all of them takes seconds."""
    is_source = collection_path.suffix == ".py" and any(
        collection_path.is_relative_to(folder) for folder in _SOURCES
    )
    return True if is_source and ">>>" not in collection_path.read_text() else None


def pytest_configure() -> None:
    """Let choices be made for an assumed machine: no test depends on what this one measures.

    Code does without the instructions that this one lacks; another architecture is refused.
    """
    able = (each for each in ASSUMED if not missing_here(cpu_target(each.target)))
    os.environ.setdefault(knobs.ASSUME.variable, next(able).name)
    missing = missing_here(cpu_target("native"))
    if missing:
        raise pytest.UsageError(f"tests cannot run here as on {knobs.ASSUME.get()}: {missing}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test that measures times (`alone`) run while the other workers wait."""
    if not _is_worker():
        return (yield)
    folder = item.config.cache.mkdir("turns")
    mode = LOCK_SH if item.get_closest_marker("alone") is None else LOCK_EX
    # Who waits to be alone keeps the others from starting: they would overtake it for ever.
    with ExitStack() as turn:
        with _locked(folder / "next", LOCK_EX):
            turn.enter_context(_locked(folder / "turn", mode))
        return (yield)


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


@contextmanager
def _locked(path: Path, mode: int) -> Iterator[None]:
    with path.open("a") as file:
        flock(file, mode)
        yield
