"""The schedule primitives, one idea a file; a new one is a file and an entry in `PRIMITIVES`."""

from tensorwright.schedule.primitives.algorithm import UseAlgorithm, uses_algorithm
from tensorwright.schedule.primitives.cache import CacheRead, CacheWrite
from tensorwright.schedule.primitives.compute_at import ComputeAt, ReverseComputeAt
from tensorwright.schedule.primitives.constants import FoldConstant, PackConstant
from tensorwright.schedule.primitives.factor_out import FactorOut
from tensorwright.schedule.primitives.fuse import Fuse
from tensorwright.schedule.primitives.groups import (
    BlockOrder,
    Cooperate,
    LaunchBounds,
    Layout,
    Pipeline,
    SetScope,
    ShuffleReduce,
    SplitAxis,
    SplitReduction,
)
from tensorwright.schedule.primitives.inline import ComputeInline, ReverseComputeInline
from tensorwright.schedule.primitives.marks import Bind, Parallel, Unroll, Vectorize
from tensorwright.schedule.primitives.prefetch import Prefetch, PrefetchNext
from tensorwright.schedule.primitives.reduction import DecomposeReduction
from tensorwright.schedule.primitives.reorder import Reorder
from tensorwright.schedule.primitives.rfactor import Rfactor
from tensorwright.schedule.primitives.skip_zeros import SkipZeros
from tensorwright.schedule.primitives.split import Split
from tensorwright.schedule.primitives.tensorize import Tensorize

PRIMITIVES: tuple[type, ...] = (
    Split,
    Fuse,
    Reorder,
    Unroll,
    Vectorize,
    Parallel,
    Bind,
    ComputeAt,
    ReverseComputeAt,
    ComputeInline,
    ReverseComputeInline,
    CacheRead,
    CacheWrite,
    Rfactor,
    FactorOut,
    DecomposeReduction,
    PackConstant,
    Tensorize,
    Prefetch,
    PrefetchNext,
    UseAlgorithm,
    FoldConstant,
    SkipZeros,
    SetScope,
    Cooperate,
    BlockOrder,
    Layout,
    LaunchBounds,
    Pipeline,
    SplitReduction,
    ShuffleReduce,
    SplitAxis,
)

__all__ = [
    "PRIMITIVES",
    "Bind",
    "BlockOrder",
    "CacheRead",
    "CacheWrite",
    "ComputeAt",
    "ComputeInline",
    "Cooperate",
    "DecomposeReduction",
    "FactorOut",
    "FoldConstant",
    "Fuse",
    "LaunchBounds",
    "Layout",
    "PackConstant",
    "Parallel",
    "Pipeline",
    "Prefetch",
    "PrefetchNext",
    "Reorder",
    "ReverseComputeAt",
    "ReverseComputeInline",
    "Rfactor",
    "SetScope",
    "ShuffleReduce",
    "SkipZeros",
    "Split",
    "SplitAxis",
    "SplitReduction",
    "Tensorize",
    "Unroll",
    "UseAlgorithm",
    "Vectorize",
    "uses_algorithm",
]
