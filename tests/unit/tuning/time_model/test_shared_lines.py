"""Which schedules let threads write to the same cache lines."""

from __future__ import annotations

import pytest
from tests.targets import AVX2
from tests.unit.tuning.compiled import workloads

from tensorwright.graph import GraphBuilder
from tensorwright.loop import lower
from tensorwright.schedule import ScheduleState, parse_trace, replay, state_of
from tensorwright.tuning.selection.shared_lines import threads_share_lines


def rows(*shape: int) -> ScheduleState:
    """relu of rows."""
    builder = GraphBuilder("rows")
    x = builder.input("x", shape)
    ((workload, _),) = workloads(builder.finish((builder.add("relu", x),)), AVX2)
    return state_of(workload)


def shares(state: ScheduleState, trace: str, threads: int = 2) -> bool:
    return threads_share_lines(lower(replay(state, parse_trace(trace))), threads)


def columns(width: int, parts: int, inner: str = "j_i, i") -> str:
    """Threads have columns of all rows, and go down them."""
    loops = f"reorder(relu, [j_o, {inner}])"
    return f"split(relu, j, [{width // parts}])\n{loops}\nparallel(relu, j_o)"


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_threads_that_write_parts_of_each_line_share_it(parts: int) -> None:
    assert shares(rows(40, 16), columns(16, parts))


def test_pieces_of_lines_that_are_written_in_one_go_are_no_matter() -> None:
    assert not shares(rows(40, 16), columns(16, 2, "i, j_i"))


def test_one_thread_shares_nothing() -> None:
    assert not shares(rows(40, 16), columns(16, 4), threads=1)


def test_lines_of_their_own_are_not_shared() -> None:
    assert not shares(rows(40, 32), columns(32, 2))
    assert not shares(rows(40, 32), columns(32, 8))
    assert shares(rows(40, 32), columns(32, 8), threads=4)


def test_rows_of_their_own_are_not_shared() -> None:
    assert not shares(rows(40, 4), "parallel(relu, i)")
    fused = "split(relu, j, [4])\nfuse(relu, [i, j_o])\nparallel(relu, i_j_o)"
    assert not shares(rows(40, 16), fused)


def test_a_line_that_is_written_once_is_no_matter() -> None:
    assert not shares(rows(1, 8), columns(8, 2))


def test_what_each_iteration_has_of_its_own_is_not_shared() -> None:
    builder = GraphBuilder("product")
    x, y = builder.input("x", (8, 8)), builder.input("y", (8, 40))
    ((workload, _),) = workloads(
        builder.finish((builder.add("relu", builder.add("matmul", x, y)),)), AVX2
    )
    state = state_of(workload)
    assert not shares(state, "parallel(relu, i)\ncompute_at(matmul, relu, i)")
