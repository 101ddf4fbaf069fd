"""How often threads wait for lines of each other, and that prices tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.targets import AVX2
from tests.unit.tuning.compiled import workloads

from tensorwright.base import LINE_BYTES
from tensorwright.graph import GraphBuilder
from tensorwright.loop import lower
from tensorwright.machine import NOMINAL, machine_of
from tensorwright.schedule import ScheduleState, parse_trace, replay, state_of
from tensorwright.tuning import time_model
from tensorwright.tuning.features import features_of
from tensorwright.tuning.selection.candidates import Ranked
from tensorwright.tuning.selection.predictor import Predictor


def rows(*shape: int) -> ScheduleState:
    """relu of rows."""
    builder = GraphBuilder("rows")
    x = builder.input("x", shape)
    ((workload, _),) = workloads(builder.finish((builder.add("relu", x),)), AVX2)
    return state_of(workload)


def transfers(state: ScheduleState, trace: str, threads: int = 2) -> int:
    return time_model.line_transfers(lower(replay(state, parse_trace(trace))), threads)


def columns(width: int, parts: int, inner: str = "j_i, i") -> str:
    """Threads have columns of all rows, and go down them."""
    loops = f"reorder(relu, [j_o, {inner}])"
    return f"split(relu, j, [{width // parts}])\n{loops}\nparallel(relu, j_o)"


@pytest.mark.parametrize(
    ("parts", "threads", "waits"), [(2, 2, 320), (4, 2, 320), (8, 2, 320), (4, 4, 3 * 160)]
)
def test_threads_that_write_parts_of_each_line_wait_at_every_step(
    parts: int, threads: int, waits: int
) -> None:
    assert transfers(rows(40, 16), columns(16, parts), threads) == waits


def test_pieces_of_lines_that_are_written_in_one_go_take_a_transfer_each() -> None:
    assert transfers(rows(40, 16), columns(16, 2, "i, j_i")) == 40


def test_neighbouring_elements_of_long_rows_are_shared_line_by_line() -> None:
    """Threads have the even and the odd elements: each comes to all lines once."""
    trace = "split(relu, j, [2])\nreorder(relu, [j_i, i, j_o])\nparallel(relu, j_i)"
    assert transfers(rows(3, 64), trace) == 3 * 64 * 4 // LINE_BYTES


def test_one_thread_shares_nothing() -> None:
    assert transfers(rows(40, 16), columns(16, 4), threads=1) == 0


def test_lines_of_their_own_are_not_shared() -> None:
    assert transfers(rows(40, 32), columns(32, 2)) == 0
    assert transfers(rows(40, 32), columns(32, 8)) == 0
    assert transfers(rows(40, 32), columns(32, 8), threads=4) > 0


def test_rows_of_their_own_are_not_shared() -> None:
    assert transfers(rows(40, 4), "parallel(relu, i)") == 0
    fused = "split(relu, j, [4])\nfuse(relu, [i, j_o])\nparallel(relu, i_j_o)"
    assert transfers(rows(40, 16), fused) == 0


def test_what_each_iteration_has_of_its_own_is_not_shared() -> None:
    builder = GraphBuilder("product")
    x, y = builder.input("x", (8, 8)), builder.input("y", (8, 40))
    ((workload, _),) = workloads(
        builder.finish((builder.add("relu", builder.add("matmul", x, y)),)), AVX2
    )
    state = state_of(workload)
    assert transfers(state, "parallel(relu, i)\ncompute_at(matmul, relu, i)") == 0


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_decisions_may_be_open(width: int) -> None:
    state = rows(40, 32)
    trace = "split(relu, j, [{}])\nreorder(relu, [j_o, j_i, i])\nparallel(relu, j_o)"
    program = lower(replay(state, parse_trace(trace.format("?width"))))
    assert time_model.line_transfers(program, 4, {"width": width}) == transfers(
        state, trace.format(width), 4
    )


def test_a_price_has_the_time_that_threads_wait() -> None:
    model = time_model.pretrained_model()
    assert model is not None
    machine = machine_of(AVX2, 2)
    prices = Predictor(model, machine)
    builder = GraphBuilder("rows")
    ((workload, _),) = workloads(
        builder.finish((builder.add("relu", builder.input("x", (4000, 16))),)), AVX2
    )
    trace = parse_trace(columns(16, 2))
    program = lower(replay(state_of(workload), trace))
    alone = model.predict(features_of(program), machine)
    found = prices.estimate(workload, trace)
    assert found is not None
    waits = time_model.shared_lines_s(program, machine)
    assert waits == pytest.approx(32000 * NOMINAL.line_cycles / NOMINAL.clock_hz)
    assert found.seconds == pytest.approx(2.0 ** alone.median[0] + waits)
    assert found.upper_seconds == pytest.approx(2.0 ** alone.upper[0] + waits)


def test_what_waits_less_comes_first() -> None:
    """Prices by features alone are asked for the time to wait in their order, as far as needed."""
    asked: list[int] = []
    seconds = np.log2(np.array([8.0, 1.0, 2.0, 3.0, 7.0]))

    class Some(Ranked):
        def price(self, number: int) -> time_model.Prediction:
            asked.append(number)
            return self.prices.of(number).later([0.0, 4.0, 0.5, 0.0, 0.0][number])

    nothing: Any = None
    ranked = Some(nothing, nothing, time_model.Prediction(seconds, seconds, seconds), 0.5, nothing)
    order = ranked.best_first([4, 3, 2, 1])
    assert next(order)[1] == 2
    assert asked == [1, 2]
    assert [number for _, number in order] == [3, 1, 4]
    assert list(ranked.better_than_rule(time_model.Policy(0.5, 1.0, roofline_margin=9.0))) == [2, 3]
