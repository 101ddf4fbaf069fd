"""Every step that is illegal is refused: the whole message, with the loops and the place marked.

The messages are in tests/golden/refusals, a file for each; a case for each condition that the
docstrings of the primitives require.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from tests.unit.schedule import groups
from tests.unit.schedule.case_text import cases, steps
from tests.unit.schedule.expressions import Expression, chain, matmul

from tensorwright.base import DType, ScheduleError
from tensorwright.expr import (
    at_position,
    cast,
    compute,
    named_size,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.schedule import PRIMITIVES, Parallel, Split, Tail, Unroll, replay


def broadcast() -> Expression:
    """A bias that is folded after another tensor's tile: y[i] = sum over k of p[i] * w[k]."""
    x, w, k = placeholder("x", (8,)), placeholder("w", (3,)), reduce_axis("k", 3)
    p = compute("p", (8,), lambda i: x[i] + 1.0)
    return Expression((compute("y", (8,), lambda i: sum_over(p[i] * w[k], k)),))


def transposed_sum() -> Expression:
    x = placeholder("x", (4, 4))
    p = compute("p", (4, 4), lambda i, j: x[i, j] * 2.0)
    return Expression((compute("y", (4, 4), lambda i, j: p[i, j] + p[j, i]),))


def three() -> Expression:
    """z reads p and q, which come one after the other; q does not read p."""
    x, y = placeholder("x", (4,)), placeholder("y", (4,))
    p = compute("p", (4,), lambda i: x[i] + 1.0)
    q = compute("q", (4,), lambda i: y[i] + 1.0)
    return Expression((compute("z", (4,), lambda i: p[i] + q[i]),))


def longer() -> Expression:
    """z is p and two zeros."""
    x = placeholder("x", (4,))
    p = compute("p", (4,), lambda i: x[i] + 1.0)
    return Expression((compute("z", (6,), lambda i: select(i < 4, p[i], 0.0)),))


def shorter() -> Expression:
    """z is the beginning of p."""
    x = placeholder("x", (6,))
    p = compute("p", (6,), lambda i: x[i] + 1.0)
    return Expression((compute("z", (4,), lambda i: p[i] * 2.0),))


def mirrored() -> Expression:
    """z reads p from its end, beside what is made of its beginning."""
    x = placeholder("x", (4,))
    p = compute("p", (4,), lambda i: x[i] + 1.0)
    q = compute("q", (4,), lambda i: p[i] * 2.0)
    return Expression((compute("z", (4,), lambda i: q[i] + p[3 - i]),))


def packed_twice() -> Expression:
    """z[i] = w[i] * (w[i] * x[i])."""
    x, w = placeholder("x", (4,)), placeholder("w", (4,))
    p = compute("p", (4,), lambda i: w[i] * x[i])
    return Expression((compute("z", (4,), lambda i: p[i] * w[i]),), frozenset({"w"}))


def constant_places() -> Expression:
    """y[i] = x[place[i]]."""
    x, place = placeholder("x", (9,)), placeholder("place", (4,), DType.I64)
    y = compute("y", (4,), lambda i: x[at_position(place, (i,), 9)])
    return Expression((y,), frozenset({"place"}), largest={"place": 8})


def sums_of_bytes(columns: int = 16) -> Expression:
    """As the instruction, but it adds where it should multiply."""
    data, w = placeholder("data", (4,), DType.U8), placeholder("w", (columns, 4), DType.I8)
    r = reduce_axis("r", 4)
    y = compute(
        "y", (columns,), lambda j: sum_over(cast(data[r], DType.I32) + cast(w[j, r], DType.I32), r)
    )
    return Expression((y,), frozenset({"w"}))


def constant_output() -> Expression:
    w = placeholder("w", (4,))
    return Expression((compute("y", (4,), lambda i: w[i] + 1.0),), frozenset({"w"}))


def read_twice() -> Expression:
    """A constant that is read as it is, too."""
    x, w = placeholder("x", (4,)), placeholder("w", (4,))
    p = compute("p", (4,), lambda i: w[i] + 1.0)
    return Expression((compute("z", (4,), lambda i: p[i] * w[i] * x[i]),), frozenset({"w"}))


def repeated() -> Expression:
    """A constant that is repeated as often as a size says."""
    n = named_size("n")
    x, w = placeholder("x", (n, 4)), placeholder("w", (4,))
    p = compute("p", (n, 4), lambda i, j: w[j] + 1.0)
    y = compute("y", (n, 4), lambda i, j: p[i, j] * x[i, j])
    return Expression((y,), frozenset({"w"}))


def named_like_a_part() -> Expression:
    """A convolution of something that has the name of what the algorithm would compute."""
    x, w = placeholder("x", (3, 8, 8)), placeholder("w", (4, 3, 3, 3))
    taken = compute("y_rows", x.shape, lambda c, i, j: x[c, i, j] + 1.0)
    c, k, m = reduce_axis("c", 3), reduce_axis("k", 3), reduce_axis("m", 3)
    y = compute(
        "y", (4, 6, 6), lambda o, i, j: sum_over(taken[c, i + k, j + m] * w[o, c, k, m], c, k, m)
    )
    return Expression((y,), frozenset({"w"}))


def named_alike() -> Expression:
    x = placeholder("x", (4, 4))
    return Expression((compute("y", (4, 4), lambda i, i_o: x[i, i_o]),))


READY = steps(
    "split(y, r, [4], exact) | split(y, j, [16], exact) | reorder(y, [i, j_o, r_o, j_i, r_i])"
)
TENSORIZED = (*READY, *steps("pack_constant(w, y) | tensorize(y, j_i, dot4_u8i8_i32)"))

TILES = steps("""
    split(y, r, [2, 4], exact) | split(y, i, [2], exact) | split(y, j, [2], exact)
    | reorder(y, [r_0, i_o, j_o, i_i, j_i, r_1, r_2]) | pack_constant(w, y)
""")

WHOLE_DOT = steps("pack_constant(w, y) | tensorize(y, j, dot4_u8i8_i32)")
TABLE = """
no_stage: matmul() | unroll(d, i)
an_input: matmul() | unroll(a, i)
no_loop: matmul() | unroll(c, x)
a_loop_that_was_split: matmul() | split(c, i, [2]) | unroll(c, i)
a_loop_that_was_fused: matmul() | fuse(c, [i, j]) | unroll(c, j)
split_without_factor: matmul() | split(c, i, [])
split_by_nothing: matmul() | split(c, i, [0])
split_a_marked_loop: matmul() | unroll(c, i) | split(c, i, [2])
split_exactly_with_a_rest: matmul() | split(c, i, [4], exact)
split_shifted_beyond: chain() | split(z, i, [4, 4], shift)
split_a_fold_shifted: matmul() | split(c, j, [4], shift)
split_under_a_fold_shifted: broadcast() | reverse_compute_at(y, p, i) | split(p, i, [3], shift)
split_a_name_again: named_alike() | split(y, i, [2])
split_what_an_intrinsic_computes: bytes_product() | TENSORIZED | split(y, j_i, [4])
fuse_one_loop: matmul() | fuse(c, [i])
fuse_a_marked_loop: matmul() | unroll(c, j) | fuse(c, [i, j])
fuse_loops_apart: matmul() | fuse(c, [i, k])
fuse_with_a_reduction: matmul() | fuse(c, [j, k])
fuse_around_a_stage: blur() | compute_at(p, b, i) | fuse(b, [i, j])
fuse_around_the_start: matmul() | decompose_reduction(c, j) | fuse(c, [i, j])
fuse_what_an_intrinsic_computes: bytes_product() | TENSORIZED | fuse(y, [i, j_o])
reorder_a_loop_twice: matmul() | reorder(c, [i, i])
reorder_a_reduction_around_what_waits: matmul(with_relu=True) | reverse_compute_at(relu, c, j)
    | reorder(c, [k, i, j])
reorder_a_reduction_around_its_start: matmul() | decompose_reduction(c, j) | reorder(c, [k, i, j])
reorder_the_start_around_what_waits: matmul(with_relu=True) | reverse_compute_at(relu, c, i)
    | decompose_reduction(c, j) | reorder(c, [j, i])
reorder_a_stage_inside_of_its_reader: two_outputs() | cache_read(x, s) | compute_at(x_s_cache, s, i)
    | reverse_compute_at(d, s, i) | reorder(s, [k, i])
reorder_what_an_intrinsic_computes: bytes_product() | TENSORIZED | reorder(y, [j_o, i])
unroll_a_marked_loop: matmul() | parallel(c, i) | unroll(c, i)
vectorize_a_marked_loop: matmul() | parallel(c, i) | vectorize(c, i)
vectorize_a_reduction: bytes_product() | vectorize(y, r)
vectorize_inside_lanes: matmul() | vectorize(c, i) | vectorize(c, j)
parallel_on_a_marked_loop: matmul() | unroll(c, i) | parallel(c, i)
parallel_on_a_reduction: matmul() | parallel(c, k)
parallel_inside_threads: matmul() | parallel(c, i) | parallel(c, j)
parallel_around_threads: matmul() | parallel(c, j) | parallel(c, i)
bind_a_marked_loop: matmul() | unroll(c, i) | bind(c, i, block.x)
bind_a_reduction: matmul() | bind(c, k, thread.x)
bind_to_no_index: matmul() | bind(c, i, unroll)
bind_an_index_twice: matmul() | bind(c, i, thread.x) | bind(c, j, thread.x)
bind_a_block_inside_a_thread: matmul() | bind(c, i, thread.x) | bind(c, j, block.x)
compute_at_itself: matmul() | compute_at(c, c, i)
compute_at_a_loop_inside_itself: chain() | reverse_compute_at(q, p, i) | compute_at(p, q, i)
compute_an_output_at: two_outputs() | compute_at(s, d, i)
compute_at_twice: chain() | compute_at(p, q, i) | compute_at(p, q, i)
compute_at_one_of_two_readers: softmax() | compute_at(e, total, i)
compute_threads_at_threads: chain() | parallel(p, i) | parallel(q, i) | compute_at(p, q, i)
reverse_compute_at_twice: chain() | reverse_compute_at(q, p, i) | reverse_compute_at(q, p, i)
reverse_compute_at_a_loop_inside_itself: chain() | compute_at(p, q, i) | reverse_compute_at(q, p, i)
reverse_compute_at_what_is_not_read: chain() | reverse_compute_at(z, p, i)
reverse_compute_at_shifted_reads: blur() | reverse_compute_at(b, p, i)
reverse_compute_at_other_indices: softmax() | reverse_compute_at(total, e, i)
reverse_compute_at_several_places: transposed_sum() | reverse_compute_at(y, p, i)
reverse_compute_at_an_unfinished_tile: matmul(with_relu=True) | reverse_compute_at(relu, c, k)
reverse_compute_at_before_the_start: matmul(with_relu=True) | decompose_reduction(c, i)
    | reverse_compute_at(relu, c, j)
reverse_compute_a_fold_at_overlapping_tiles: broadcast() | split(p, i, [3], shift)
    | reverse_compute_at(y, p, i_o)
reverse_compute_at_before_an_operand: three() | reverse_compute_at(z, p, i)
reverse_compute_at_in_a_nest_before_an_operand: SMALL["diamond"] | reverse_compute_at(r, p, i0)
    | reverse_compute_at(z, r, i)
reverse_compute_at_before_an_operand_is_finished: mirrored() | reverse_compute_at(q, p, i)
    | reverse_compute_at(z, q, i)
parallel_tiles_that_overlap_before_readers: SMALL["output_that_is_read"]
    | reverse_compute_at(q, p, i0) | split(p, i0, [2], shift) | parallel(p, i0_o)
inline_what_is_scheduled: chain() | unroll(p, i) | compute_inline(p)
inline_what_holds_a_stage: blur() | cache_read(x, p) | compute_at(x_p_cache, p, i)
    | compute_inline(p)
inline_a_reduction: matmul(with_relu=True) | compute_inline(c)
inline_an_output: chain() | compute_inline(z)
inline_an_index: gather() | compute_inline(moved)
reverse_inline_what_is_scheduled: chain() | unroll(z, i) | reverse_compute_inline(z)
reverse_inline_into_two: three() | reverse_compute_inline(z)
reverse_inline_a_reduction: matmul(with_relu=True) | reverse_compute_inline(relu)
reverse_inline_what_others_read: softmax() | reverse_compute_inline(e)
reverse_inline_what_two_read: two_outputs() | cache_read(x, d) | reverse_compute_inline(d)
reverse_inline_what_is_longer: longer() | reverse_compute_inline(z)
reverse_inline_what_is_shorter: shorter() | reverse_compute_inline(z)
reverse_inline_shifted_reads: blur() | reverse_compute_inline(b)
split_what_a_reader_runs_past: softmax() | compute_inline(e) | reverse_compute_at(total, top, i)
    | reverse_compute_at(out, total, i) | split(total, i, [2])
reverse_compute_at_what_is_longer: longer() | reverse_compute_at(z, p, i)
reverse_compute_at_empty_tiles: matmul(6, 7, 5, with_relu=True) | split(c, i, [2, 6])
    | reverse_compute_at(relu, c, i_1)
cache_read_what_is_not_read: chain() | cache_read(p, z)
cache_read_twice: two_outputs() | cache_read(x, d) | cache_read(x, d)
cache_read_in_no_order: matmul() | cache_read(a, c, local, [0, 0])
cache_read_what_is_packed: matmul() | pack_constant(b, c) | cache_read(b, c)
cache_read_what_is_computed_inside: chain() | compute_at(p, q, i) | cache_read(p, q)
cache_read_after_a_tile: chain() | reverse_compute_at(q, p, i) | cache_read(p, q)
cache_read_for_an_intrinsic: bytes_product() | TENSORIZED | cache_read(data, y)
cache_write_what_is_scheduled: matmul() | split(c, i, [2]) | cache_write(c)
cache_write_what_is_reordered: matmul() | reorder(c, [j, i]) | cache_write(c)
cache_write_what_packs: matmul() | pack_constant(b, c) | cache_write(c)
cache_write_what_skips_terms: conv() | skip_zeros(y, pad, kh) | cache_write(y)
rfactor_a_spatial_loop: matmul() | rfactor(c, i)
rfactor_the_only_loop: matmul() | rfactor(c, k)
rfactor_beyond_the_axes: matmul() | split(c, k, [2]) | rfactor(c, k_o, 3)
rfactor_what_is_scheduled: matmul() | split(c, k, [2]) | unroll(c, j) | rfactor(c, k_o)
rfactor_twice: total() | split(s, k, [4]) | rfactor(s, k_i) | split(s, k_i, [2]) | rfactor(s, k_i_o)
factor_out_of_no_sum: chain() | factor_out(z)
factor_out_of_a_sum_of_integers: bytes_product() | factor_out(y)
factor_out_what_all_terms_differ_in: matmul() | factor_out(c)
factor_out_of_what_is_scheduled: weighted() | split(w, i, [2]) | factor_out(w)
decompose_no_reduction: chain() | decompose_reduction(z, i)
decompose_inside_the_reduction: matmul() | reorder(c, [k, i, j]) | decompose_reduction(c, i)
decompose_around_what_waits: matmul(with_relu=True) | reverse_compute_at(relu, c, j)
    | decompose_reduction(c, i)
decompose_what_an_intrinsic_computes: bytes_product() | TENSORIZED | decompose_reduction(y, i)
pack_no_constant: matmul() | pack_constant(a, c)
pack_twice: matmul() | pack_constant(b, c) | pack_constant(b, c)
pack_what_is_not_read: matmul(with_relu=True) | pack_constant(b, relu)
pack_for_one_of_two: packed_twice() | pack_constant(w, p)
pack_indices: constant_places() | pack_constant(place, y)
use_columns_of_windows_beside_the_image: conv() | compute_inline(pad) | use_algorithm(y, im2col)
split_an_inner_part_inside_a_tile_by_more: chain(5) | split(p, i, [2])
    | reverse_compute_at(q, p, i_o) | split(p, i_i, [3])
use_no_algorithm: conv() | use_algorithm(y, strassen)
use_an_algorithm_for_something_else: matmul() | use_algorithm(c, winograd2)
use_an_algorithm_for_strided_windows: conv(7, 2) | use_algorithm(y, winograd2)
use_an_algorithm_when_scheduled: conv() | split(y, ow, [2]) | use_algorithm(y, winograd2)
use_an_algorithm_where_a_name_is_taken: named_like_a_part() | use_algorithm(y, winograd2)
fold_what_reads_an_input: blur() | fold_constant(p)
fold_what_reads_two: packed_twice() | fold_constant(p)
fold_what_is_scheduled: scaled() | unroll(doubled, j) | fold_constant(doubled)
fold_an_output: constant_output() | fold_constant(y)
fold_what_is_read_elsewhere: read_twice() | fold_constant(p)
fold_what_a_size_repeats: repeated() | fold_constant(p)
tensorize_by_nothing: matmul() | tensorize(c, i, dot5)
tensorize_other_extents: bytes_product() | tensorize(y, j, dot4_u8i8_i32)
tensorize_another_fold: bytes_product() | split(y, r, [4], exact) | split(y, j, [16], exact)
    | reorder(y, [i, j_o, r_o, r_i, j_i]) | tensorize(y, r_i, dot4_u8i8_i32)
tensorize_other_strides: bytes_product() | READY | tensorize(y, j_i, dot4_u8i8_i32)
tensorize_tiles_of_an_output: bytes_product(4) | TILES | tensorize(y, i_i, mmla_u8i8_i32)
tensorize_another_expression: sums_of_bytes() | tensorize(y, j, dot4_u8i8_i32)
tensorize_around_a_reader: SMALL["bytes_product_that_is_read"] | pack_constant(w, y)
    | reverse_compute_at(z, y, j) | tensorize(y, j, dot4_u8i8_i32)
tensorize_a_marked_loop: bytes_product() | READY | pack_constant(w, y) | unroll(y, r_i)
    | tensorize(y, j_i, dot4_u8i8_i32)
compute_at_what_an_intrinsic_replaces: bytes_product() | cache_read(data, y) | TENSORIZED
    | compute_at(data_y_cache, y, r_i)
reverse_compute_at_what_an_intrinsic_replaces: SMALL["bytes_product_that_is_read"] | WHOLE_DOT
    | reverse_compute_at(z, y, j)
compute_at_less_than_an_intrinsic_computes: SMALL["bytes_product_that_is_read"] | WHOLE_DOT
    | split(z, j, [4]) | compute_at(y, z, j_o)
reorder_around_less_than_an_intrinsic_computes: SMALL["bytes_product_that_is_read"] | WHOLE_DOT
    | compute_at(y, z, i) | reorder(z, [j, i])
mark_what_an_intrinsic_replaces: bytes_product() | TENSORIZED | bind(y, j_i, thread.x)
tensorize_under_a_guard: sums_of_bytes(15) | split(y, j, [16]) | tensorize(y, j_i, dot4_u8i8_i32)
place_what_is_split_by_more: blur() | split(p, i, [5], shift) | compute_at(p, b, i)
reorder_around_what_is_split_by_more: blur() | compute_at(p, b, i) | split(p, j, [9], exact)
    | reorder(b, [j, i])
reorder_what_a_reader_follows: chain() | reverse_compute_at(q, p, i) | split(p, i, [2])
    | reorder(p, [i_i, i_o])
split_an_inner_part_by_more: chain() | split(p, i, [2, 2]) | reverse_compute_at(q, p, i_1)
    | split(p, i_1, [5])
prefetch_what_is_not_read: chain() | prefetch(z, p, i)
prefetch_next_of_what_is_not_packed: chain() | prefetch_next(z, x, i)
skip_zeros_of_no_sum: conv() | skip_zeros(pad, pad, h)
skip_zeros_along_no_axis_of_the_sum: conv() | skip_zeros(y, pad, oh)
skip_zeros_of_no_factor: conv() | skip_zeros(y, relu, kh)
skip_zeros_without_a_border: scaled() | skip_zeros(y, doubled, k)
skip_zeros_where_no_border_is: conv() | skip_zeros(y, pad, ic)
end_at_mask_without_a_mask: softmax() | end_at_mask(out, i)
end_at_mask_of_threads: causal() | bind(y, f, thread.x) | end_at_mask(y, i)
prefetch_nothing_ahead: chain() | prefetch(z, x, i, 0)
"""
CASES = {**cases(TABLE, globals()), **groups.REFUSALS}


@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str, golden: Callable[..., None]) -> None:
    expression, (*before, step) = CASES[name]
    state = replay(expression.state, before)
    with pytest.raises(ScheduleError) as caught:
        step.check(state)
    error = caught.value
    assert error.step == str(step)
    assert error.stage == "schedule"
    assert pickle.loads(pickle.dumps(error)) == error
    golden(str(error))


def test_a_shifted_tile_is_at_most_as_long_as_its_loop() -> None:
    """The loop has 10 iterations: a tile of 11 would begin before the first one."""
    state = chain().state
    Split("z", "i", (10,), Tail.SHIFT).check(state)
    for factors in ((11,), (11, 1), (3, 4)):
        with pytest.raises(ScheduleError, match="is longer than the extent 10 of i"):
            Split("z", "i", factors, Tail.SHIFT).check(state)


def test_every_primitive_refuses_something() -> None:
    assert {type(trace[-1]) for _, trace in CASES.values()} == set(PRIMITIVES)


def test_a_trace_stops_at_the_first_illegal_step() -> None:
    with pytest.raises(ScheduleError, match=r"^parallel\(c, k\)"):
        replay(matmul().state, (Split("c", "i", (2,)), Parallel("c", "k"), Unroll("c", "k")))
