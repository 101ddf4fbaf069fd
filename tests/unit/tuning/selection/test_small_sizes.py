"""Small sizes, which leave lanes or threads idle, get a trace of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from tests.targets import AVX512

from tensorwright.expr import compute, named_size, placeholder
from tensorwright.graph import Workload, bind_workload, program, representative
from tensorwright.schedule import Trace, open_trace, parse_trace, state_of
from tensorwright.tuning.selection.size_table import trace_for_small_sizes

BY_LANES = parse_trace("split(y, j, [16])\nvectorize(y, j_i)")
BY_ROWS = parse_trace("split(y, i, [4])\nunroll(y, i_i)")


def doubled() -> Workload:
    """Twice the elements of a matrix of any number of columns."""
    x = placeholder("x", (64, named_size("n", greatest=400)))
    return program([compute("y", x.shape, lambda i, j: x[i, j] + x[i, j])])


@dataclass
class Prices:
    """Lanes take as long for 1 column as for 16; rows `row_s` for each column."""

    row_s: float

    def alone(self, trace: Trace, values: Mapping[str, int]) -> float:
        return self.opened(trace, values)

    def opened(self, trace: Trace, values: Mapping[str, int]) -> float:
        is_by_rows = "unroll" in " ".join(map(str, trace))
        return values["n"] * self.row_s if is_by_rows else -(-values["n"] // 16) * 1e-4


@pytest.mark.parametrize(
    ("row_s", "label", "tried"),
    [
        (6e-6, "all sizes", [4]),  # as good for the typical 89 columns, too
        (8e-6, "1 <= n <= 17", [4]),  # 17 columns take two vectors of 16 lanes
        (1.6e-5, "1 <= n <= 4", [4]),  # 5 columns take not much less than 16 lanes
        (5e-5, "n = 1", [4, 1]),  # 4 columns would take longer than 16 lanes
        (9e-5, None, [4, 1]),
    ],
)
def test_a_trace_runs_as_far_as_it_gains(row_s: float, label: str | None, tried: list[int]) -> None:
    workload, asked = doubled(), []

    def choose(instance: Workload) -> Trace:
        asked.append(instance.key)
        return BY_ROWS

    opened = open_trace(state_of(workload), BY_LANES, AVX512.vector_bytes)
    small = trace_for_small_sizes(workload, opened, 1, choose, Prices(row_s))
    assert (small and small.label) == label
    assert asked == [bind_workload(workload, {"n": number}).key for number in tried]


@pytest.mark.parametrize(("alone_s", "label"), [(1e-9, "1 <= n <= 17"), (1e-2, None)])
def test_a_trace_is_no_worse_where_the_other_sizes_are_least(
    alone_s: float, label: str | None
) -> None:
    n, rows = named_size("n", greatest=400), named_size("rows", greatest=64)
    x = placeholder("x", (rows, n))
    workload = program([compute("y", x.shape, lambda i, j: x[i, j] + x[i, j])])
    opened = open_trace(state_of(workload), BY_LANES, AVX512.vector_bytes)

    class Alone(Prices):
        def opened(self, trace: Trace, values: Mapping[str, int]) -> float:
            is_alone = values["rows"] == 1 and trace == BY_ROWS
            return alone_s if is_alone else super().opened(trace, values)

    small = trace_for_small_sizes(workload, opened, 1, lambda _: BY_ROWS, Alone(8e-6))
    assert (small and small.label) == label


def test_no_schedule_is_asked_for_where_all_lanes_are_used() -> None:
    workload = bind_workload(doubled(), {"n": named_size("n", 32, 400)})
    opened = open_trace(state_of(workload), BY_LANES, AVX512.vector_bytes)
    assert representative(workload.sizes)["n"] > 32
    small = trace_for_small_sizes(workload, opened, 1, _fails, Prices(1e-9))
    assert small is None


def test_no_size_is_asked_for_that_empties_a_tensor() -> None:
    n, asked = named_size("n", greatest=400), []
    x = placeholder("x", (64, n - 9))
    workload = program([compute("y", x.shape, lambda i, j: x[i, j] + x[i, j])])
    opened = open_trace(state_of(workload), BY_LANES, AVX512.vector_bytes)

    class Asked(Prices):
        def opened(self, trace: Trace, values: Mapping[str, int]) -> float:
            asked.append(values["n"] - 9)
            return super().opened(trace, values)

    trace_for_small_sizes(workload, opened, 1, lambda _: BY_ROWS, Asked(8e-6))
    assert min(asked) >= 1


def _fails(instance: Workload) -> Trace:
    pytest.fail(f"asked for {instance}")
