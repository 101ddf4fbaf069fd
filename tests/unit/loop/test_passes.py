"""Every pass keeps the result of every program, and does what its docstring says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.loop.programs import (
    F32,
    ZERO,
    arrays_for,
    buffer,
    loop,
    loop_programs,
    matmul,
    number,
    padded_copy,
    program,
    rows_of,
    same,
)

from tensorwright import expr
from tensorwright.base import DType, InternalError, dump_subject, override
from tensorwright.loop import (
    DEFAULT_PIPELINE,
    Allocate,
    Block,
    Buffer,
    For,
    If,
    LoopProgram,
    Packing,
    Parameter,
    Pass,
    Role,
    Stmt,
    Store,
    block,
    cut_at_breakpoints,
    hoist_conditions,
    partition_loops,
    run_passes,
    simplify_loops,
    total_size,
    unroll_guarded,
    verify,
    version_guards,
    walk,
    widen_local_buffers,
    with_symbols,
)
from tensorwright.schedule import ForKind, Scope
from tensorwright_lab.loop_interpreter import bind_decisions, interpret

i, j, k = expr.Var("i"), expr.Var("j"), expr.Var("k")
Y, X = buffer("y", 8), buffer("x", 8)
X0 = expr.Load(X, (0,))
N = buffer("n", 8, dtype=DType.I32)
DEEP = Pass("deep partition", lambda nest: partition_loops(nest, depth=4, max_body=99))
STEPS = (*dict.fromkeys(DEFAULT_PIPELINE), DEEP)


def kept(before: LoopProgram, after: LoopProgram) -> None:
    """Both are well formed and give the same outputs."""
    verify(before)
    verify(after)
    arrays = arrays_for(before)
    same(interpret(after, arrays), interpret(before, arrays))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
@settings(max_examples=30)
@given(nest=loop_programs())
def test_a_pass_keeps_every_result(step: Pass, nest: LoopProgram) -> None:
    kept(nest, step.run(nest))


@settings(max_examples=30)
@given(nest=loop_programs())
def test_the_pipeline_keeps_every_result_and_simplifying_again_changes_nothing(
    nest: LoopProgram,
) -> None:
    done = run_passes(nest)
    kept(nest, done)
    simple = simplify_loops(nest)
    assert simplify_loops(simple) == simple


@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_pass_keeps_a_matmul(step: Pass, kind: ForKind) -> None:
    nest = matmul(14, 3, 5, 4, kind)
    kept(nest, step.run(nest))


# hoist


def test_a_guard_moves_out_of_the_loops_that_do_not_change_it() -> None:
    body = If(expr.all_of(i < 3, j < 2), Store(Y, (i,), expr.Load(X, (j,)) + expr.Load(X, (k,))))
    nest = program(loop(i, 8, loop(j, 4, loop(k, 4, body))), (Y,), (X,))
    assert rows_of(hoist_conditions(nest)) == [
        "for i in 0..8:",
        "if i < 3:",
        "for j in 0..4:",
        "if j < 2:",
        "for k in 0..4:",
        "y[i] = x[j] + x[k]",
    ]


def test_a_guard_that_reads_memory_or_stands_in_a_device_loop_stays() -> None:
    reads = If(
        expr.Compare(expr.Relation.LT, expr.Element(N, (0,)), 3),
        Store(N, (0,), number(5, DType.I32)),
    )
    nest = program(loop(i, 8, reads), (N,))
    assert hoist_conditions(nest) == nest
    device = If(j < 3, Store(Y, (i,), ZERO))
    nest = program(loop(j, 8, loop(i, 8, device, ForKind.THREAD_X)), (Y,))
    assert hoist_conditions(nest) == nest


def test_neighbours_under_one_guard_join() -> None:
    first, second = If(i < 3, Store(Y, (i,), ZERO)), If(i < 3, Store(Y, (i + 3,), ZERO))
    nest = hoist_conditions(program(loop(i, 5, block(first, second)), (Y,)))
    assert rows_of(nest) == ["for i in 0..5:", "if i < 3:", "y[i] = 0.0", "y[i + 3] = 0.0"]


def test_a_choice_moves_out_of_the_loops_that_do_not_change_it() -> None:
    whole = i < 3
    body = block(
        If(whole, Store(Y, (j,), expr.Load(X, (j,)))), If(expr.negate(whole), Store(Y, (j,), ZERO))
    )
    nest = program(loop(i, 5, loop(j, 8, body)), (Y,), (X,))
    moved = hoist_conditions(nest)
    assert rows_of(moved) == [
        "for i in 0..5:",
        "if i < 3:",
        "for j in 0..8:",
        "y[j] = x[j]",
        "if 3 <= i:",
        "for j_1 in 0..8:",
        "y[j_1] = 0.0",
    ]
    kept(nest, moved)


# partition


def guards_of(nest: LoopProgram) -> int:
    text = str(nest)
    return text.count("if ") + text.count("select(")


def test_the_main_part_of_a_partial_tile_has_no_guard() -> None:
    nest = matmul(1000, 3, 5, 16)
    assert guards_of(partition_loops(nest, max_body=99)) == 0
    assert guards_of(partition_loops(nest)) == guards_of(nest)  # the body is large: see version


def test_a_padded_copy_becomes_borders_and_an_interior() -> None:
    nest = padded_copy(6, 2)
    cut = partition_loops(nest)
    assert guards_of(cut) == 0
    kept(nest, cut)
    done: Counter[str] = Counter()
    interpret(cut, arrays_for(cut), trace=lambda what, of, _: done.update([f"{what} {of.name}"]))
    assert done == {"load X": 36, "store P": 100}


def test_a_parallel_loop_stays_one_loop() -> None:
    cut = partition_loops(matmul(14, 3, 5, 4, ForKind.PARALLEL), max_body=99)
    parallel = [part for part in walk(cut.body) if isinstance(part, For) and part.kind.note]
    assert [(part.extent, part.kind) for part in parallel] == [(4, ForKind.PARALLEL)]
    again = partition_loops(cut, max_body=99)
    assert total_size((again.body,)) == total_size((cut.body,))


def test_a_vector_loop_is_only_shortened() -> None:
    short = loop(i, 8, If(i < 5, Store(Y, (i,), ZERO)), ForKind.VECTOR)
    assert rows_of(partition_loops(program(short, (Y,)))) == [
        "for i in 0..5  @vectorize:",
        "y[i] = 0.0",
    ]
    both = block(short, Store(Y, (7,), ZERO))
    split = loop(j, 8, block(If(j < 5, Store(Y, (j,), ZERO)), Store(X, (j,), ZERO)), ForKind.VECTOR)
    assert guards_of(partition_loops(program(block(both, split), (Y, X)))) == 1


def test_a_loop_is_cut_where_a_scaled_variable_passes_a_number() -> None:
    """3*i >= 7 from i = 3 on, 3*i <= 16 up to i = 5: no guard is left in between."""
    guard = expr.all_of(i * 3 >= 7, i * 3 <= 16)
    nest = program(loop(i, 8, If(guard, Store(Y, (i,), ZERO))), (Y,))
    assert rows_of(partition_loops(nest)) == ["for i in 0..3:", "y[i + 3] = 0.0"]


def test_depth_and_size_bound_the_growth() -> None:
    nest = padded_copy(6, 2)
    assert partition_loops(nest, depth=0) == nest
    assert guards_of(partition_loops(nest, depth=1)) == 1
    size = total_size((nest.body,))
    assert partition_loops(nest, max_statements=size) == nest


def test_the_first_iteration_of_a_reduction_is_peeled() -> None:
    first = If(expr.Compare(expr.Relation.EQ, k, 0), Store(Y, (0,), ZERO))
    update = Store(Y, (0,), expr.Load(Y, (0,)) + expr.Load(X, (k,)))
    nest = program(loop(k, 8, block(first, update)), (buffer("y", 8),), (X,))
    assert rows_of(partition_loops(nest)) == [
        "y[0] = 0.0",
        "y[0] += x[0]",
        "for k in 0..7:",
        "y[0] += x[k + 1]",
    ]


# cut at breakpoints


def reading(extent: int, place: expr.Index, kind: ForKind = ForKind.VECTOR) -> LoopProgram:
    """y[i] = x[place] for i in 0..extent."""
    y, x = buffer("y", extent), buffer("x", 64)
    return program(loop(i, extent, Store(y, (i,), expr.Load(x, (place,))), kind), (y,), (x,))


def reflected(place: expr.Index, extent: int) -> expr.Index:
    ahead = expr.mod(place, 2 * (extent - 1))
    return expr.minimum(ahead, 2 * (extent - 1) - ahead)


def test_a_reflected_row_is_three_runs() -> None:
    nest = reading(70, reflected(i - 3, 64))
    cut = cut_at_breakpoints(nest)
    kept(nest, cut)
    assert rows_of(cut) == [
        *("for i in 0..3  @vectorize:", "y[i] = x[-i + 3]"),
        *("for i_1 in 0..64  @vectorize:", "y[i_1 + 3] = x[i_1]"),
        *("for i_2 in 0..3  @vectorize:", "y[i_2 + 67] = x[-i_2 + 62]"),
    ]


def test_a_loop_around_vectors_is_cut_where_their_lanes_are() -> None:
    y, x = buffer("y", 64), buffer("x", 64)
    place = expr.maximum(i * 16 + j - 5, 0)
    lanes = loop(j, 16, Store(y, (i * 16 + j,), expr.Load(x, (place,))), ForKind.VECTOR)
    nest = program(loop(i, 4, lanes), (y,), (x,))
    cut = cut_at_breakpoints(nest)
    kept(nest, cut)
    text = str(cut)
    assert "max" not in text
    assert text.count("@vectorize") == 3
    around = program(loop(i, 4, lanes, ForKind.PARALLEL), (y,), (x,))
    assert "max" in str(cut_at_breakpoints(around))  # threads meet once


def test_joined_rows_are_copied_without_a_choice_beside_the_joint() -> None:
    y, a, b = buffer("y", 160), buffer("a", 60), buffer("b", 100)
    place = i * 32 + j
    value = expr.select(place < 60, expr.Load(a, (place,)), expr.Load(b, (place - 60,)))
    lanes = loop(j, 32, Store(y, (place,), value), ForKind.VECTOR)
    nest = program(loop(i, 5, lanes), (y,), (a, b))
    cut = cut_at_breakpoints(nest)
    kept(nest, cut)
    assert rows_of(cut) == [
        *("for j in 0..32  @vectorize:", "y[j] = a[j]"),
        *("for j_1 in 0..28  @vectorize:", "y[j_1 + 32] = a[j_1 + 32]"),
        *("for j_2 in 0..4  @vectorize:", "y[j_2 + 60] = b[j_2]"),
        *("for i_1 in 0..3:", "for j_3 in 0..32  @vectorize:"),
        "y[i_1*32 + j_3 + 64] = b[i_1*32 + j_3 + 4]",
    ]
    edge = Store(y, (place,), expr.select(place < 60, expr.Load(a, (place,)), ZERO))
    zeros = program(loop(i, 5, loop(j, 32, edge, ForKind.VECTOR)), (y,), (a,))
    assert cut_at_breakpoints(zeros) is zeros  # a border is read under a mask


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (expr.minimum(i, 30), ForKind.SERIAL),  # no lanes
        (i % 4, ForKind.VECTOR),  # the same few elements
        (i + 32, ForKind.VECTOR),
    ],
)
def test_what_has_no_breakpoint_worth_a_loop(place: expr.Index, kind: ForKind) -> None:
    nest = reading(32, place, kind)
    assert cut_at_breakpoints(nest) is nest


def test_neither_short_pieces_are_made_nor_too_many() -> None:
    short = reading(5, expr.minimum(i + 61, 63))
    assert cut_at_breakpoints(short) is short
    long = reading(70, reflected(i - 3, 64))
    assert cut_at_breakpoints(long, max_statements=3) is long


# version


def tiled_copy(rows: expr.Index, columns: int, kind: ForKind = ForKind.SERIAL) -> LoopProgram:
    """Y = X in tiles of 4 x 4 that need not divide, cleared first."""
    x, y = buffer("x", rows, columns), buffer("y", rows, columns)
    i_o, j_o, i_i, j_i, i_z, j_z = (expr.Var(v) for v in ("i_o", "j_o", "i_i", "j_i", "i_z", "j_z"))

    def tile(
        a: expr.Var, b: expr.Var, value: Callable[[tuple[expr.Index, ...]], expr.Value]
    ) -> Stmt:
        place = (i_o * 4 + a, j_o * 4 + b)
        body = If(expr.all_of(place[0] < rows, place[1] < columns), Store(y, place, value(place)))
        return loop(a, 4, loop(b, 4, body))

    body = block(tile(i_z, j_z, lambda _: ZERO), tile(i_i, j_i, lambda at: expr.Load(x, at)))
    nest = loop(i_o, (rows + 3) // 4, loop(j_o, -(-columns // 4), body), kind)
    return program(nest, (y,), (x,))


def test_whole_tiles_get_one_version_however_many_loops_are_tiled() -> None:
    nest = tiled_copy(14, 9)
    assert rows_of(version_guards(nest)) == [
        "for i_o, j_o in 0..4, 0..3:",
        "if i_o < 3 and j_o < 2:",
        "for i_z, j_z in 0..4, 0..4:",
        "y[i_o*4 + i_z, j_o*4 + j_z] = 0.0",
        "for i_i, j_i in 0..4, 0..4:",
        "y[i_i + i_o*4, j_i + j_o*4] = x[i_i + i_o*4, j_i + j_o*4]",
        "if 3 <= i_o or 2 <= j_o:",
        "for i_z_1, j_z_1 in 0..4, 0..4:",
        "if i_o*4 + i_z_1 < 14 and j_o*4 + j_z_1 < 9:",
        "y[i_o*4 + i_z_1, j_o*4 + j_z_1] = 0.0",
        "for i_i_1, j_i_1 in 0..4, 0..4:",
        "if i_i_1 + i_o*4 < 14 and j_i_1 + j_o*4 < 9:",
        "y[i_i_1 + i_o*4, j_i_1 + j_o*4] = x[i_i_1 + i_o*4, j_i_1 + j_o*4]",
    ]
    kept(nest, version_guards(nest))


def test_a_tile_with_one_row_of_a_size_has_a_version_without_guards() -> None:
    """Decoders call with one row: the last tile of so many rows is common."""
    size = expr.named_size("n", 1, 9)
    nest = tiled_copy(size, 8)
    versions = version_guards(hoist_conditions(nest))
    rows = rows_of(versions)
    at = rows.index("if n < i_o*4 + 4 and n <= i_o*4 + 1:")
    assert rows[at + 1 : at + 7] == [
        "for j_o_1 in 0..2:",
        "for j_z_1 in 0..4:",
        "y[i_o*4, j_o_1*4 + j_z_1] = 0.0",
        "for j_i_1 in 0..4:",
        "y[i_o*4, j_i_1 + j_o_1*4] = x[i_o*4, j_i_1 + j_o_1*4]",
        "if n < i_o*4 + 4 and i_o*4 + 1 < n:",
    ]
    for rows_of_call in range(1, 10):
        kept(*(with_symbols(each, {size: rows_of_call}) for each in (nest, versions)))


def test_tiles_that_all_have_a_border_get_no_version() -> None:
    y, x = buffer("y", 10, 6), buffer("x", 4)
    inside = expr.all_of(i + j >= 4, i + j < 8)  # for every j where i >= 4 and i < 3
    body = Store(y, (i, j), expr.Select(inside, expr.Load(x, (i + j - 4,)), ZERO))
    nest = program(loop(i, 10, loop(j, 6, body)), (y,), (x,))
    assert "if" not in str(version_guards(nest))
    kept(nest, version_guards(nest))


def test_tiles_at_either_end_get_versions_of_their_own() -> None:
    """A tile of three at each border of twelve, in blocks: what its border asks is decided."""
    y, x = buffer("y", 12), buffer("x", 10)
    place = i // 2 * 3 + j
    body = Store(
        y,
        (place,),
        expr.Select(expr.all_of(place >= 1, place < 11), expr.Load(x, (place - 1,)), ZERO),
    )
    nest = program(loop(i, 8, loop(j, 3, body), ForKind.PARALLEL), (y,), (x,))
    assert rows_of(version_guards(nest)) == [
        "for i in 0..8  @parallel:",
        "if 1 <= i//2 and i//2 < 3:",
        "for j in 0..3:",
        "y[(i//2)*3 + j] = x[(i//2)*3 + j - 1]",
        "if i//2 < 1:",
        "for j_1 in 0..3:",
        "y[j_1] = select(1 <= j_1, x[j_1 - 1], 0.0)",
        "if 1 <= i//2 and 3 <= i//2:",
        "for j_2 in 0..3:",
        "y[j_2 + 9] = select(j_2 + 9 < 11, x[j_2 + 8], 0.0)",
    ]
    kept(nest, version_guards(nest))


def test_the_last_tile_is_made_as_short_as_it_is() -> None:
    cut = run_passes(tiled_copy(14, 8, ForKind.PARALLEL))
    assert guards_of(cut) == 2  # which version
    assert "x[i_i_1 + 12, j_i_1 + j_o_1*4]" in str(cut)
    kept(tiled_copy(14, 8, ForKind.PARALLEL), cut)


def test_versions_are_not_made_where_they_would_be_too_large() -> None:
    nest = tiled_copy(14, 9)
    assert version_guards(nest, max_statements=15) == nest


# bind, unroll


def test_binding_decisions_gives_plain_extents() -> None:
    t = expr.Decision("t")
    local = Buffer("acc", (t,), F32, Scope.LOCAL)
    inner = block(
        Store(local, (j,), expr.Load(X, (i * t + j,))),
        Store(Y, (i * t + j,), expr.Load(local, (j,))),
    )
    nest = program(loop(i, expr.exact_div(8, t), loop(j, t, Allocate(local, inner))), (Y,), (X,))
    verify(nest, allow_decisions=True)
    bound = bind_decisions(nest, {t: 4})
    assert rows_of(bound) == [
        "for i, j in 0..2, 0..4:",
        "local acc: f32 (4)",
        "acc[j] = x[i*4 + j]",
        "y[i*4 + j] = acc[j]",
    ]
    kept(bound, bind_decisions(nest, {t: 8}))
    with pytest.raises(InternalError, match=r"\?t = 0, and a decision is positive"):
        bind_decisions(nest, {t: 0})


def test_binding_reaches_buffers_whose_size_does_not_change() -> None:
    t = expr.Decision("t")
    packed = Buffer("packed", (expr.exact_div(8, t), t), F32)
    body = Store(Y, (i * t + j,), expr.Load(packed, (i, j)))
    nest = program(loop(i, expr.exact_div(8, t), loop(j, t, body)), (Y,), (packed,))
    bound = bind_decisions(nest, {t: 4})
    verify(bound)
    assert next(parameter.buffer.shape for parameter in bound.parameters) == (2, 4)


def test_loops_that_an_unrolled_one_asks_for_are_written_out() -> None:
    y, x = buffer("y", 4), buffer("x", 8, 8)
    add = Store(y, (j,), expr.Load(y, (j,)) + expr.Load(x, (j + i, k)))
    inner = loop(k, 8, loop(j, 4, If(expr.all_of(j + i >= 1, j + i < 5), add), ForKind.UNROLLED))
    start = loop(j, 4, Store(y, (j,), ZERO))
    nest = program(block(start, loop(i, 3, inner)), (y,), (x,))
    written = run_passes(nest)
    assert guards_of(written) == 0
    assert "for i" not in str(written)
    kept(nest, written)
    for other in (loop(i, 5, inner), loop(i, 3, inner, ForKind.UNROLLED), loop(i, 3, inner.body)):
        same_one = program(other, (y,), (x,))
        assert unroll_guarded(same_one) == same_one


def test_tiles_of_lanes_are_written_out_where_their_place_decides_guards() -> None:
    """Of a row of twenty, padded by one: the lanes of the second tile are shifted back."""
    y, x = buffer("y", 20), buffer("x", 20)
    place = expr.minimum(i * 16, 4) + j
    inside = expr.all_of(place + k >= 1, place + k < 21)
    read = expr.Select(inside, expr.Load(x, (place + k - 1,)), ZERO)
    tap = loop(j, 16, Store(y, (place,), expr.Load(y, (place,)) + read), ForKind.VECTOR)
    nest = loop(i, 2, loop(k, 3, tap, ForKind.UNROLLED))
    start = loop(j, 20, Store(y, (j,), ZERO))
    first = program(block(start, nest), (y,), (x,))
    written = run_passes(first)
    assert "for i" not in str(written)
    assert "min(" not in str(written)
    assert str(written).count("select") == 2  # of the first tap in one tile, of the last in another
    kept(first, written)
    many = loop(k, 600, tap, ForKind.UNROLLED)
    for other in (loop(i, 5, nest.body), loop(i, 2, many), loop(i, 2, loop(j, 16, tap.body))):
        same_one = program(other, (y,), (x,))
        assert unroll_guarded(same_one) == same_one


# the pipeline


def test_each_pass_writes_a_numbered_file(tmp_path: Path) -> None:
    with override(dump="loop", dump_dir=tmp_path, verify=True), dump_subject("test"):
        run_passes(matmul(14, 3, 5, 4))
    names = sorted(path.name.split("-", 1)[1] for path in tmp_path.iterdir())
    assert names == [
        "loop-test-breakpoints.txt",
        "loop-test-expand_calls.txt",
        "loop-test-hoist.txt",
        "loop-test-hoist.txt",  # a second time, at the end
        "loop-test-lowered.txt",
        "loop-test-partition.txt",
        "loop-test-simplify.txt",
        "loop-test-unroll_guarded.txt",
        "loop-test-version.txt",
        "loop-test-widen.txt",
    ]


def test_the_verify_knob_catches_a_pass_that_breaks_the_program() -> None:
    nest = matmul(14, 3, 5, 4)
    broken = Pass("broken", lambda p: replace(p, body=Store(Y, (0,), ZERO)))
    run_passes(nest, (broken,))
    with (
        override(verify=True),
        pytest.raises(InternalError, match="is used where it is not allocated"),
    ):
        run_passes(nest, (broken,))


@pytest.mark.parametrize(
    "nest",
    [
        pytest.param(matmul(14, 3, 5, 4), id="matmul"),
        pytest.param(matmul(14, 3, 5, 4, ForKind.PARALLEL), id="parallel_matmul"),
        pytest.param(padded_copy(6, 2), id="padded_copy"),
        pytest.param(padded_copy(6, 2, ForKind.VECTOR), id="vector_copy"),
    ],
)
def test_pipeline(nest: LoopProgram, golden: Callable[..., None]) -> None:
    golden(f"{nest}\n\n{run_passes(nest)}")


def test_an_empty_program_prints() -> None:
    assert str(program(Block(()), (Y,))) == "test(out y: f32 (8)):\n  pass"


def sums_of(channels: int, *, room: int) -> LoopProgram:
    """Rows of channels summed in a local buffer, in vectors of 8 and what is left.

    room   how many columns of the weights there are
    """
    x, w, y = buffer("x", 3, 5), buffer("w", 5, room), buffer("y", 3, channels)
    t = buffer("t", 3, channels, scope=Scope.LOCAL)
    i, k, v = expr.Var("i"), expr.Var("k"), expr.Var("v")

    def vectors(body: Callable[[expr.Index], Stmt]) -> Stmt:
        whole, rest = divmod(channels, 8)
        parts = [(8, 8 * n) for n in range(whole)] + ([(rest, 8 * whole)] if rest else [])
        return block(*(loop(v, n, body(v + at), ForKind.VECTOR) for n, at in parts))

    def summed(place: expr.Index) -> Stmt:
        product = expr.Load(x, (i, k)) * expr.Load(w, (k, place))
        return Store(t, (i, place), expr.Load(t, (i, place)) + product)

    body = block(
        loop(i, 3, vectors(lambda place: Store(t, (i, place), ZERO))),
        loop(k, 5, loop(i, 3, vectors(summed))),
        loop(i, 3, vectors(lambda place: Store(y, (i, place), expr.Load(t, (i, place))))),
    )
    return program(Allocate(t, body), (y,), (x, w))


@pytest.mark.parametrize("channels", [8, 11, 12, 16, 21])
def test_rows_of_local_buffers_are_whole_vectors(channels: int) -> None:
    before = sums_of(channels, room=24)
    after = widen_local_buffers(before)
    same(interpret(after, arrays_for(before)), interpret(before, arrays_for(before)))
    row = -(-channels // 8) * 8
    assert f"local t: f32 (3, {row})" in str(after)
    rests = [r for r in rows_of(after) if r.startswith(f"for v in 0..{channels % 8} ")]
    assert len(rests) == (1 if channels % 8 else 0)  # what leaves the buffer stays as it is


def test_vectors_are_no_longer_than_what_they_read() -> None:
    before = sums_of(11, room=11)
    after = widen_local_buffers(before)
    same(interpret(after, arrays_for(before)), interpret(before, arrays_for(before)))
    assert sum(row.startswith("for v in 0..3 ") for row in rows_of(after)) == 2


def products_of(channels: int) -> LoopProgram:
    """Sums in a row of a local buffer; their weights are packed, those of one channel left out."""
    x, w, y = buffer("x", 5), buffer("w_packed", 5, channels), buffer("y", channels)
    t = buffer("t", channels, scope=Scope.LOCAL)
    k, v = expr.Var("k"), expr.Var("v")
    sums = expr.Load(t, (v,)) + expr.Load(x, (k,)) * expr.Load(w, (k, v))
    body = block(
        loop(v, channels, Store(t, (v,), ZERO), ForKind.VECTOR),
        loop(k, 5, loop(v, channels, Store(t, (v,), sums), ForKind.VECTOR)),
        loop(v, channels, Store(y, (v,), expr.Load(t, (v,))), ForKind.VECTOR),
    )
    a, b = expr.Var("a"), expr.Var("b")
    packing = Packing(((a, 5), (b, channels)), (b + 1, a), b > 0, (channels + 1, 5))
    packed = Parameter(w, Role.CONSTANT, packing, "w")
    before = program(Allocate(t, body), (y,), (x,))
    return replace(before, parameters=(before.parameters[0], packed, *before.parameters[1:]))


@pytest.mark.parametrize("channels", [3, 4, 5, 7, 8, 12, 15, 16, 17])
def test_a_row_of_one_vector_has_room_for_a_power_of_two(channels: int) -> None:
    before = products_of(channels)
    after = widen_local_buffers(before)
    verify(after)
    source = np.random.default_rng(0).random((channels + 1, 5), np.float32)
    arrays = arrays_for(before) | {"w": source}
    same(interpret(after, arrays), interpret(before, arrays))
    row = {3: 4, 5: 8, 7: 8, 12: 16, 15: 16}.get(channels, channels)
    assert f"local t: f32 ({row})" in str(after)
    assert f"w_packed: f32 (5, {row})" in str(after)
    stored = [each for each in rows_of(after) if each.startswith(f"for v in 0..{row} ")]
    assert len(stored) == (2 if row != channels else 3)  # what leaves the buffer stays as it is


def test_a_row_of_one_vector_stays_where_it_reads_what_nobody_packs() -> None:
    before = products_of(12)
    plain = replace(before.parameters[1], packing=None, source="")
    before = replace(before, parameters=(before.parameters[0], plain, before.parameters[2]))
    assert widen_local_buffers(before) is before


def test_rows_that_vectors_do_not_begin_stay() -> None:
    t, y = buffer("t", 2, 11, scope=Scope.LOCAL), buffer("y", 2, 11)
    i, v = expr.Var("i"), expr.Var("v")
    stores = (
        loop(v, 8, Store(t, (i, v), ZERO), ForKind.VECTOR),
        loop(v, 8, Store(t, (i, v + 3), ZERO), ForKind.VECTOR),
        loop(v, 8, Store(y, (i, v), expr.Load(t, (i, v))), ForKind.VECTOR),
    )
    before = program(Allocate(t, loop(i, 2, block(*stores))), (y,))
    assert widen_local_buffers(before) is before
