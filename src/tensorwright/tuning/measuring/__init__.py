"""Measure candidates on this machine. Read `runner.py` first."""

from tensorwright.tuning.measuring.builder import (
    BackgroundJob,
    Builder,
    BuildFailed,
    BuildResult,
    BuildStopped,
    PoolBuilder,
)
from tensorwright.tuning.measuring.runner import ChildRunner, Runner, Trial, measurements_of
from tensorwright.tuning.measuring.timing import Measurement, MeasureOptions

__all__ = [
    "BackgroundJob",
    "BuildFailed",
    "BuildResult",
    "BuildStopped",
    "Builder",
    "ChildRunner",
    "MeasureOptions",
    "Measurement",
    "PoolBuilder",
    "Runner",
    "Trial",
    "measurements_of",
]
