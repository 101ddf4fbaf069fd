"""Loop nests. Read `ir.py` first: the IR with its grammar and semantics."""

from tensorwright.base import Role
from tensorwright.loop.algorithms import loop_algorithm
from tensorwright.loop.ir import (
    Allocate, Barrier, Block, Buffer, Call, CommitCopies, For, GroupStatement, If, LaneFold,
    LaunchBounds, LoopProgram, Packing, Parameter, Prefetch, StartCopy, Stmt, Store, WaitCopies,
    Window, block,
)
from tensorwright.loop.launches import LaunchNest, launches_of
from tensorwright.loop.lowering import lower
from tensorwright.loop.packing import pack
from tensorwright.loop.passes import (
    DEFAULT_PIPELINE, Pass, check_group_limits, cut_at_breakpoints, hoist_conditions, order_tiles,
    partition_loops, place_barriers, promote_accumulators, run_passes, run_target_passes,
    simplify_loops, unroll_guarded, verify, version_guards, widen_local_buffers,
)
from tensorwright.loop.scalars import FOLD_IDENTITIES, folded_operand
from tensorwright.loop.traversal import (
    Namer, buffers_used, children_of, freshen, offset_of, padded_extents, room_of, size_arguments,
    sizes_of_program, substitute_statement, total_size, walk, with_symbols,
)
