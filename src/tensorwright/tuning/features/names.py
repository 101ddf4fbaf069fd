"""The names of the features of one statement; `groups.py` makes the columns."""

from __future__ import annotations

BUFFERS = 5  # the buffers of a statement that have columns
CURVE_POINTS = 10
REGISTER_BYTES = (512, 2048)
CACHE_BYTES = tuple(2**15 * 4**n for n in range(6))
"""Sizes of caches, 32 KiB to 32 MiB, for the features of data from beyond them."""

OPERATION_CLASSES = ("mad", "addsub", "mul", "divmod", "cmp", "mathfunc", "otherfunc")
POSITIONS = (
    "none",
    "inner_spatial",
    "middle_spatial",
    "outer_spatial",
    "inner_reduce",
    "middle_reduce",
    "outer_reduce",
    "mixed",
)
ANNOTATION_FIELDS = ("num", "prod", "len", *(f"type_{position}" for position in POSITIONS))
GPU_KINDS = (*(f"{kind}_{axis}" for kind in ("block", "thread") for axis in "xyz"), "vthread")
BUFFER_FIELDS = (
    "read",
    "write",
    "read_write",
    "bytes",
    "unique_bytes",
    "lines",
    "unique_lines",
    "reuse_loop",
    "reuse_serial",
    "reuse_none",
    "reuse_distance_iterations",
    "reuse_distance_bytes",
    "reuse_count",
    "bytes_per_reuse",
    "unique_bytes_per_reuse",
    "lines_per_reuse",
    "unique_lines_per_reuse",
    "stride",
)
