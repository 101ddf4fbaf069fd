"""Schedules of workloads with named sizes. Read `open_trace.py` first: a trace for all sizes."""

from tensorwright.schedule.open_sizes.joined_loops import with_joined_loops
from tensorwright.schedule.open_sizes.open_trace import OpenTrace, Tile, open_trace
from tensorwright.schedule.open_sizes.sized_trace import (
    OpenSchedule, Schedule, SizeRange, SizedTrace, format_schedule, parse_schedule, steps_of,
    trace_at,
)
