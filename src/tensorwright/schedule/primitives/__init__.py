"""The schedule primitives, one idea a file; a new one is a file and an entry in `PRIMITIVES`."""

from tensorwright.schedule.primitives.constants import (
    FoldConstant, PackConstant, SkipZeros, UseAlgorithm, uses_algorithm,
)
from tensorwright.schedule.primitives.groups import (
    BlockOrder, Cooperate, LaunchBounds, SplitAxis, SplitReduction,
)
from tensorwright.schedule.primitives.loops import Fuse, Reorder, Split
from tensorwright.schedule.primitives.marks import Bind, Parallel, Tensorize, Unroll, Vectorize
from tensorwright.schedule.primitives.memory import (
    CacheRead, CacheWrite, Layout, Pipeline, Prefetch, PrefetchNext, SetScope,
)
from tensorwright.schedule.primitives.placement import (
    ComputeAt, ComputeInline, ReverseComputeAt, ReverseComputeInline,
)
from tensorwright.schedule.primitives.reductions import (
    DecomposeReduction, EndAtMask, FactorOut, Rfactor, ShuffleReduce,
)

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
    EndAtMask,
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
