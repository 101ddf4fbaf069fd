"""Features of graphics processors: launches and what their threads run, and accesses of warps.

Read `launches.py` first.
"""

from tensorwright.tuning.features.grid.lanes import (
    LANE_COLUMNS,
    SECTOR_BYTES,
    LaneGroup,
    LaneTable,
)
from tensorwright.tuning.features.grid.launches import (
    LAUNCH_COLUMNS,
    THREAD_COLUMNS,
    launch_features,
    thread_features,
)

__all__ = [
    "LANE_COLUMNS",
    "LAUNCH_COLUMNS",
    "SECTOR_BYTES",
    "THREAD_COLUMNS",
    "LaneGroup",
    "LaneTable",
    "launch_features",
    "thread_features",
]
