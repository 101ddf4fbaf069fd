"""Every step that is illegal is refused: the whole message, with the loops and the place marked.

The messages are in tests/golden/refusals, a file for each; a case for each condition that the
docstrings of the primitives require.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from tests.unit.schedule import groups
from tests.unit.schedule.expressions import (
    Expression,
    blur,
    bytes_product,
    chain,
    conv,
    gather,
    matmul,
    scaled,
    softmax,
    total,
    two_outputs,
    weighted,
)
from tests.unit.schedule.small_expressions import SMALL

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
from tensorwright.schedule import (
    PRIMITIVES,
    Bind,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    DecomposeReduction,
    FactorOut,
    FoldConstant,
    ForKind,
    Fuse,
    PackConstant,
    Parallel,
    Prefetch,
    PrefetchNext,
    Primitive,
    Reorder,
    ReverseComputeAt,
    ReverseComputeInline,
    Rfactor,
    SkipZeros,
    Split,
    Tail,
    Tensorize,
    Trace,
    Unroll,
    UseAlgorithm,
    Vectorize,
    replay,
)


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


READY: Trace = (
    Split("y", "r", (4,), Tail.EXACT),
    Split("y", "j", (16,), Tail.EXACT),
    Reorder("y", ("i", "j_o", "r_o", "j_i", "r_i")),
)
TENSORIZED: Trace = (*READY, PackConstant("w", "y"), Tensorize("y", "j_i", "dot4_u8i8_i32"))

TILES: Trace = (
    Split("y", "r", (2, 4), Tail.EXACT),
    Split("y", "i", (2,), Tail.EXACT),
    Split("y", "j", (2,), Tail.EXACT),
    Reorder("y", ("r_0", "i_o", "j_o", "i_i", "j_i", "r_1", "r_2")),
    PackConstant("w", "y"),
)

Case = tuple[Expression, Trace, Primitive]
WHOLE_DOT: Trace = (PackConstant("w", "y"), Tensorize("y", "j", "dot4_u8i8_i32"))
CASES: dict[str, Case] = {
    "no_stage": (matmul(), (), Unroll("d", "i")),
    "an_input": (matmul(), (), Unroll("a", "i")),
    "no_loop": (matmul(), (), Unroll("c", "x")),
    "a_loop_that_was_split": (matmul(), (Split("c", "i", (2,)),), Unroll("c", "i")),
    "a_loop_that_was_fused": (matmul(), (Fuse("c", ("i", "j")),), Unroll("c", "j")),
    "split_without_factor": (matmul(), (), Split("c", "i", ())),
    "split_by_nothing": (matmul(), (), Split("c", "i", (0,))),
    "split_a_marked_loop": (matmul(), (Unroll("c", "i"),), Split("c", "i", (2,))),
    "split_exactly_with_a_rest": (matmul(), (), Split("c", "i", (4,), Tail.EXACT)),
    "split_shifted_beyond": (chain(), (), Split("z", "i", (4, 4), Tail.SHIFT)),
    "split_a_fold_shifted": (matmul(), (), Split("c", "j", (4,), Tail.SHIFT)),
    "split_under_a_fold_shifted": (
        broadcast(),
        (ReverseComputeAt("y", "p", "i"),),
        Split("p", "i", (3,), Tail.SHIFT),
    ),
    "split_a_name_again": (named_alike(), (), Split("y", "i", (2,))),
    "split_what_an_intrinsic_computes": (bytes_product(), TENSORIZED, Split("y", "j_i", (4,))),
    "fuse_one_loop": (matmul(), (), Fuse("c", ("i",))),
    "fuse_a_marked_loop": (matmul(), (Unroll("c", "j"),), Fuse("c", ("i", "j"))),
    "fuse_loops_apart": (matmul(), (), Fuse("c", ("i", "k"))),
    "fuse_with_a_reduction": (matmul(), (), Fuse("c", ("j", "k"))),
    "fuse_around_a_stage": (blur(), (ComputeAt("p", "b", "i"),), Fuse("b", ("i", "j"))),
    "fuse_around_the_start": (matmul(), (DecomposeReduction("c", "j"),), Fuse("c", ("i", "j"))),
    "fuse_what_an_intrinsic_computes": (bytes_product(), TENSORIZED, Fuse("y", ("i", "j_o"))),
    "reorder_a_loop_twice": (matmul(), (), Reorder("c", ("i", "i"))),
    "reorder_a_reduction_around_what_waits": (
        matmul(with_relu=True),
        (ReverseComputeAt("relu", "c", "j"),),
        Reorder("c", ("k", "i", "j")),
    ),
    "reorder_a_reduction_around_its_start": (
        matmul(),
        (DecomposeReduction("c", "j"),),
        Reorder("c", ("k", "i", "j")),
    ),
    "reorder_the_start_around_what_waits": (
        matmul(with_relu=True),
        (ReverseComputeAt("relu", "c", "i"), DecomposeReduction("c", "j")),
        Reorder("c", ("j", "i")),
    ),
    "reorder_a_stage_inside_of_its_reader": (
        two_outputs(),
        (CacheRead("x", "s"), ComputeAt("x_s_cache", "s", "i"), ReverseComputeAt("d", "s", "i")),
        Reorder("s", ("k", "i")),
    ),
    "reorder_what_an_intrinsic_computes": (bytes_product(), TENSORIZED, Reorder("y", ("j_o", "i"))),
    "unroll_a_marked_loop": (matmul(), (Parallel("c", "i"),), Unroll("c", "i")),
    "vectorize_a_marked_loop": (matmul(), (Parallel("c", "i"),), Vectorize("c", "i")),
    "vectorize_a_reduction": (bytes_product(), (), Vectorize("y", "r")),
    "vectorize_inside_lanes": (matmul(), (Vectorize("c", "i"),), Vectorize("c", "j")),
    "parallel_on_a_marked_loop": (matmul(), (Unroll("c", "i"),), Parallel("c", "i")),
    "parallel_on_a_reduction": (matmul(), (), Parallel("c", "k")),
    "parallel_inside_threads": (matmul(), (Parallel("c", "i"),), Parallel("c", "j")),
    "parallel_around_threads": (matmul(), (Parallel("c", "j"),), Parallel("c", "i")),
    "bind_a_marked_loop": (matmul(), (Unroll("c", "i"),), Bind("c", "i", ForKind.BLOCK_X)),
    "bind_a_reduction": (matmul(), (), Bind("c", "k", ForKind.THREAD_X)),
    "bind_to_no_index": (matmul(), (), Bind("c", "i", ForKind.UNROLLED)),
    "bind_an_index_twice": (
        matmul(),
        (Bind("c", "i", ForKind.THREAD_X),),
        Bind("c", "j", ForKind.THREAD_X),
    ),
    "bind_a_block_inside_a_thread": (
        matmul(),
        (Bind("c", "i", ForKind.THREAD_X),),
        Bind("c", "j", ForKind.BLOCK_X),
    ),
    "compute_at_itself": (matmul(), (), ComputeAt("c", "c", "i")),
    "compute_at_a_loop_inside_itself": (
        chain(),
        (ReverseComputeAt("q", "p", "i"),),
        ComputeAt("p", "q", "i"),
    ),
    "compute_an_output_at": (two_outputs(), (), ComputeAt("s", "d", "i")),
    "compute_at_twice": (chain(), (ComputeAt("p", "q", "i"),), ComputeAt("p", "q", "i")),
    "compute_at_one_of_two_readers": (softmax(), (), ComputeAt("e", "total", "i")),
    "compute_threads_at_threads": (
        chain(),
        (Parallel("p", "i"), Parallel("q", "i")),
        ComputeAt("p", "q", "i"),
    ),
    "reverse_compute_at_twice": (
        chain(),
        (ReverseComputeAt("q", "p", "i"),),
        ReverseComputeAt("q", "p", "i"),
    ),
    "reverse_compute_at_a_loop_inside_itself": (
        chain(),
        (ComputeAt("p", "q", "i"),),
        ReverseComputeAt("q", "p", "i"),
    ),
    "reverse_compute_at_what_is_not_read": (chain(), (), ReverseComputeAt("z", "p", "i")),
    "reverse_compute_at_shifted_reads": (blur(), (), ReverseComputeAt("b", "p", "i")),
    "reverse_compute_at_other_indices": (softmax(), (), ReverseComputeAt("total", "e", "i")),
    "reverse_compute_at_several_places": (transposed_sum(), (), ReverseComputeAt("y", "p", "i")),
    "reverse_compute_at_an_unfinished_tile": (
        matmul(with_relu=True),
        (),
        ReverseComputeAt("relu", "c", "k"),
    ),
    "reverse_compute_at_before_the_start": (
        matmul(with_relu=True),
        (DecomposeReduction("c", "i"),),
        ReverseComputeAt("relu", "c", "j"),
    ),
    "reverse_compute_a_fold_at_overlapping_tiles": (
        broadcast(),
        (Split("p", "i", (3,), Tail.SHIFT),),
        ReverseComputeAt("y", "p", "i_o"),
    ),
    "reverse_compute_at_before_an_operand": (three(), (), ReverseComputeAt("z", "p", "i")),
    "reverse_compute_at_in_a_nest_before_an_operand": (
        SMALL["diamond"],
        (ReverseComputeAt("r", "p", "i0"),),
        ReverseComputeAt("z", "r", "i"),
    ),
    "reverse_compute_at_before_an_operand_is_finished": (
        mirrored(),
        (ReverseComputeAt("q", "p", "i"),),
        ReverseComputeAt("z", "q", "i"),
    ),
    "parallel_tiles_that_overlap_before_readers": (
        SMALL["output_that_is_read"],
        (ReverseComputeAt("q", "p", "i0"), Split("p", "i0", (2,), Tail.SHIFT)),
        Parallel("p", "i0_o"),
    ),
    "inline_what_is_scheduled": (chain(), (Unroll("p", "i"),), ComputeInline("p")),
    "inline_what_holds_a_stage": (
        blur(),
        (CacheRead("x", "p"), ComputeAt("x_p_cache", "p", "i")),
        ComputeInline("p"),
    ),
    "inline_a_reduction": (matmul(with_relu=True), (), ComputeInline("c")),
    "inline_an_output": (chain(), (), ComputeInline("z")),
    "inline_an_index": (gather(), (), ComputeInline("moved")),
    "reverse_inline_what_is_scheduled": (chain(), (Unroll("z", "i"),), ReverseComputeInline("z")),
    "reverse_inline_into_two": (three(), (), ReverseComputeInline("z")),
    "reverse_inline_a_reduction": (matmul(with_relu=True), (), ReverseComputeInline("relu")),
    "reverse_inline_what_others_read": (softmax(), (), ReverseComputeInline("e")),
    "reverse_inline_what_two_read": (
        two_outputs(),
        (CacheRead("x", "d"),),
        ReverseComputeInline("d"),
    ),
    "reverse_inline_what_is_longer": (longer(), (), ReverseComputeInline("z")),
    "reverse_inline_what_is_shorter": (shorter(), (), ReverseComputeInline("z")),
    "reverse_inline_shifted_reads": (blur(), (), ReverseComputeInline("b")),
    "split_what_a_reader_runs_past": (
        softmax(),
        (
            ComputeInline("e"),
            ReverseComputeAt("total", "top", "i"),
            ReverseComputeAt("out", "total", "i"),
        ),
        Split("total", "i", (2,)),
    ),
    "reverse_compute_at_what_is_longer": (longer(), (), ReverseComputeAt("z", "p", "i")),
    "reverse_compute_at_empty_tiles": (
        matmul(6, 7, 5, with_relu=True),
        (Split("c", "i", (2, 6)),),
        ReverseComputeAt("relu", "c", "i_1"),
    ),
    "cache_read_what_is_not_read": (chain(), (), CacheRead("p", "z")),
    "cache_read_twice": (two_outputs(), (CacheRead("x", "d"),), CacheRead("x", "d")),
    "cache_read_in_no_order": (matmul(), (), CacheRead("a", "c", order=(0, 0))),
    "cache_read_what_is_packed": (matmul(), (PackConstant("b", "c"),), CacheRead("b", "c")),
    "cache_read_what_is_computed_inside": (
        chain(),
        (ComputeAt("p", "q", "i"),),
        CacheRead("p", "q"),
    ),
    "cache_read_after_a_tile": (
        chain(),
        (ReverseComputeAt("q", "p", "i"),),
        CacheRead("p", "q"),
    ),
    "cache_read_for_an_intrinsic": (bytes_product(), TENSORIZED, CacheRead("data", "y")),
    "cache_write_what_is_scheduled": (matmul(), (Split("c", "i", (2,)),), CacheWrite("c")),
    "cache_write_what_is_reordered": (matmul(), (Reorder("c", ("j", "i")),), CacheWrite("c")),
    "cache_write_what_packs": (matmul(), (PackConstant("b", "c"),), CacheWrite("c")),
    "cache_write_what_skips_terms": (conv(), (SkipZeros("y", "pad", "kh"),), CacheWrite("y")),
    "rfactor_a_spatial_loop": (matmul(), (), Rfactor("c", "i")),
    "rfactor_the_only_loop": (matmul(), (), Rfactor("c", "k")),
    "rfactor_beyond_the_axes": (matmul(), (Split("c", "k", (2,)),), Rfactor("c", "k_o", 3)),
    "rfactor_what_is_scheduled": (
        matmul(),
        (Split("c", "k", (2,)), Unroll("c", "j")),
        Rfactor("c", "k_o"),
    ),
    "rfactor_twice": (
        total(),
        (Split("s", "k", (4,)), Rfactor("s", "k_i"), Split("s", "k_i", (2,))),
        Rfactor("s", "k_i_o"),
    ),
    "factor_out_of_no_sum": (chain(), (), FactorOut("z")),
    "factor_out_of_a_sum_of_integers": (bytes_product(), (), FactorOut("y")),
    "factor_out_what_all_terms_differ_in": (matmul(), (), FactorOut("c")),
    "factor_out_of_what_is_scheduled": (weighted(), (Split("w", "i", (2,)),), FactorOut("w")),
    "decompose_no_reduction": (chain(), (), DecomposeReduction("z", "i")),
    "decompose_inside_the_reduction": (
        matmul(),
        (Reorder("c", ("k", "i", "j")),),
        DecomposeReduction("c", "i"),
    ),
    "decompose_around_what_waits": (
        matmul(with_relu=True),
        (ReverseComputeAt("relu", "c", "j"),),
        DecomposeReduction("c", "i"),
    ),
    "decompose_what_an_intrinsic_computes": (
        bytes_product(),
        TENSORIZED,
        DecomposeReduction("y", "i"),
    ),
    "pack_no_constant": (matmul(), (), PackConstant("a", "c")),
    "pack_twice": (matmul(), (PackConstant("b", "c"),), PackConstant("b", "c")),
    "pack_what_is_not_read": (matmul(with_relu=True), (), PackConstant("b", "relu")),
    "pack_for_one_of_two": (packed_twice(), (), PackConstant("w", "p")),
    "pack_indices": (constant_places(), (), PackConstant("place", "y")),
    "use_columns_of_windows_beside_the_image": (
        conv(),
        (ComputeInline("pad"),),
        UseAlgorithm("y", "im2col"),
    ),
    "split_an_inner_part_inside_a_tile_by_more": (
        chain(5),
        (Split("p", "i", (2,)), ReverseComputeAt("q", "p", "i_o")),
        Split("p", "i_i", (3,)),
    ),
    "use_no_algorithm": (conv(), (), UseAlgorithm("y", "strassen")),
    "use_an_algorithm_for_something_else": (matmul(), (), UseAlgorithm("c", "winograd2")),
    "use_an_algorithm_for_strided_windows": (conv(7, 2), (), UseAlgorithm("y", "winograd2")),
    "use_an_algorithm_when_scheduled": (
        conv(),
        (Split("y", "ow", (2,)),),
        UseAlgorithm("y", "winograd2"),
    ),
    "use_an_algorithm_where_a_name_is_taken": (
        named_like_a_part(),
        (),
        UseAlgorithm("y", "winograd2"),
    ),
    "fold_what_reads_an_input": (blur(), (), FoldConstant("p")),
    "fold_what_reads_two": (packed_twice(), (), FoldConstant("p")),
    "fold_what_is_scheduled": (scaled(), (Unroll("doubled", "j"),), FoldConstant("doubled")),
    "fold_an_output": (constant_output(), (), FoldConstant("y")),
    "fold_what_is_read_elsewhere": (read_twice(), (), FoldConstant("p")),
    "fold_what_a_size_repeats": (repeated(), (), FoldConstant("p")),
    "tensorize_by_nothing": (matmul(), (), Tensorize("c", "i", "dot5")),
    "tensorize_other_extents": (bytes_product(), (), Tensorize("y", "j", "dot4_u8i8_i32")),
    "tensorize_another_fold": (
        bytes_product(),
        (*READY[:2], Reorder("y", ("i", "j_o", "r_o", "r_i", "j_i"))),
        Tensorize("y", "r_i", "dot4_u8i8_i32"),
    ),
    "tensorize_other_strides": (bytes_product(), READY, Tensorize("y", "j_i", "dot4_u8i8_i32")),
    "tensorize_tiles_of_an_output": (
        bytes_product(4),
        TILES,
        Tensorize("y", "i_i", "mmla_u8i8_i32"),
    ),
    "tensorize_another_expression": (sums_of_bytes(), (), Tensorize("y", "j", "dot4_u8i8_i32")),
    "tensorize_around_a_reader": (
        SMALL["bytes_product_that_is_read"],
        (PackConstant("w", "y"), ReverseComputeAt("z", "y", "j")),
        WHOLE_DOT[-1],
    ),
    "tensorize_a_marked_loop": (
        bytes_product(),
        (*TENSORIZED[:-1], Unroll("y", "r_i")),
        TENSORIZED[-1],
    ),
    "compute_at_what_an_intrinsic_replaces": (
        bytes_product(),
        (CacheRead("data", "y"), *TENSORIZED),
        ComputeAt("data_y_cache", "y", "r_i"),
    ),
    "reverse_compute_at_what_an_intrinsic_replaces": (
        SMALL["bytes_product_that_is_read"],
        WHOLE_DOT,
        ReverseComputeAt("z", "y", "j"),
    ),
    "compute_at_less_than_an_intrinsic_computes": (
        SMALL["bytes_product_that_is_read"],
        (*WHOLE_DOT, Split("z", "j", (4,))),
        ComputeAt("y", "z", "j_o"),
    ),
    "reorder_around_less_than_an_intrinsic_computes": (
        SMALL["bytes_product_that_is_read"],
        (*WHOLE_DOT, ComputeAt("y", "z", "i")),
        Reorder("z", ("j", "i")),
    ),
    "mark_what_an_intrinsic_replaces": (
        bytes_product(),
        TENSORIZED,
        Bind("y", "j_i", ForKind.THREAD_X),
    ),
    "tensorize_under_a_guard": (
        sums_of_bytes(15),
        (Split("y", "j", (16,)),),
        Tensorize("y", "j_i", "dot4_u8i8_i32"),
    ),
    "place_what_is_split_by_more": (
        blur(),
        (Split("p", "i", (5,), Tail.SHIFT),),
        ComputeAt("p", "b", "i"),
    ),
    "reorder_around_what_is_split_by_more": (
        blur(),
        (ComputeAt("p", "b", "i"), Split("p", "j", (9,), Tail.EXACT)),
        Reorder("b", ("j", "i")),
    ),
    "reorder_what_a_reader_follows": (
        chain(),
        (ReverseComputeAt("q", "p", "i"), Split("p", "i", (2,))),
        Reorder("p", ("i_i", "i_o")),
    ),
    "split_an_inner_part_by_more": (
        chain(),
        (Split("p", "i", (2, 2)), ReverseComputeAt("q", "p", "i_1")),
        Split("p", "i_1", (5,)),
    ),
    "prefetch_what_is_not_read": (chain(), (), Prefetch("z", "p", "i")),
    "prefetch_next_of_what_is_not_packed": (chain(), (), PrefetchNext("z", "x", "i")),
    "skip_zeros_of_no_sum": (conv(), (), SkipZeros("pad", "pad", "h")),
    "skip_zeros_along_no_axis_of_the_sum": (conv(), (), SkipZeros("y", "pad", "oh")),
    "skip_zeros_of_no_factor": (conv(), (), SkipZeros("y", "relu", "kh")),
    "skip_zeros_without_a_border": (scaled(), (), SkipZeros("y", "doubled", "k")),
    "skip_zeros_where_no_border_is": (conv(), (), SkipZeros("y", "pad", "ic")),
    "prefetch_nothing_ahead": (chain(), (), Prefetch("z", "x", "i", 0)),
    **groups.REFUSALS,
}


@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str, golden: Callable[..., None]) -> None:
    expression, before, step = CASES[name]
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
    assert {type(step) for _, _, step in CASES.values()} == set(PRIMITIVES)


def test_a_trace_stops_at_the_first_illegal_step() -> None:
    with pytest.raises(ScheduleError, match=r"^parallel\(c, k\)"):
        replay(matmul().state, (Split("c", "i", (2,)), Parallel("c", "k"), Unroll("c", "k")))
