"""Lowering for groups of threads: one group a nest, barriers where they must be, and no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.loop.programs import arrays_for, buffer, loop, program, rows_of
from tests.unit.schedule.expressions import Expression, check_program, matmul
from tests.unit.schedule.groups import LANES, STAGED, TRACES

from tensorwright.base import DType, GpuTarget, InternalError, UnsupportedError, parse_target
from tensorwright.expr import Fn, Index, Load, Var
from tensorwright.loop import (
    Allocate,
    Barrier,
    Buffer,
    CommitCopies,
    If,
    LaneFold,
    LaunchBounds,
    LoopProgram,
    StartCopy,
    Stmt,
    Store,
    WaitCopies,
    block,
    check_group_limits,
    launches_of,
    lower,
    offset_of,
    place_barriers,
    room_of,
    run_passes,
    verify,
    walk,
)
from tensorwright.schedule import (
    CopyMechanism,
    ForKind,
    LayoutKind,
    MemoryLayout,
    Pipeline,
    Scope,
    Trace,
    parse_trace,
    replay,
)
from tensorwright_lab.cards import changed, with_late_copies, with_own_memory, without_barrier
from tensorwright_lab.loop_interpreter import interpret

pytestmark = pytest.mark.layer("interpreter")

t, u, i, k = (Var(name) for name in "tuik")
PRODUCT = matmul(16, 24, 12)
COPIES: Trace = (*STAGED, Pipeline("c_cache", "k_o", 3, CopyMechanism.CP_ASYNC))


def lowered(trace: Trace, expression: Expression = PRODUCT) -> LoopProgram:
    return lower(replay(expression.state, trace))


def barriers(of: LoopProgram) -> int:
    return sum(isinstance(part, Barrier) for part in walk(of.body))


def complaint(of: LoopProgram) -> str:
    with pytest.raises(InternalError) as caught:
        interpret(of, PRODUCT.arrays())
    return str(caught.value)


# the form


def test_a_nest_is_one_launch_of_blocks_and_threads() -> None:
    for each in (lowered(STAGED), run_passes(lowered(STAGED))):
        (nest,) = launches_of(each).nests
        kinds = (ForKind.BLOCK_Y, ForKind.BLOCK_X, ForKind.THREAD_Y, ForKind.THREAD_X)
        assert [nest.extent(kind) for kind in kinds] == [2, 3, 4, 4]
        assert nest.extent(ForKind.BLOCK_Z) == 1
        assert nest.index(ForKind.THREAD_Z) is None
        assert [each.shape for each in nest.shared] == [(8, 4), (4, 8)]


def test_nests_run_one_after_the_other() -> None:
    expression, trace = TRACES["split_reduction"]
    launches = launches_of(lowered(trace, expression))
    assert [each.name for each in launches.whole] == ["c_rf"]
    assert [nest.extent(ForKind.BLOCK_Z) for nest in launches.nests] == [3, 1]


def test_the_largest_loop_makes_the_group_and_others_are_guards() -> None:
    expression, trace = TRACES["set_scope"]
    nest = lowered(trace, expression)
    assert rows_of(nest)[:4] == [
        "for b.i in 0..9  @block.x:",
        "shared p: f32 (3, 9)",
        "for b.j in 0..9  @thread.x:",
        "for p.j in 0..9:",
    ]
    assert "if b.j < 3:" in rows_of(nest)


def test_parts_of_a_thread_that_lie_apart_are_one_small_buffer() -> None:
    expression, trace = TRACES["virtual_threads"]
    found = lowered(trace, expression)
    own = [part.buffer for part in walk(found.body) if isinstance(part, Allocate)]
    assert [each.shape for each in own if each.name == "c_cache"] == [(1, 2, 1, 2, 1, 2, 1, 2)]


def test_what_is_fetched_beyond_an_edge_is_zero_and_the_arithmetic_does_not_ask() -> None:
    expression, trace = TRACES["staged_with_rests"]
    rows = rows_of(run_passes(lowered(trace, expression)))
    fetches = [row for row in rows if row.startswith("a_c_cache_cache[")]
    assert all("select(" in row and row.endswith(", 0.0)") for row in fetches)
    start, product = (
        next(n for n, row in enumerate(rows) if row.startswith(text))
        for text in ("for k_i", "c_cache[c_cache.i, c_cache.j] +=")
    )
    guards = [row for row in rows[start:product] if row.startswith("if")]
    assert guards == ["if k_i + k_o*4 < 10:"]


def test_launch_bounds_are_told() -> None:
    bounded = lowered(TRACES["launch_bounds"][1])
    found = [part for part in walk(bounded.body) if isinstance(part, LaunchBounds)]
    assert found == [LaunchBounds(2)]


def test_what_is_not_a_launch_is_refused() -> None:
    y = buffer("y", 4)
    inside = loop(i, 4, loop(t, 4, Store(y, (t,), Load(y, (t,))), ForKind.THREAD_X))
    with pytest.raises(InternalError, match=r"a loop @thread\.x is inside what each thread runs"):
        launches_of(program(inside, (y,)))


# barriers


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("staged", 2),
        ("staged_with_rests", 2),
        ("pipeline", 1),
        ("pipeline_by_copies", 1),
        ("threads_outside_of_a_reduction", 0),
        ("split_reduction", 0),
        ("shuffle_reduce", 0),
        ("block_order", 0),
        ("virtual_threads", 1),
        ("set_scope", 1),
        ("cooperate_on_a_padded_image", 2),
    ],
)
def test_so_many_barriers_are_needed(name: str, count: int) -> None:
    expression, trace = TRACES[name]
    assert barriers(lowered(trace, expression)) == count


def test_each_barrier_is_needed_and_the_complaint_names_both_places() -> None:
    program = lowered(STAGED)
    check_program(PRODUCT, program)
    early, late = complaint(without_barrier(program, 0)), complaint(without_barrier(program, 1))
    assert "race: a_c_cache_cache[" in early
    assert "the other one is in: a_c_cache_cache[" in early
    assert "c_cache[c_cache.i, c_cache.j] += a_c_cache_cache" in _marked(early)
    assert "is read and was never stored" in late
    assert "a thread that stores it does so in: b_c_cache_cache[" in late
    assert "c_cache[c_cache.i, c_cache.j] += a_c_cache_cache" in _marked(late)


def _marked(message: str) -> str:
    return next(line for line in message.splitlines() if line.endswith("<- here"))


def test_memory_of_the_wrong_scope_is_found() -> None:
    """What one thread has fetched into its own memory, no other thread reads."""
    assert "b_c_cache_cache[0, 1] is read and was never stored; a thread that stores it" in (
        complaint(with_own_memory(lowered(STAGED)))
    )


def exchange(of: Index) -> LoopProgram:
    """Again and again, each thread stores its element and reads that of a thread."""
    x, s, y = buffer("x", 8), buffer("s", 8, scope=Scope.SHARED), buffer("y", 8)
    body = block(Store(s, (t,), Load(x, (t,))), Store(y, (t,), Load(s, (of,))))
    nest = Allocate(s, loop(t, 8, loop(k, 4, body), ForKind.THREAD_X))
    return place_barriers(program(nest, (y,), (x,)))


def test_what_a_thread_stored_itself_needs_no_barrier() -> None:
    assert barriers(exchange(t)) == 0
    assert barriers(exchange(7 - t)) == 2


def test_parts_that_do_not_meet_need_no_barrier() -> None:
    """Half of the threads' elements are stored, the other half is read."""
    x, s, y = buffer("x", 8), buffer("s", 16, scope=Scope.SHARED), buffer("y", 8)
    body = block(Store(s, (t,), Load(x, (t,))), Store(y, (t,), Load(s, (15 - t,))))
    nest = place_barriers(program(Allocate(s, loop(t, 8, body, ForKind.THREAD_X)), (y,), (x,)))
    assert barriers(nest) == 0


def test_what_comes_before_a_loop_is_waited_for_once() -> None:
    x, s, y = buffer("x", 8), buffer("s", 8, scope=Scope.SHARED), buffer("y", 8, 4)
    body = block(
        Store(s, (t,), Load(x, (t,))),
        loop(k, 4, Store(y, (t, k), Load(s, ((t + k) % 8,)))),
    )
    nest = place_barriers(program(Allocate(s, loop(t, 8, body, ForKind.THREAD_X)), (y,), (x,)))
    assert rows_of(nest)[3:5] == ["barrier", "for k in 0..4:"]
    arrays = arrays_for(nest)
    rolled = [np.roll(arrays["x"], -n) for n in range(4)]
    np.testing.assert_array_equal(interpret(nest, arrays)["y"], np.stack(rolled, axis=1))


def test_one_thread_that_works_for_all_is_waited_for() -> None:
    x, s, y = buffer("x", 8), buffer("s", 1, scope=Scope.SHARED), buffer("y", 8)
    first = If(t < 1, Store(s, (0,), Load(x, (3,))))
    body = Allocate(s, loop(t, 8, block(first, Store(y, (t,), Load(s, (0,)))), ForKind.THREAD_X))
    nest = place_barriers(program(body, (y,), (x,)))
    assert barriers(nest) == 1
    interpret(nest, arrays_for(nest))


# copies in flight


def test_a_copy_that_is_used_too_early_is_found() -> None:
    pipelined = lowered(COPIES)
    check_program(PRODUCT, pipelined)
    found = complaint(with_late_copies(pipelined))
    assert "is read too early: a copy to it is in flight, started in: start " in found
    assert "c_cache[c_cache.i, c_cache.j] += a_c_cache_cache" in _marked(found)
    no_batches = changed(pipelined, lambda s: block() if isinstance(s, CommitCopies) else s)
    assert "is read too early" in complaint(no_batches)


def test_a_copy_onto_a_copy_in_flight_is_found() -> None:
    """A ring with a slot less: a copy starts into the slot that the last one goes to."""
    x, s, y = buffer("x", 4), buffer("s", 1, scope=Scope.SHARED), buffer("y", 4)
    twice = block(
        StartCopy(Store(s, (0,), Load(x, (0,)))), StartCopy(Store(s, (0,), Load(x, (1,))))
    )
    rest = block(CommitCopies(), WaitCopies(0), Store(y, (t,), Load(s, (0,))))
    body = Allocate(s, loop(t, 1, block(twice, rest), ForKind.THREAD_X))
    with pytest.raises(InternalError, match="is copied to too early"):
        interpret(program(body, (y,), (x,)), {"x": np.zeros(4, np.float32)})


def test_what_others_copied_is_seen_after_a_barrier_only() -> None:
    found = complaint(without_barrier(lowered(COPIES), 0))
    assert "is read and was never stored; a thread that stores it does so in:" in found


# lanes


def lane_sum(lanes: int, width: int = 8) -> LoopProgram:
    x, y = buffer("x", width), buffer("y", width)
    own = buffer("own", scope=Scope.LOCAL)
    body = block(
        Store(own, (), Load(x, (t,))),
        LaneFold(own, (), Fn.ADD, lanes),
        Store(y, (t,), Load(own, ())),
    )
    return program(loop(t, width, Allocate(own, body), ForKind.THREAD_X), (y,), (x,))


def test_lanes_fold_among_themselves() -> None:
    nest = verify(lane_sum(4))
    arrays = arrays_for(nest)
    sums = np.repeat(arrays["x"].reshape(2, 4).sum(axis=1), 4)
    np.testing.assert_array_equal(interpret(run_passes(nest), arrays)["y"], sums)


def test_lanes_without_a_number_are_found() -> None:
    nest = lane_sum(8)
    some = changed(
        nest, lambda s: If(t < 3, s) if isinstance(s, Store) and s.buffer.name == "own" else s
    )
    with pytest.raises(InternalError, match="only 3 of 8 lanes have a number to fold"):
        interpret(some, arrays_for(some))


def test_a_fold_over_lanes_widens_the_group_to_whole_folds() -> None:
    """Ten threads of another stage, and eight lanes: sixteen threads, so that rows are whole."""
    expression = matmul(4, 10, 16, with_relu=True)
    trace = parse_trace("""
        split(c, k, [8])
        rfactor(c, k_i)
        shuffle_reduce(c, k_i)
        compute_at(c_rf, c, k_i)
        bind(relu, i, block.x)
        bind(relu, j, thread.x)
        compute_at(c, relu, i)
    """)
    found = lowered(trace, expression)
    (nest,) = launches_of(found).nests
    assert nest.extent(ForKind.THREAD_X) == 16
    check_program(expression, found)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (CommitCopies(), "only threads of a group do that"),
        (WaitCopies(0), "outside of a group of threads"),
        (LaunchBounds(1), "only threads of a group do that"),
    ],
)
def test_statements_of_groups_are_in_groups(statement: Stmt, message: str) -> None:
    y = buffer("y", 4)
    body = block(loop(i, 4, Store(y, (i,), Load(buffer("x", 4), (i,)))), statement)
    with pytest.raises(InternalError, match=message):
        verify(program(body, (y,), (buffer("x", 4),)))


# addresses


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.I8])
@pytest.mark.parametrize(
    "layout",
    [
        MemoryLayout(),
        MemoryLayout(LayoutKind.PADDED, 3),
        *(MemoryLayout(LayoutKind.XOR, span) for span in (32, 64, 128)),
    ],
)
def test_no_two_elements_share_an_address(layout: MemoryLayout, dtype: DType) -> None:
    shared = Buffer("s", (6, 24), dtype, Scope.SHARED, layout)
    size = dtype.size_bytes
    offsets = [offset_of(shared, (row, column)) for row in range(6) for column in range(24)]
    addresses = [layout.moved(offset, size) for offset in offsets if isinstance(offset, int)]
    assert len(set(addresses)) == 6 * 24
    room = room_of(shared)
    assert isinstance(room, int)
    assert max(addresses) < room


def test_a_swizzle_keeps_what_one_instruction_moves_together() -> None:
    layout = MemoryLayout(LayoutKind.XOR, 128)
    assert layout.swizzle(4) == (3, 2, 3)
    moved = [layout.moved(offset, 4) for offset in range(1024)]
    assert all(moved[n : n + 4] == list(range(moved[n], moved[n] + 4)) for n in range(0, 1024, 4))
    columns = {layout.moved(row * 32, 4) % 32 for row in range(8)}
    assert len(columns) == 8  # a column of eight rows of 128 bytes is in eight different banks


def test_a_layout_is_that_of_the_shared_buffer() -> None:
    (nest,) = launches_of(lowered(TRACES["layout"][1])).nests
    assert [str(each) for each in nest.shared] == [
        "a_c_cache_cache: f32 (8, 4) padded(1)",
        "b_c_cache_cache: f32 (4, 8) xor(32)",
    ]


# what a target has


NAMED = parse_target("cuda:sm_90")
assert isinstance(NAMED, GpuTarget)
CARD = replace(NAMED, threads_per_block=16, opt_in_shared_bytes=320)


def refused(trace: Trace, target: GpuTarget) -> str:
    with pytest.raises(UnsupportedError) as caught:
        check_group_limits(lowered(trace), target)
    return caught.value.message()


def test_a_program_within_the_limits_is_left_as_it_is() -> None:
    staged = lowered(STAGED)
    assert check_group_limits(staged, CARD) is staged


@pytest.mark.parametrize(
    ("trace", "target", "message"),
    [
        (STAGED, replace(CARD, threads_per_block=15), "16 threads in a group are more than the 15"),
        (
            TRACES["pipeline"][1],
            CARD,
            "512 bytes of shared memory in a group are more than the 320",
        ),
        (
            TRACES["layout"][1],
            CARD,
            "416 bytes of shared memory in a group are more than the 320",
        ),
        (LANES, replace(CARD, threads_per_block=64, warp=4), "8 lanes that fold are more than"),
        (
            COPIES,
            replace(CARD, opt_in_shared_bytes=1024, arch="sm_75"),
            "copies that go on by themselves are not in cuda:sm_90",
        ),
    ],
)
def test_what_a_target_has_not_is_refused(trace: Trace, target: GpuTarget, message: str) -> None:
    assert message in refused(trace, target)
