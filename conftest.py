"""What all tests share, also examples in docstrings: a machine, and seeds."""

from __future__ import annotations

import os
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
