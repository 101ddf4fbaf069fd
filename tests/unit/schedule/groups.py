"""Schedules for groups of threads, and steps that groups refuse: cases of two tests."""

from __future__ import annotations

from tests.unit.schedule.expressions import (
    Expression,
    blur,
    chain,
    conv,
    gather,
    matmul,
    scaled,
    softmax,
    total,
)
from tests.unit.schedule.small_expressions import SMALL

from tensorwright.expr import compute, placeholder
from tensorwright.schedule import (
    Bind,
    BlockOrder,
    CacheRead,
    ComputeAt,
    Cooperate,
    CopyMechanism,
    DecomposeReduction,
    ForKind,
    Fuse,
    LaunchBounds,
    Layout,
    LayoutKind,
    Parallel,
    Pipeline,
    Prefetch,
    Primitive,
    Reorder,
    ReverseComputeAt,
    Scope,
    SetScope,
    ShuffleReduce,
    Split,
    SplitAxis,
    SplitReduction,
    Tail,
    Trace,
    Unroll,
    parse_trace,
)
from tensorwright_lab.cards import shared_tiles


def named_alike() -> Expression:
    """A stage whose axes have the names that splitting one of them would give."""
    x = placeholder("x", (4, 4))
    p = compute("p", (4, 4), lambda i, i_o: x[i, i_o] + 1.0)
    return Expression((compute("z", (4, 4), lambda i, j: p[i, j] * 2.0),))


STAGED: Trace = parse_trace(shared_tiles((4, 4), (2, 2), 4, (2, 1)))
"""A product in blocks of 8x8 and threads of 2x2; parts of both operands are in shared memory."""

LANES: Trace = parse_trace("""
    split(c, k, [8])
    rfactor(c, k_i)
    shuffle_reduce(c, k_i)
    compute_at(c_rf, c, k_i)
    bind(c, i, block.x)
    split(c, j, [4])
    bind(c, j_i, thread.y)
""")
"""A product whose sums are folded by 8 lanes."""

VIRTUAL_THREADS: Trace = parse_trace("""
    cache_write(c)
    split_axis(c_cache, i, [2, 2, 2])
    split_axis(c_cache, j, [2, 2, 2])
    split(c, i, [2, 2, 2])
    split(c, j, [2, 2, 2])
    reorder(c, [i_0, j_0, i_2, j_2, i_1, j_1, i_3, j_3])
    block_order(c, i_0, j_0, 2)
    bind(c, i_2, thread.y)
    bind(c, j_2, thread.x)
    compute_at(c_cache, c, j_2)
    split(c_cache, k, [2])
    reorder(c_cache, [k_o, k_i, i_0, i_2, j_0, j_2, i_1, j_1, i_3, j_3])
    unroll(c_cache, i_1)
    unroll(c_cache, j_1)
    cache_read(a, c_cache, shared, [1, 0])
    compute_at(a_c_cache_cache, c_cache, k_o)
    cooperate(a_c_cache_cache, [2, 2], 4)
    pipeline(c_cache, k_o)
""")
"""Each thread has four parts of 2x2 that lie apart, as with two virtual threads each way."""

TRACES: dict[str, tuple[Expression, Trace]] = {
    "staged": (matmul(16, 24, 12), STAGED),
    "staged_with_rests": (matmul(13, 22, 10), STAGED),
    "threads_outside_of_a_reduction": (
        matmul(),
        parse_trace("reorder(c, [k, i, j])\nbind(c, i, thread.y)\nbind(c, j, thread.x)"),
    ),
    "set_scope": (
        blur(),
        (
            Bind("b", "i", ForKind.BLOCK_X),
            Bind("b", "j", ForKind.THREAD_X),
            ComputeAt("p", "b", "j"),
            SetScope("p", Scope.SHARED),
            Bind("p", "i", ForKind.THREAD_X),
        ),
    ),
    "pipeline_beside_a_local_tensor": (
        SMALL["rank_one"],
        parse_trace("""
            compute_at(s, z, i)
            compute_at(t, z, i)
            bind(t, i0, thread.x)
            pipeline(z, i)
        """),
    ),
    "shared_without_asking": (
        softmax(),
        parse_trace("""
            bind(out, i, block.x)
            bind(out, j, thread.x)
            compute_at(total, out, i)
            compute_at(e, out, i)
            compute_at(top, out, i)
            bind(e, j, thread.x)
        """),
    ),
    "an_epilogue_of_the_same_threads": (
        matmul(with_relu=True),
        parse_trace("""
            split(c, i, [4])
            reorder(c, [i_o, i_i, j, k])
            bind(c, i_o, block.x)
            bind(c, j, thread.x)
            reverse_compute_at(relu, c, i_o)
            bind(relu, j, thread.x)
        """),
    ),
    "cooperate_on_a_padded_image": (
        conv(6, 1, 2, 4),
        parse_trace("""
            split(relu, oh, [3])
            bind(relu, oc, block.y)
            bind(relu, oh_o, block.x)
            bind(relu, oh_i, thread.y)
            bind(relu, ow, thread.x)
            compute_at(y, relu, ow)
            compute_at(pad, y, ic)
            set_scope(pad, shared)
            cooperate(pad, [3, 6])
        """),
    ),
    "block_order": (
        matmul(13, 10, 5),
        parse_trace("""
            split(c, i, [2])
            split(c, j, [2])
            reorder(c, [i_o, j_o, i_i, j_i])
            block_order(c, i_o, j_o, 4)
            bind(c, i_i, thread.y)
            bind(c, j_i, thread.x)
        """),
    ),
    "virtual_threads": (matmul(13, 22, 6), VIRTUAL_THREADS),
    "split_axis": (
        blur(),
        (SplitAxis("p", "j", (4,)), SplitAxis("p", "i", (2, 3)), ComputeAt("p", "b", "i")),
    ),
    "split_axis_of_positions": (gather(), (SplitAxis("moved", "i", (4,)),)),
    "layout": (
        matmul(16, 24, 12),
        (
            *STAGED,
            Layout("a_c_cache_cache", LayoutKind.PADDED, 1),
            Layout("b_c_cache_cache", LayoutKind.XOR, 32),
        ),
    ),
    "launch_bounds": (matmul(16, 24, 12), (*STAGED, LaunchBounds("c", 2))),
    "pipeline": (matmul(13, 22, 10), (*STAGED, Pipeline("c_cache", "k_o"))),
    "pipeline_by_copies": (
        matmul(13, 22, 18),
        (*STAGED, Pipeline("c_cache", "k_o", 3, CopyMechanism.CP_ASYNC)),
    ),
    "pipeline_of_more_stages_than_iterations": (
        matmul(8, 8, 4),
        (*STAGED, Pipeline("c_cache", "k_o", 4, CopyMechanism.CP_ASYNC)),
    ),
    "split_reduction": (
        matmul(5, 6, 20),
        parse_trace("""
            split_reduction(c, k, 3)
            split(c_rf, i, [2])
            reorder(c_rf, [k_o, i_o, i_i, j])
            bind(c_rf, i_o, block.x)
            bind(c_rf, i_i, thread.y)
            bind(c_rf, j, thread.x)
            cooperate(c, [8])
        """)[:-1],
    ),
    "split_reduction_of_one_number": (total(), (SplitReduction("s", "k", 4),)),
    "shuffle_reduce": (matmul(5, 6, 70), LANES),
    "a_fused_loop_split_by_more_than_it_has": (
        blur(3),
        parse_trace("""
            fuse(b, [i, j])
            split(b, i_j, [16])
            bind(b, i_j_i, thread.x)
            compute_at(p, b, i_j_i)
        """),
    ),
}

Case = tuple[Expression, Trace, Primitive]

REFUSALS: dict[str, Case] = {
    "order_blocks_with_empty_tiles": (
        matmul(1, 5, 3, with_relu=True),
        (ReverseComputeAt("relu", "c", "j"),),
        BlockOrder("c", "i", "j", 3),
    ),
    "shuffle_lanes_without_terms": (
        total(4),
        (Split("s", "k", (8,)), Fuse("s", ("k_o", "k_i"))),
        ShuffleReduce("s", "k_o_k_i"),
    ),
    "parallel_beside_threads": (
        blur(),
        (
            CacheRead("x", "p"),
            ComputeAt("p", "b", "i"),
            ComputeAt("x_p_cache", "p", "i"),
            Parallel("x_p_cache", "d0"),
        ),
        Bind("b", "j", ForKind.THREAD_X),
    ),
    "bind_a_block_inside_a_loop": (matmul(), (), Bind("c", "j", ForKind.BLOCK_X)),
    "reorder_a_loop_around_blocks": (
        matmul(),
        (Bind("c", "i", ForKind.BLOCK_X),),
        Reorder("c", ("j", "i", "k")),
    ),
    "place_a_stage_with_blocks": (
        chain(),
        (Bind("p", "i", ForKind.BLOCK_X),),
        ComputeAt("p", "q", "i"),
    ),
    "place_a_stage_between_blocks": (
        blur(),
        (Bind("b", "i", ForKind.BLOCK_Y), Bind("b", "j", ForKind.BLOCK_X)),
        ComputeAt("p", "b", "i"),
    ),
    "start_a_reduction_outside_of_blocks": (
        matmul(),
        (Bind("c", "i", ForKind.BLOCK_X),),
        DecomposeReduction("c", "i"),
    ),
    "prefetch_in_blocks": (
        matmul(),
        (Bind("c", "i", ForKind.BLOCK_X),),
        Prefetch("c", "a", "i"),
    ),
    "bind_threads_after_the_tile_of_a_thread": (
        matmul(with_relu=True),
        (Bind("c", "i", ForKind.THREAD_X), ReverseComputeAt("relu", "c", "i")),
        Bind("relu", "j", ForKind.THREAD_X),
    ),
    "share_in_lanes_of_a_vector": (
        blur(),
        parse_trace("bind(b, i, thread.x)\nvectorize(b, j)\ncompute_at(p, b, j)"),
        SetScope("p", Scope.SHARED),
    ),
    "split_beyond_shifted_tiles": (
        chain(),
        (Split("q", "i", (4,), Tail.SHIFT), ReverseComputeAt("z", "q", "i_i")),
        Split("q", "i_o", (2,)),
    ),
    "read_after_tiles_that_are_no_boxes": (
        scaled(),
        (
            CacheRead("w", "doubled"),
            Fuse("w_doubled_cache", ("d0", "d1")),
            Split("w_doubled_cache", "d0_d1", (2,)),
        ),
        ReverseComputeAt("doubled", "w_doubled_cache", "d0_d1_o"),
    ),
    "set_scope_of_an_output": (matmul(), (), SetScope("c", Scope.SHARED)),
    "set_scope_to_global": (chain(), (), SetScope("p", Scope.GLOBAL)),
    "set_scope_of_whole_tiles": (
        blur(),
        parse_trace("""
            bind(b, j, thread.x)
            compute_at(p, b, j)
            set_scope(p, shared)
            split(p, j, [3], exact)
        """),
        SetScope("p", Scope.LOCAL),
    ),
    "split_axis_of_an_output": (matmul(), (), SplitAxis("c", "i", (2,))),
    "split_axis_when_scheduled": (
        blur(),
        (Split("p", "i", (2,)),),
        SplitAxis("p", "j", (2,)),
    ),
    "split_axis_of_a_reduction": (matmul(with_relu=True), (), SplitAxis("c", "k", (2,))),
    "split_axis_by_nothing": (blur(), (), SplitAxis("p", "i", ())),
    "split_axis_by_zero": (blur(), (), SplitAxis("p", "i", (0,))),
    "split_axis_into_a_name_that_is_taken": (named_alike(), (), SplitAxis("p", "i", (2,))),
    "cache_what_has_a_rest": (blur(), (SplitAxis("p", "i", (4,)),), CacheRead("p", "b")),
    "cooperate_of_no_threads": (chain(), (), Cooperate("p", ())),
    "cooperate_without_loops": (total(), (), Cooperate("s", (4,))),
    "cooperate_on_a_fold": (matmul(), (), Cooperate("c", (4,))),
    "cooperate_around_a_guest": (blur(), (ComputeAt("p", "b", "j"),), Cooperate("b", (4,))),
    "cooperate_on_marked_loops": (blur(), (Unroll("p", "j"),), Cooperate("p", (4,))),
    "block_order_of_inner_loops": (conv(), (), BlockOrder("relu", "oh", "ow", 2)),
    "block_order_of_bound_loops": (
        blur(),
        (Bind("b", "i", ForKind.BLOCK_X),),
        BlockOrder("b", "i", "j", 2),
    ),
    "block_order_of_no_rows": (blur(), (), BlockOrder("b", "i", "j", 0)),
    "block_order_of_a_placed_stage": (
        blur(),
        (ComputeAt("p", "b", "i"),),
        BlockOrder("p", "i", "j", 2),
    ),
    "layout_of_an_output": (chain(), (), Layout("z", LayoutKind.PADDED, 1)),
    "layout_without_its_amount": (chain(), (), Layout("p", LayoutKind.XOR, 48)),
    "launch_bounds_of_a_placed_stage": (
        blur(),
        (ComputeAt("p", "b", "i"),),
        LaunchBounds("p", 2),
    ),
    "launch_bounds_of_no_groups": (blur(), (), LaunchBounds("b", 0)),
    "pipeline_a_loop_that_is_marked": (matmul(), (Unroll("c", "k"),), Pipeline("c", "k")),
    "pipeline_twice": (
        matmul(16, 24, 12),
        (*STAGED, Pipeline("c_cache", "k_o")),
        Pipeline("c_cache", "k_o"),
    ),
    "pipeline_of_one_stage": (matmul(16, 24, 12), STAGED, Pipeline("c_cache", "k_o", 1)),
    "pipeline_through_many_registers": (matmul(16, 24, 12), STAGED, Pipeline("c_cache", "k_o", 3)),
    "pipeline_of_what_is_not_shared": (matmul(), (), Pipeline("c", "k")),
    "split_a_pipelined_loop": (
        matmul(16, 24, 12),
        (*STAGED, Pipeline("c_cache", "k_o")),
        Split("c_cache", "k_o", (2,)),
    ),
    "fuse_a_pipelined_loop": (
        matmul(16, 24, 12),
        (*STAGED, Pipeline("c_cache", "k_o")),
        Fuse("c_cache", ("k_o", "k_i")),
    ),
    "unroll_a_pipelined_loop": (
        matmul(16, 24, 12),
        (*STAGED, Pipeline("c_cache", "k_o")),
        Unroll("c_cache", "k_o"),
    ),
    "split_reduction_of_a_spatial_loop": (matmul(), (), SplitReduction("c", "i", 2)),
    "split_reduction_into_nothing": (matmul(), (), SplitReduction("c", "k", 0)),
    "split_reduction_of_a_placed_stage": (
        matmul(with_relu=True),
        (ComputeAt("c", "relu", "i"),),
        SplitReduction("c", "k", 2),
    ),
    "split_reduction_when_scheduled": (
        matmul(),
        (Split("c", "i", (2,)),),
        SplitReduction("c", "k", 2),
    ),
    "shuffle_reduce_an_outer_loop": (
        matmul(6, 7, 8),
        (Reorder("c", ("k", "i", "j")),),
        ShuffleReduce("c", "k"),
    ),
    "shuffle_reduce_a_marked_loop": (
        matmul(6, 7, 8),
        (Unroll("c", "k"),),
        ShuffleReduce("c", "k"),
    ),
    "shuffle_reduce_where_threads_are_bound": (
        matmul(6, 7, 8),
        (Bind("c", "j", ForKind.THREAD_X),),
        ShuffleReduce("c", "k"),
    ),
    "shuffle_reduce_over_five_lanes": (matmul(), (), ShuffleReduce("c", "k")),
    "reorder_lanes": (
        matmul(6, 7, 8),
        (ShuffleReduce("c", "k"),),
        Reorder("c", ("i", "k", "j")),
    ),
}
