"""Measure candidates on this machine. Read `runner.py` first."""

from tensorwright.tuning.measuring.runner import (
    BackgroundJob, BuildFailed, BuildResult, BuildStopped, Builder, ChildRunner, PoolBuilder,
    Runner, Trial, measurements_of,
)
from tensorwright.tuning.measuring.timing import MeasureOptions, Measurement
