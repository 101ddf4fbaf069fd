"""Schedules for groups of threads, and steps that groups refuse: cases of two tests."""

from __future__ import annotations

from tests.unit.schedule.case_text import cases, steps
from tests.unit.schedule.expressions import Expression

from tensorwright.expr import compute, placeholder
from tensorwright.schedule import parse_trace
from tensorwright_lab.cards import shared_tiles


def named_alike() -> Expression:
    """A stage whose axes have the names that splitting one of them would give."""
    x = placeholder("x", (4, 4))
    p = compute("p", (4, 4), lambda i, i_o: x[i, i_o] + 1.0)
    return Expression((compute("z", (4, 4), lambda i, j: p[i, j] * 2.0),))


STAGED = parse_trace(shared_tiles((4, 4), (2, 2), 4, (2, 1)))
"""A product in blocks of 8x8 and threads of 2x2; parts of both operands are in shared memory."""

LANES = steps("""
    split(c, k, [8]) | rfactor(c, k_i) | shuffle_reduce(c, k_i) | compute_at(c_rf, c, k_i)
    | bind(c, i, block.x) | split(c, j, [4]) | bind(c, j_i, thread.y)
""")
"""A product whose sums are folded by 8 lanes."""

VIRTUAL_THREADS = steps("""
    cache_write(c) | split_axis(c_cache, i, [2, 2, 2]) | split_axis(c_cache, j, [2, 2, 2])
    | split(c, i, [2, 2, 2]) | split(c, j, [2, 2, 2])
    | reorder(c, [i_0, j_0, i_2, j_2, i_1, j_1, i_3, j_3]) | block_order(c, i_0, j_0, 2)
    | bind(c, i_2, thread.y) | bind(c, j_2, thread.x) | compute_at(c_cache, c, j_2)
    | split(c_cache, k, [2])
    | reorder(c_cache, [k_o, k_i, i_0, i_2, j_0, j_2, i_1, j_1, i_3, j_3])
    | unroll(c_cache, i_1) | unroll(c_cache, j_1) | cache_read(a, c_cache, shared, [1, 0])
    | compute_at(a_c_cache_cache, c_cache, k_o) | cooperate(a_c_cache_cache, [2, 2], 4)
    | pipeline(c_cache, k_o)
""")
"""Each thread has four parts of 2x2 that lie apart, as with two virtual threads each way."""

TRACES = cases(
    """
staged: matmul(16, 24, 12) | STAGED
staged_with_rests: matmul(13, 22, 10) | STAGED
threads_outside_of_a_reduction: matmul() | reorder(c, [k, i, j]) | bind(c, i, thread.y)
    | bind(c, j, thread.x)
set_scope: blur() | bind(b, i, block.x) | bind(b, j, thread.x) | compute_at(p, b, j)
    | set_scope(p, shared) | bind(p, i, thread.x)
pipeline_beside_a_local_tensor: SMALL["rank_one"] | compute_at(s, z, i) | compute_at(t, z, i)
    | bind(t, i0, thread.x) | pipeline(z, i)
shared_without_asking: softmax() | bind(out, i, block.x) | bind(out, j, thread.x)
    | compute_at(total, out, i) | compute_at(e, out, i) | compute_at(top, out, i)
    | bind(e, j, thread.x)
an_epilogue_of_the_same_threads: matmul(with_relu=True) | split(c, i, [4])
    | reorder(c, [i_o, i_i, j, k]) | bind(c, i_o, block.x) | bind(c, j, thread.x)
    | reverse_compute_at(relu, c, i_o) | bind(relu, j, thread.x)
cooperate_on_a_padded_image: conv(6, 1, 2, 4) | split(relu, oh, [3]) | bind(relu, oc, block.y)
    | bind(relu, oh_o, block.x) | bind(relu, oh_i, thread.y) | bind(relu, ow, thread.x)
    | compute_at(y, relu, ow) | compute_at(pad, y, ic) | set_scope(pad, shared)
    | cooperate(pad, [3, 6])
block_order: matmul(13, 10, 5) | split(c, i, [2]) | split(c, j, [2])
    | reorder(c, [i_o, j_o, i_i, j_i]) | block_order(c, i_o, j_o, 4) | bind(c, i_i, thread.y)
    | bind(c, j_i, thread.x)
virtual_threads: matmul(13, 22, 6) | VIRTUAL_THREADS
split_axis: blur() | split_axis(p, j, [4]) | split_axis(p, i, [2, 3]) | compute_at(p, b, i)
split_axis_of_positions: gather() | split_axis(moved, i, [4])
layout: matmul(16, 24, 12) | STAGED | layout(a_c_cache_cache, padded, 1)
    | layout(b_c_cache_cache, xor, 32)
launch_bounds: matmul(16, 24, 12) | STAGED | launch_bounds(c, 2)
pipeline: matmul(13, 22, 10) | STAGED | pipeline(c_cache, k_o)
pipeline_by_copies: matmul(13, 22, 18) | STAGED | pipeline(c_cache, k_o, 3, cp_async)
pipeline_of_more_stages_than_iterations: matmul(8, 8, 4) | STAGED
    | pipeline(c_cache, k_o, 4, cp_async)
split_reduction: matmul(5, 6, 20) | split_reduction(c, k, 3) | split(c_rf, i, [2])
    | reorder(c_rf, [k_o, i_o, i_i, j]) | bind(c_rf, i_o, block.x) | bind(c_rf, i_i, thread.y)
    | bind(c_rf, j, thread.x)
split_reduction_of_one_number: total() | split_reduction(s, k, 4)
shuffle_reduce: matmul(5, 6, 70) | LANES
a_fused_loop_split_by_more_than_it_has: blur(3) | fuse(b, [i, j]) | split(b, i_j, [16])
    | bind(b, i_j_i, thread.x) | compute_at(p, b, i_j_i)
""",
    globals(),
)


REFUSALS = cases(
    """
order_blocks_with_empty_tiles: matmul(1, 5, 3, with_relu=True) | reverse_compute_at(relu, c, j)
    | block_order(c, i, j, 3)
shuffle_lanes_without_terms: total(4) | split(s, k, [8]) | fuse(s, [k_o, k_i])
    | shuffle_reduce(s, k_o_k_i)
parallel_beside_threads: blur() | cache_read(x, p) | compute_at(p, b, i)
    | compute_at(x_p_cache, p, i) | parallel(x_p_cache, d0) | bind(b, j, thread.x)
bind_a_block_inside_a_loop: matmul() | bind(c, j, block.x)
reorder_a_loop_around_blocks: matmul() | bind(c, i, block.x) | reorder(c, [j, i, k])
place_a_stage_with_blocks: chain() | bind(p, i, block.x) | compute_at(p, q, i)
place_a_stage_between_blocks: blur() | bind(b, i, block.y) | bind(b, j, block.x)
    | compute_at(p, b, i)
start_a_reduction_outside_of_blocks: matmul() | bind(c, i, block.x) | decompose_reduction(c, i)
prefetch_in_blocks: matmul() | bind(c, i, block.x) | prefetch(c, a, i)
bind_threads_after_the_tile_of_a_thread: matmul(with_relu=True) | bind(c, i, thread.x)
    | reverse_compute_at(relu, c, i) | bind(relu, j, thread.x)
share_in_lanes_of_a_vector: blur() | bind(b, i, thread.x) | vectorize(b, j) | compute_at(p, b, j)
    | set_scope(p, shared)
split_beyond_shifted_tiles: chain() | split(q, i, [4], shift) | reverse_compute_at(z, q, i_i)
    | split(q, i_o, [2])
read_after_tiles_that_are_no_boxes: scaled() | cache_read(w, doubled)
    | fuse(w_doubled_cache, [d0, d1]) | split(w_doubled_cache, d0_d1, [2])
    | reverse_compute_at(doubled, w_doubled_cache, d0_d1_o)
set_scope_of_an_output: matmul() | set_scope(c, shared)
set_scope_to_global: chain() | set_scope(p, global)
set_scope_of_whole_tiles: blur() | bind(b, j, thread.x) | compute_at(p, b, j) | set_scope(p, shared)
    | split(p, j, [3], exact) | set_scope(p, local)
split_axis_of_an_output: matmul() | split_axis(c, i, [2])
split_axis_when_scheduled: blur() | split(p, i, [2]) | split_axis(p, j, [2])
split_axis_of_a_reduction: matmul(with_relu=True) | split_axis(c, k, [2])
split_axis_by_nothing: blur() | split_axis(p, i, [])
split_axis_by_zero: blur() | split_axis(p, i, [0])
split_axis_into_a_name_that_is_taken: named_alike() | split_axis(p, i, [2])
cache_what_has_a_rest: blur() | split_axis(p, i, [4]) | cache_read(p, b)
cooperate_of_no_threads: chain() | cooperate(p, [])
cooperate_without_loops: total() | cooperate(s, [4])
cooperate_on_a_fold: matmul() | cooperate(c, [4])
cooperate_around_a_guest: blur() | compute_at(p, b, j) | cooperate(b, [4])
cooperate_on_marked_loops: blur() | unroll(p, j) | cooperate(p, [4])
block_order_of_inner_loops: conv() | block_order(relu, oh, ow, 2)
block_order_of_bound_loops: blur() | bind(b, i, block.x) | block_order(b, i, j, 2)
block_order_of_no_rows: blur() | block_order(b, i, j, 0)
block_order_of_a_placed_stage: blur() | compute_at(p, b, i) | block_order(p, i, j, 2)
layout_of_an_output: chain() | layout(z, padded, 1)
layout_without_its_amount: chain() | layout(p, xor, 48)
launch_bounds_of_a_placed_stage: blur() | compute_at(p, b, i) | launch_bounds(p, 2)
launch_bounds_of_no_groups: blur() | launch_bounds(b, 0)
pipeline_a_loop_that_is_marked: matmul() | unroll(c, k) | pipeline(c, k)
pipeline_twice: matmul(16, 24, 12) | STAGED | pipeline(c_cache, k_o) | pipeline(c_cache, k_o)
pipeline_of_one_stage: matmul(16, 24, 12) | STAGED | pipeline(c_cache, k_o, 1)
pipeline_through_many_registers: matmul(16, 24, 12) | STAGED | pipeline(c_cache, k_o, 3)
pipeline_of_what_is_not_shared: matmul() | pipeline(c, k)
split_a_pipelined_loop: matmul(16, 24, 12) | STAGED | pipeline(c_cache, k_o)
    | split(c_cache, k_o, [2])
fuse_a_pipelined_loop: matmul(16, 24, 12) | STAGED | pipeline(c_cache, k_o)
    | fuse(c_cache, [k_o, k_i])
unroll_a_pipelined_loop: matmul(16, 24, 12) | STAGED | pipeline(c_cache, k_o) | unroll(c_cache, k_o)
split_reduction_of_a_spatial_loop: matmul() | split_reduction(c, i, 2)
split_reduction_into_nothing: matmul() | split_reduction(c, k, 0)
split_reduction_of_a_placed_stage: matmul(with_relu=True) | compute_at(c, relu, i)
    | split_reduction(c, k, 2)
split_reduction_when_scheduled: matmul() | split(c, i, [2]) | split_reduction(c, k, 2)
shuffle_reduce_an_outer_loop: matmul(6, 7, 8) | reorder(c, [k, i, j]) | shuffle_reduce(c, k)
shuffle_reduce_a_marked_loop: matmul(6, 7, 8) | unroll(c, k) | shuffle_reduce(c, k)
shuffle_reduce_where_threads_are_bound: matmul(6, 7, 8) | bind(c, j, thread.x)
    | shuffle_reduce(c, k)
shuffle_reduce_over_five_lanes: matmul() | shuffle_reduce(c, k)
reorder_lanes: matmul(6, 7, 8) | shuffle_reduce(c, k) | reorder(c, [i, k, j])
""",
    globals(),
)
