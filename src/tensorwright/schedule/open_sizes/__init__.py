"""Schedules of workloads with named sizes. Read `open_trace.py` first: a trace for all sizes."""

from tensorwright.schedule.open_sizes.joined_loops import with_joined_loops
from tensorwright.schedule.open_sizes.open_trace import OpenTrace, Tile, open_trace
from tensorwright.schedule.open_sizes.sized_trace import (
    OpenSchedule,
    Schedule,
    SizedTrace,
    SizeRange,
    format_schedule,
    parse_schedule,
    steps_of,
    trace_at,
)

__all__ = [
    "OpenSchedule",
    "OpenTrace",
    "Schedule",
    "SizeRange",
    "SizedTrace",
    "Tile",
    "format_schedule",
    "open_trace",
    "parse_schedule",
    "steps_of",
    "trace_at",
    "with_joined_loops",
]
