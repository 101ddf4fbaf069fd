"""The names of the features of one statement, in order: 173, whatever the operator: Ansor's
164, and what comes from beyond registers and caches, and from other cores.

Source:   Zheng et al., Ansor, OSDI 2020, section 5.2 and appendix B.
"""

from __future__ import annotations

BUFFERS = 5  # so many of the buffers of a statement are described
CURVE_POINTS = 10
REGISTER_BYTES = (512, 2048)
CACHE_BYTES = tuple(2**15 * 4**n for n in range(6))
"""Sizes, of caches 32 KiB to 32 MiB, of which is said what comes from beyond."""

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

FEATURE_NAMES: tuple[str, ...] = (
    *(f"float_{name}" for name in OPERATION_CLASSES),
    *(f"int_{name}" for name in OPERATION_CLASSES),
    "bool_op",
    "select_op",
    *(
        f"{kind}_{field}"
        for kind in ("vector", "unroll", "parallel")
        for field in ANNOTATION_FIELDS
    ),
    "is_gpu",
    *(f"{kind}_len" for kind in GPU_KINDS),
    *(f"buffer{n}_{field}" for n in range(BUFFERS) for field in BUFFER_FIELDS),
    *(f"intensity_{n}" for n in range(CURVE_POINTS)),
    "alloc_size",
    "alloc_prod",
    "alloc_outer_prod",
    "alloc_inner_prod",
    "outer_prod",
    "num_loops",
    "auto_unroll_max_step",
    "lines_of_other_threads",
    *(f"loads_beyond_{nbytes}" for nbytes in REGISTER_BYTES),
    *(f"lines_beyond_{nbytes}" for nbytes in CACHE_BYTES),
)
"""Counts are log2(x + 1), flags 0 or 1, the intensities log2 of operations per byte."""
