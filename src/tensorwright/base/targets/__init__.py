"""What a program is compiled for: one file for each kind of machine.

Read `protocol.py` first (what all targets have), then `named.py` (from a name to a target).
`by_kind.py` is how lists are kept that differ by kind; `launch.py` says how a device of each kind
calls a kernel.
"""

from tensorwright.base.targets.by_kind import ByKind, of_kind
from tensorwright.base.targets.cpu import (
    BYTE_GROUPS,
    BYTE_PRODUCTS,
    BYTE_TERMS,
    BYTE_TILE,
    BYTE_TILES,
    CPU_TARGETS,
    ByteProduct,
    ByteTile,
    CpuTarget,
    detect_target,
)
from tensorwright.base.targets.gpu import GPU_TARGETS, ON_PROCESSOR, GpuApi, GpuTarget
from tensorwright.base.targets.launch import ON_THREADS, Extents, Grid, Launch, Threads
from tensorwright.base.targets.named import (
    TARGETS,
    Target,
    check_runs_here,
    cpu_target,
    missing_here,
    parse_target,
)
from tensorwright.base.targets.protocol import TargetKind, TargetProtocol

__all__ = [
    "BYTE_GROUPS",
    "BYTE_PRODUCTS",
    "BYTE_TERMS",
    "BYTE_TILE",
    "BYTE_TILES",
    "CPU_TARGETS",
    "GPU_TARGETS",
    "ON_PROCESSOR",
    "ON_THREADS",
    "TARGETS",
    "ByKind",
    "ByteProduct",
    "ByteTile",
    "CpuTarget",
    "Extents",
    "GpuApi",
    "GpuTarget",
    "Grid",
    "Launch",
    "Target",
    "TargetKind",
    "TargetProtocol",
    "Threads",
    "check_runs_here",
    "cpu_target",
    "detect_target",
    "missing_here",
    "of_kind",
    "parse_target",
]
