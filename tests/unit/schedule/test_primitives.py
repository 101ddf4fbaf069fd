"""Every primitive keeps the meaning, prints as it parses, and makes the loops that it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.schedule import expressions, groups
from tests.unit.schedule.case_text import cases, steps

from tensorwright.base import UsageError
from tensorwright.expr import Decision
from tensorwright.schedule import (
    PRIMITIVES,
    Bind,
    CacheRead,
    ForKind,
    Parallel,
    Prefetch,
    Split,
    Tail,
    bind,
    format_trace,
    parse_trace,
    replay,
)

TILED_WITH_EPILOGUE = steps("""
    split(relu, i, [3]) | split(relu, j, [4], shift) | reorder(relu, [i_o, j_o, i_i, j_i])
    | fuse(relu, [i_o, j_o]) | parallel(relu, i_o_j_o) | vectorize(relu, j_i)
    | compute_at(c, relu, i_o_j_o) | split(c, k, [2]) | reorder(c, [k_o, k_i, i, j])
    | unroll(c, k_i) | vectorize(c, j) | pack_constant(b, c)
""")

DOT = steps("""
    split(y, r, [4], exact) | split(y, j, [16], exact) | reorder(y, [i, j_o, r_o, j_i, r_i])
    | pack_constant(w, y) | tensorize(y, j_i, dot4_u8i8_i32)
""")

TABLE = """
split_exactly: matmul() | split(c, i, [3], exact)
split_with_guard: matmul() | split(c, j, [4]) | split(c, k, [2, 2])
split_beyond_the_extent: matmul() | split(c, i, [16])
split_with_shift: chain() | split(z, i, [2, 3], shift) | parallel(z, i_0)
split_twice: matmul() | split(c, j, [4]) | split(c, j_o, [3])
split_around_a_guest: blur() | compute_at(p, b, i) | split(b, i, [2]) | split(b, i_i, [2])
split_where_the_fold_starts: matmul() | decompose_reduction(c, j) | split(c, j, [4])
fuse_spatial: matmul() | fuse(c, [i, j]) | split(c, i_j, [5])
fuse_a_reduction: conv(5) | reorder(y, [ic, kh, kw]) | fuse(y, [ic, kh, kw])
fuse_around_a_guest: blur() | compute_at(p, b, j) | fuse(b, [i, j]) | prefetch(b, p, i_j)
fuse_where_the_fold_starts: matmul() | decompose_reduction(c, i) | fuse(c, [i, j])
reorder: matmul() | reorder(c, [k, i, j])
unroll: matmul() | unroll(c, k) | unroll(c, i)
vectorize_around_a_loop_of_the_fold: conv(4) | vectorize(y, kh)
vectorize: matmul() | reorder(c, [i, k, j]) | vectorize(c, j)
parallel: two_outputs() | parallel(s, i) | parallel(d, i) | vectorize(d, j)
bind: matmul() | split(c, i, [2]) | bind(c, i_o, block.x) | bind(c, j, thread.x)
    | bind(c, i_i, thread.y)
compute_at: softmax() | compute_at(total, out, i) | compute_at(e, out, i) | compute_at(top, e, i)
compute_at_a_tile: conv(6, 2) | split(relu, oh, [2]) | compute_at(y, relu, oh_o)
    | compute_at(pad, y, oc)
compute_at_an_overlap: blur() | split(b, i, [4]) | split(b, j, [4]) | compute_at(p, b, i_o)
reverse_compute_at: matmul(with_relu=True) | split(c, i, [4]) | reorder(c, [i_o, j, i_i, k])
    | reverse_compute_at(relu, c, j)
reverse_compute_at_twice_where_the_last_tile_is_cut: chain(5) | split(p, i, [2])
    | reverse_compute_at(q, p, i_o) | reverse_compute_at(z, q, i)
reverse_compute_at_twice_what_reads_its_own_position: SMALL["output_that_is_read"]
    | reverse_compute_at(q, p, i0) | reverse_compute_at(z, q, i)
compute_at_as_much_as_an_intrinsic_computes: SMALL["bytes_product_that_is_read"]
    | pack_constant(w, y) | tensorize(y, j, dot4_u8i8_i32) | compute_at(y, z, i)
compute_at_positions_that_are_data: SMALL["chosen_rows"] | split_axis(p, i0, [2])
    | compute_at(p, rows, i)
reverse_compute_at_with_an_output: two_outputs() | reverse_compute_at(d, s, i)
compute_inline: chain() | compute_inline(p) | compute_inline(q)
compute_inline_a_condition: conv() | compute_inline(pad)
reverse_compute_inline: chain() | split(q, i, [4]) | reverse_compute_inline(z) | vectorize(z, i_i)
reverse_compute_inline_what_was_asked_for: gather() | prefetch(rows, moved, j)
    | cache_read(moved, rows) | reverse_compute_inline(moved_rows_cache)
compute_inline_what_was_asked_for: blur() | prefetch(b, p, j) | cache_read(p, b) | compute_inline(p)
cache_read: matmul() | cache_read(a, c) | cache_read(b, c, shared, [1, 0])
    | compute_at(a_c_cache, c, i)
cache_write: matmul() | cache_write(c) | split(c, j, [3], shift) | compute_at(c_cache, c, j_o)
rfactor: total() | split(s, k, [5]) | rfactor(s, k_i) | vectorize(s_rf, k_i)
rfactor_with_partial_results_first: matmul() | split(c, k, [2]) | rfactor(c, k_o, 0)
    | vectorize(c_rf, j)
rfactor_max: pool() | rfactor(y, kh) | unroll(y_rf, kw)
rfactor_arg_max: arg_max() | split(best_place, k, [4]) | rfactor(best_place, k_o)
factor_out: weighted() | factor_out(w) | compute_at(w_sums, w, i)
decompose_reduction: matmul() | split(c, j, [4]) | reorder(c, [i, j_o, k, j_i])
    | decompose_reduction(c, j_o)
pack_constant: matmul() | split(c, j, [4]) | reorder(c, [j_o, i, k, j_i]) | pack_constant(b, c)
pack_in_an_order_of_fused_loops: conv() | fuse(y, [ic, kh, kw]) | split(y, ic_kh_kw, [4])
    | pack_constant(w, y)
tensorize: bytes_product() | DOT
prefetch: matmul() | prefetch(c, a, i, 2) | prefetch(c, b, k) | split(c, k, [2])
prefetch_next: matmul(with_relu=True) | split(relu, i, [3]) | split(relu, j, [4])
    | reorder(relu, [j_o, i_o, i_i, j_i]) | fuse(relu, [j_o, i_o]) | compute_at(c, relu, j_o_i_o)
    | split(c, k, [3]) | reorder(c, [k_o, k_i, i, j]) | pack_constant(b, c)
    | prefetch_next(c, b, k_o)
skip_zeros: conv() | reorder(y, [oc, oh, kh, ow, ic, kw]) | skip_zeros(y, pad, kh)
skip_zeros_in_tiles: conv(5, channels=4) | split(relu, oc, [2]) | split(relu, ow, [2], shift)
    | reorder(relu, [oc_o, oh, ow_o, oc_i, ow_i]) | compute_at(y, relu, ow_o)
    | skip_zeros(y, pad, kh) | skip_zeros(y, pad, kw) | split(y, ic, [2])
    | reorder(y, [kh, kw, ic_o, ic_i, oc, oh, ow]) | unroll(y, ow) | pack_constant(w, y)
    | prefetch_next(y, w, ic_o) | compute_inline(pad)
skip_zeros_for_positions: conv(5, channels=4) | split(relu, ow, [2], shift)
    | reorder(relu, [oh, ow_o, oc, ow_i]) | compute_at(y, relu, ow_o) | skip_zeros(y, pad, kh)
    | skip_zeros(y, pad, kw, positions) | reorder(y, [kh, kw, ic, oc, oh, ow]) | unroll(y, ow)
end_at_mask: causal() | compute_inline(seen) | split(y, i, [2])
    | reorder(y, [i_o, i_i, f, k]) | compute_at(e, y, i_o) | compute_at(top, y, i_o)
    | split(e, j, [4]) | split(top, j, [2]) | end_at_mask(y, i_o)
prefetch_next_alone: matmul() | reorder(c, [j, i, k]) | pack_constant(b, c) | prefetch_next(c, b, k)
prefetch_by_position: gather() | prefetch(rows, table, i) | unroll(rows, j)
use_algorithm: conv() | use_algorithm(y, winograd2)
fold_constant: scaled() | fold_constant(doubled)
fold_twice: conv() | use_algorithm(y, winograd2) | fold_constant(y_kernel_f64)
    | fold_constant(y_kernel) | reorder(y_product, [u, oc, oh_t, ow_t, v, ic])
    | pack_constant(y_kernel, y_product)
fold_positions: positions() | fold_constant(p) | fold_constant(q)
fold_and_pack: scaled() | fold_constant(doubled) | split(y, j, [4]) | pack_constant(doubled, y)
tiled_with_epilogue: matmul(with_relu=True) | TILED_WITH_EPILOGUE
"""
CASES = {**cases(TABLE, globals()), **groups.TRACES}


@pytest.mark.parametrize("name", CASES)
def test_the_meaning_is_kept(name: str) -> None:
    expressions.check(*CASES[name])


def test_every_primitive_is_among_the_cases() -> None:
    used = {type(step) for _, trace in CASES.values() for step in trace}
    assert used == set(PRIMITIVES)


GOLDEN = (
    "split_with_guard",
    "split_with_shift",
    "end_at_mask",
    "fuse_spatial",
    "compute_at_an_overlap",
    "reverse_compute_at",
    "cache_read",
    "rfactor",
    "factor_out",
    "decompose_reduction",
    "pack_in_an_order_of_fused_loops",
    "tensorize",
    "prefetch",
    "prefetch_next",
    "fold_and_pack",
    "tiled_with_epilogue",
    "staged",
    "pipeline",
    "pipeline_by_copies",
    "split_reduction",
    "shuffle_reduce",
)


@pytest.mark.parametrize("name", GOLDEN)
def test_loops_of(name: str, golden: Callable[..., None]) -> None:
    expression, trace = CASES[name]
    golden(f"{format_trace(trace)}\n\n{expressions.check(expression, trace)}")


# traces


def test_a_trace_prints_one_step_a_line_without_defaults() -> None:
    text = format_trace((Split("c", "i", (Decision("t"), 4), Tail.SHIFT), CacheRead("a", "c")))
    assert text == "split(c, i, [?t, 4], shift)\ncache_read(a, c)"
    assert str(Bind("c", "i", ForKind.BLOCK_X)) == "bind(c, i, block.x)"
    assert str(CacheRead("a", "c", order=(1, 0))) == "cache_read(a, c, local, [1, 0])"


def test_blank_lines_and_comments_are_passed_over() -> None:
    assert parse_trace("# a tile\n\n  split( c , i ,[ 2,?t ] )\n") == (
        Split("c", "i", (2, Decision("t"))),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("spilt(c, i)", "this is not a schedule step"),
        ("split c i 4", "this is not a schedule step"),
        ("split(c, i)", "it has 2 arguments"),
        ("split(c, i, [4], guard, 5)", "it has 5 arguments"),
        ("split(c, i, [4)", "a bracket is not closed"),
        ("split(c, i, [four])", "'four' is not a number"),
        ("split(c, i, [4], cut)", "cut is not a tail"),
        ("unroll(c, 3)", "'3' is not a name"),
    ],
)
def test_text_that_is_no_step_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_trace(text)
    assert caught.value.where == f"step {text!r}"
    assert caught.value.reason == reason


def test_a_step_with_a_wrong_name_gets_the_nearest() -> None:
    for text, remedy in (
        ("spilt(c, i)", "did you mean split?"),
        ("vectorise(c, i)", "did you mean vectorize?"),
        ("decompose(c, k)", "did you mean decompose_reduction?"),
    ):
        with pytest.raises(UsageError) as caught:
            parse_trace(text)
        assert caught.value.remedy == remedy


def test_decisions_of_a_trace_are_bound_by_name() -> None:
    trace = (
        Split("c", "i", (Decision("t"), Decision("u"))),
        Prefetch("c", "a", "k", Decision("d")),
    )
    bound = bind(trace, {"t": 2, "d": 3})
    assert bound == (Split("c", "i", (2, Decision("u"))), Prefetch("c", "a", "k", 3))


def test_a_state_is_not_changed_by_a_step() -> None:
    state = expressions.matmul().state
    before = state.stages
    replay(state, (Split("c", "i", (2,)), Parallel("c", "i_o")))
    assert state.stages is before
    assert state.stage("c").loops == ("i", "j", "k")
