"""Schedules. Read `state.py` first, then `primitive.py`, `trace.py` and `analysis.py`."""

from tensorwright.schedule.algorithms import (
    ALGORITHMS, TAPS, Algorithm, Convolution, MatrixProduct, find_convolution, find_matrix_product,
    winograd_matrices,
)
from tensorwright.schedule.analysis import Analysis, Region, analyse, tile_region
from tensorwright.schedule.intrinsics import find_meaning, loops_of, windows_apart
from tensorwright.schedule.memory_layout import (
    BLOCKS, PLAIN, THREADS, CopyMechanism, ForKind, LayoutKind, MemoryLayout, Scope,
    may_not_be_inside,
)
from tensorwright.schedule.masked_ends import ends_at_mask
from tensorwright.schedule.open_sizes import (
    OpenSchedule, OpenTrace, Schedule, SizeRange, SizedTrace, format_schedule, open_trace,
    parse_schedule, steps_of, trace_at, with_joined_loops,
)
from tensorwright.schedule.primitive import Primitive, applied, is_legal
from tensorwright.schedule.primitives import (
    PRIMITIVES, Bind, BlockOrder, CacheRead, CacheWrite, ComputeAt, ComputeInline, Cooperate,
    DecomposeReduction, EndAtMask, FactorOut, FoldConstant, Fuse, LaunchBounds, Layout,
    PackConstant, Parallel, Pipeline, Prefetch, PrefetchNext, Reorder, ReverseComputeAt,
    ReverseComputeInline, Rfactor, SetScope, ShuffleReduce, SkipZeros, Split, SplitAxis,
    SplitReduction, Tensorize, Unroll, UseAlgorithm, Vectorize, uses_algorithm,
)
from tensorwright.schedule.sharing import allocation_loop, fetched_in, has_threads, is_shared
from tensorwright.schedule.state import (
    After, At, AtRoot, PrefetchRequest, ScheduleState, Skipped, SplitRelation, Stage, Tail,
    initial_state, reads_of,
)
from tensorwright.schedule.text import render
from tensorwright.schedule.trace import (
    Schedulable, Trace, Workload, bind, format_trace, parse_trace, replay, state_of,
)
