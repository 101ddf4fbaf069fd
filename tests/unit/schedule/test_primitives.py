"""Every primitive keeps the meaning, prints as it parses, and makes the loops that it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.schedule import expressions, groups
from tests.unit.schedule.small_expressions import SMALL

from tensorwright.base import UsageError
from tensorwright.expr import Decision
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
    Reorder,
    ReverseComputeAt,
    ReverseComputeInline,
    Rfactor,
    Scope,
    Skipped,
    SkipZeros,
    Split,
    SplitAxis,
    Tail,
    Tensorize,
    Trace,
    Unroll,
    UseAlgorithm,
    Vectorize,
    bind,
    format_trace,
    parse_trace,
    replay,
)

TILED_WITH_EPILOGUE: Trace = (
    Split("relu", "i", (3,)),
    Split("relu", "j", (4,), Tail.SHIFT),
    Reorder("relu", ("i_o", "j_o", "i_i", "j_i")),
    Fuse("relu", ("i_o", "j_o")),
    Parallel("relu", "i_o_j_o"),
    Vectorize("relu", "j_i"),
    ComputeAt("c", "relu", "i_o_j_o"),
    Split("c", "k", (2,)),
    Reorder("c", ("k_o", "k_i", "i", "j")),
    Unroll("c", "k_i"),
    Vectorize("c", "j"),
    PackConstant("b", "c"),
)

DOT: Trace = (
    Split("y", "r", (4,), Tail.EXACT),
    Split("y", "j", (16,), Tail.EXACT),
    Reorder("y", ("i", "j_o", "r_o", "j_i", "r_i")),
    PackConstant("w", "y"),
    Tensorize("y", "j_i", "dot4_u8i8_i32"),
)

CASES: dict[str, tuple[expressions.Expression, Trace]] = {
    "split_exactly": (expressions.matmul(), (Split("c", "i", (3,), Tail.EXACT),)),
    "split_with_guard": (expressions.matmul(), (Split("c", "j", (4,)), Split("c", "k", (2, 2)))),
    "split_beyond_the_extent": (expressions.matmul(), (Split("c", "i", (16,)),)),
    "split_with_shift": (
        expressions.chain(),
        (Split("z", "i", (2, 3), Tail.SHIFT), Parallel("z", "i_0")),
    ),
    "split_twice": (expressions.matmul(), (Split("c", "j", (4,)), Split("c", "j_o", (3,)))),
    "split_around_a_guest": (
        expressions.blur(),
        (ComputeAt("p", "b", "i"), Split("b", "i", (2,)), Split("b", "i_i", (2,))),
    ),
    "split_where_the_fold_starts": (
        expressions.matmul(),
        (DecomposeReduction("c", "j"), Split("c", "j", (4,))),
    ),
    "fuse_spatial": (expressions.matmul(), (Fuse("c", ("i", "j")), Split("c", "i_j", (5,)))),
    "fuse_a_reduction": (
        expressions.conv(5),
        (Reorder("y", ("ic", "kh", "kw")), Fuse("y", ("ic", "kh", "kw"))),
    ),
    "fuse_around_a_guest": (
        expressions.blur(),
        (ComputeAt("p", "b", "j"), Fuse("b", ("i", "j")), Prefetch("b", "p", "i_j")),
    ),
    "fuse_where_the_fold_starts": (
        expressions.matmul(),
        (DecomposeReduction("c", "i"), Fuse("c", ("i", "j"))),
    ),
    "reorder": (expressions.matmul(), (Reorder("c", ("k", "i", "j")),)),
    "unroll": (expressions.matmul(), (Unroll("c", "k"), Unroll("c", "i"))),
    "vectorize_around_a_loop_of_the_fold": (expressions.conv(4), (Vectorize("y", "kh"),)),
    "vectorize": (expressions.matmul(), (Reorder("c", ("i", "k", "j")), Vectorize("c", "j"))),
    "parallel": (
        expressions.two_outputs(),
        (Parallel("s", "i"), Parallel("d", "i"), Vectorize("d", "j")),
    ),
    "bind": (
        expressions.matmul(),
        (
            Split("c", "i", (2,)),
            Bind("c", "i_o", ForKind.BLOCK_X),
            Bind("c", "j", ForKind.THREAD_X),
            Bind("c", "i_i", ForKind.THREAD_Y),
        ),
    ),
    "compute_at": (
        expressions.softmax(),
        (ComputeAt("total", "out", "i"), ComputeAt("e", "out", "i"), ComputeAt("top", "e", "i")),
    ),
    "compute_at_a_tile": (
        expressions.conv(6, 2),
        (Split("relu", "oh", (2,)), ComputeAt("y", "relu", "oh_o"), ComputeAt("pad", "y", "oc")),
    ),
    "compute_at_an_overlap": (
        expressions.blur(),
        (Split("b", "i", (4,)), Split("b", "j", (4,)), ComputeAt("p", "b", "i_o")),
    ),
    "reverse_compute_at": (
        expressions.matmul(with_relu=True),
        (
            Split("c", "i", (4,)),
            Reorder("c", ("i_o", "j", "i_i", "k")),
            ReverseComputeAt("relu", "c", "j"),
        ),
    ),
    "reverse_compute_at_twice_where_the_last_tile_is_cut": (
        expressions.chain(5),
        (
            Split("p", "i", (2,)),
            ReverseComputeAt("q", "p", "i_o"),
            ReverseComputeAt("z", "q", "i"),
        ),
    ),
    "reverse_compute_at_twice_what_reads_its_own_position": (
        SMALL["output_that_is_read"],
        (ReverseComputeAt("q", "p", "i0"), ReverseComputeAt("z", "q", "i")),
    ),
    "compute_at_as_much_as_an_intrinsic_computes": (
        SMALL["bytes_product_that_is_read"],
        (
            PackConstant("w", "y"),
            Tensorize("y", "j", "dot4_u8i8_i32"),
            ComputeAt("y", "z", "i"),
        ),
    ),
    "compute_at_positions_that_are_data": (
        SMALL["chosen_rows"],
        (SplitAxis("p", "i0", (2,)), ComputeAt("p", "rows", "i")),
    ),
    "reverse_compute_at_with_an_output": (
        expressions.two_outputs(),
        (ReverseComputeAt("d", "s", "i"),),
    ),
    "compute_inline": (expressions.chain(), (ComputeInline("p"), ComputeInline("q"))),
    "compute_inline_a_condition": (expressions.conv(), (ComputeInline("pad"),)),
    "reverse_compute_inline": (
        expressions.chain(),
        (Split("q", "i", (4,)), ReverseComputeInline("z"), Vectorize("z", "i_i")),
    ),
    "reverse_compute_inline_what_was_asked_for": (
        expressions.gather(),
        (
            Prefetch("rows", "moved", "j"),
            CacheRead("moved", "rows"),
            ReverseComputeInline("moved_rows_cache"),
        ),
    ),
    "compute_inline_what_was_asked_for": (
        expressions.blur(),
        (Prefetch("b", "p", "j"), CacheRead("p", "b"), ComputeInline("p")),
    ),
    "cache_read": (
        expressions.matmul(),
        (
            CacheRead("a", "c"),
            CacheRead("b", "c", Scope.SHARED, (1, 0)),
            ComputeAt("a_c_cache", "c", "i"),
        ),
    ),
    "cache_write": (
        expressions.matmul(),
        (CacheWrite("c"), Split("c", "j", (3,), Tail.SHIFT), ComputeAt("c_cache", "c", "j_o")),
    ),
    "rfactor": (
        expressions.total(),
        (Split("s", "k", (5,)), Rfactor("s", "k_i"), Vectorize("s_rf", "k_i")),
    ),
    "rfactor_with_partial_results_first": (
        expressions.matmul(),
        (Split("c", "k", (2,)), Rfactor("c", "k_o", 0), Vectorize("c_rf", "j")),
    ),
    "rfactor_max": (expressions.pool(), (Rfactor("y", "kh"), Unroll("y_rf", "kw"))),
    "rfactor_arg_max": (
        expressions.arg_max(),
        (Split("best_place", "k", (4,)), Rfactor("best_place", "k_o")),
    ),
    "factor_out": (expressions.weighted(), (FactorOut("w"), ComputeAt("w_sums", "w", "i"))),
    "decompose_reduction": (
        expressions.matmul(),
        (
            Split("c", "j", (4,)),
            Reorder("c", ("i", "j_o", "k", "j_i")),
            DecomposeReduction("c", "j_o"),
        ),
    ),
    "pack_constant": (
        expressions.matmul(),
        (Split("c", "j", (4,)), Reorder("c", ("j_o", "i", "k", "j_i")), PackConstant("b", "c")),
    ),
    "pack_in_an_order_of_fused_loops": (
        expressions.conv(),
        (Fuse("y", ("ic", "kh", "kw")), Split("y", "ic_kh_kw", (4,)), PackConstant("w", "y")),
    ),
    "tensorize": (expressions.bytes_product(), DOT),
    "prefetch": (
        expressions.matmul(),
        (Prefetch("c", "a", "i", 2), Prefetch("c", "b", "k"), Split("c", "k", (2,))),
    ),
    "prefetch_next": (
        expressions.matmul(with_relu=True),
        (
            Split("relu", "i", (3,)),
            Split("relu", "j", (4,)),
            Reorder("relu", ("j_o", "i_o", "i_i", "j_i")),
            Fuse("relu", ("j_o", "i_o")),
            ComputeAt("c", "relu", "j_o_i_o"),
            Split("c", "k", (3,)),
            Reorder("c", ("k_o", "k_i", "i", "j")),
            PackConstant("b", "c"),
            PrefetchNext("c", "b", "k_o"),
        ),
    ),
    "skip_zeros": (
        expressions.conv(),
        (Reorder("y", ("oc", "oh", "kh", "ow", "ic", "kw")), SkipZeros("y", "pad", "kh")),
    ),
    "skip_zeros_in_tiles": (
        expressions.conv(5, channels=4),
        (
            Split("relu", "oc", (2,)),
            Split("relu", "ow", (2,), Tail.SHIFT),
            Reorder("relu", ("oc_o", "oh", "ow_o", "oc_i", "ow_i")),
            ComputeAt("y", "relu", "ow_o"),
            SkipZeros("y", "pad", "kh"),
            SkipZeros("y", "pad", "kw"),
            Split("y", "ic", (2,)),
            Reorder("y", ("kh", "kw", "ic_o", "ic_i", "oc", "oh", "ow")),
            Unroll("y", "ow"),
            PackConstant("w", "y"),
            PrefetchNext("y", "w", "ic_o"),
            ComputeInline("pad"),
        ),
    ),
    "skip_zeros_for_positions": (
        expressions.conv(5, channels=4),
        (
            Split("relu", "ow", (2,), Tail.SHIFT),
            Reorder("relu", ("oh", "ow_o", "oc", "ow_i")),
            ComputeAt("y", "relu", "ow_o"),
            SkipZeros("y", "pad", "kh"),
            SkipZeros("y", "pad", "kw", Skipped.POSITIONS),
            Reorder("y", ("kh", "kw", "ic", "oc", "oh", "ow")),
            Unroll("y", "ow"),
        ),
    ),
    "prefetch_next_alone": (
        expressions.matmul(),
        (Reorder("c", ("j", "i", "k")), PackConstant("b", "c"), PrefetchNext("c", "b", "k")),
    ),
    "prefetch_by_position": (
        expressions.gather(),
        (Prefetch("rows", "table", "i"), Unroll("rows", "j")),
    ),
    "use_algorithm": (expressions.conv(), (UseAlgorithm("y", "winograd2"),)),
    "fold_constant": (expressions.scaled(), (FoldConstant("doubled"),)),
    "fold_twice": (
        expressions.conv(),
        (
            UseAlgorithm("y", "winograd2"),
            FoldConstant("y_kernel_f64"),
            FoldConstant("y_kernel"),
            Reorder("y_product", ("u", "oc", "oh_t", "ow_t", "v", "ic")),
            PackConstant("y_kernel", "y_product"),
        ),
    ),
    "fold_positions": (expressions.positions(), (FoldConstant("p"), FoldConstant("q"))),
    "fold_and_pack": (
        expressions.scaled(),
        (FoldConstant("doubled"), Split("y", "j", (4,)), PackConstant("doubled", "y")),
    ),
    "tiled_with_epilogue": (expressions.matmul(with_relu=True), TILED_WITH_EPILOGUE),
    **groups.TRACES,
}


@pytest.mark.parametrize("name", CASES)
def test_the_meaning_is_kept(name: str) -> None:
    expressions.check(*CASES[name])


def test_every_primitive_is_among_the_cases() -> None:
    used = {type(step) for _, trace in CASES.values() for step in trace}
    assert used == set(PRIMITIVES)


GOLDEN = (
    "split_with_guard",
    "split_with_shift",
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
