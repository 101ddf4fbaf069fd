"""Workloads are read back from their text, or not at all."""

from __future__ import annotations

import pytest

from tensorwright.base import DType, RecordError, cpu_target, override
from tensorwright.expr import (
    Compute,
    Element,
    FromIndex,
    any_of,
    argmax_over,
    cast,
    compute,
    constant,
    exp,
    floormod,
    logical_and,
    logical_not,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.graph import Workload, program
from tensorwright.pipeline import prepare
from tensorwright.records import WorkloadText
from tensorwright_lab.zoo import build
from tensorwright_lab.zoo.plausible import draw_network

AVX2 = cpu_target("x86-64-avx2")


def expressions() -> list[Compute]:
    x, y = placeholder("x", (4, 6)), placeholder("y", (4, 6))
    rows = placeholder("rows", (5,), DType.I64)
    k = reduce_axis("k", 6)
    one, least = (constant(number, DType.F32) for number in (1.0, float("-inf")))
    table = [
        compute("far", (4, 6), lambda i, j: select(any_of(j < 1, i + j >= 5), one, x[i, j - 1])),
        compute("both", (4, 6), lambda i, j: select(x[i, j] < y[i, j], one, -0.5) * x[i, j]),
        compute("taken", (5, 6), lambda i, j: x[Element(rows, (i,)) % 4, j] + exp(-y[0, j])),
        compute("place", (4,), lambda i: argmax_over(x[i, k], k)),
        compute("sum", (), lambda: sum_over(x[0, k] * 2.0, k)),
        compute("most", (4,), lambda i: max_over(x[i, (k + 1) // 2], k)),
        compute("iota", (7,), lambda i: FromIndex(i * 2 + 1, DType.I32)),
        compute("ints", (5,), lambda i: cast(floormod(rows[i], 3), DType.F32)),
        compute("mask", (4,), lambda i: logical_and(x[i, 0] < 2.0, logical_not(x[i, 1] < 0))),
        compute("least", (2,), lambda i: select(i < 1, least, x[i, 0])),
    ]  # fmt: skip
    scalar = compute("scalar", (), lambda: sum_over(x[1, k], k))
    return [*table, compute("spread", (3,), lambda i: scalar[()] / 3.0)]


@pytest.mark.parametrize("output", expressions(), ids=lambda output: output.name)
def test_an_expression_is_read_back(output: Compute) -> None:
    check(program(output, constants=(), name="own"))


def check(workload: Workload) -> None:
    found = WorkloadText.of(workload).program()
    assert str(found) == str(workload)
    assert found.key == workload.key
    assert found.constants == workload.constants
    assert [each.name for each in found.inputs] == [each.name for each in workload.inputs]


def test_workloads_of_networks_are_read_back() -> None:
    with override(default_schedule="rule"):
        parts = [prepare(draw_network(seed), AVX2) for seed in range(8)]
        parts.append(prepare(build("squeezenet"), AVX2))
    workloads = {each.key: each for network in parts for each in network.workloads}
    assert len(workloads) > 25
    for workload in workloads.values():
        check(workload)


def test_what_is_not_understood_is_refused() -> None:
    usual = WorkloadText.of(program(expressions()[0]))
    changed = usual.text.replace('"far"', '"near"')
    for text in ("", "a text", usual.text.rpartition("\n")[0], changed, f"{usual.text[:-9]}]}}"):
        with pytest.raises(RecordError, match=f"workload {usual.workload}.*its text has"):
            usual._replace(text=text).program()
