"""Measure candidates on this machine. Read `runner.py` first."""

from tensorwright.tuning.measuring.builder import (
    Builder,
    BuildFailed,
    BuildResult,
    BuildStopped,
    PoolBuilder,
)
from tensorwright.tuning.measuring.runner import ChildRunner
from tensorwright.tuning.measuring.timing import Measurement, MeasureOptions

__all__ = [
    "BuildFailed",
    "BuildResult",
    "BuildStopped",
    "Builder",
    "ChildRunner",
    "MeasureOptions",
    "Measurement",
    "PoolBuilder",
]
