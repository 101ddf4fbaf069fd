"""Features are what happens when a program runs, counted element by element."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets import AVX512

from tensorwright import expr, schedule
from tensorwright.loop import LoopProgram, lower
from tensorwright.tuning.features import FEATURE_NAMES, Featurizer, features_of
from tensorwright.tuning.space import Choice, Sketch

from .address_trace import Executions, trace_addresses

TARGET = AVX512


def _matmul() -> expr.Compute:
    a, b = expr.placeholder("a", (12, 16)), expr.placeholder("b", (16, 32))
    k = expr.reduce_axis("k", 16)
    c = expr.compute("c", (12, 32), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))
    return expr.compute("d", (12, 32), lambda i, j: expr.apply(expr.Fn.MAX, c[i, j], 0.0))


def _stencil() -> expr.Compute:
    x = expr.placeholder("x", (16, 34))
    blur = expr.compute("blur", (16, 32), lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2])
    return expr.compute("half", (16, 16), lambda i, j: blur[i, j * 2] * 0.5)


MATMUL: schedule.Trace = (
    schedule.Split("d", "i", (4,)),
    schedule.Split("d", "j", (16,)),
    schedule.Reorder("d", ("i_o", "j_o", "i_i", "j_i")),
    schedule.Vectorize("d", "j_i"),
    schedule.Fuse("d", ("i_o", "j_o")),
    schedule.Parallel("d", "i_o_j_o"),
    schedule.ComputeAt("c", "d", "i_o_j_o"),
    schedule.Reorder("c", ("k", "i", "j")),
    schedule.Unroll("c", "i"),
    schedule.Vectorize("c", "j"),
)
STENCIL: schedule.Trace = (
    schedule.Split("half", "i", (4,)),
    schedule.ComputeAt("blur", "half", "i_o"),
)
CASES = {
    "matmul, unscheduled": (_matmul, ()),
    "matmul in tiles": (_matmul, MATMUL),
    "stencil, unscheduled": (_stencil, ()),
    "stencil in bands": (_stencil, STENCIL),
}


class Statement:
    """The features of one statement by name, as counts again."""

    def __init__(self, row: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
        self.values = dict(zip(FEATURE_NAMES, np.exp2(row.astype(np.float64)) - 1, strict=True))

    def __getitem__(self, name: str) -> float:
        return round(self.values[name], 2)

    def buffers(self) -> list[dict[str, float]]:
        """The fields of each buffer that there is."""
        found = []
        for n in range(5):
            head = f"buffer{n}_"
            fields = {k.removeprefix(head): self[k] for k in FEATURE_NAMES if k.startswith(head)}
            if fields["read"] or fields["write"] or fields["read_write"]:
                found.append(fields)
        return found


def _program(name: str) -> LoopProgram:
    make, trace = CASES[name]
    return lower(schedule.replay(schedule.initial_state((make(),)), trace))


def _statements(name: str) -> list[tuple[Statement, Executions]]:
    program = _program(name)
    rows = features_of(program)[0]
    return [(Statement(row), ran) for row, ran in zip(rows, trace_addresses(program), strict=True)]


def _close(found: float, expected: float) -> bool:
    """Equal, up to the rounding of a logarithm in f32."""
    return abs(found - expected) <= 1e-5 * (1 + expected)


@pytest.mark.parametrize("name", CASES)
def test_executions_and_bytes(name: str) -> None:
    for statement, ran in _statements(name):
        assert _close(statement["outer_prod"], ran.count)
        touched = sorted((len(ran.places(b)) * ran.sizes[b] for b in ran.sizes), reverse=True)
        found = sorted((fields["bytes"] for fields in statement.buffers()), reverse=True)
        assert len(found) == len(touched)
        assert all(map(_close, found, touched))


@pytest.mark.parametrize("name", CASES)
def test_unique_bytes_and_lines(name: str) -> None:
    """Of the caller's buffers all elements count; one of an iteration's own is the same memory."""
    for statement, ran in _statements(name):
        expected = sorted((ran.unique_bytes(b), ran.unique_lines(b)) for b in ran.sizes)
        found = sorted((f["unique_bytes"], f["unique_lines"]) for f in statement.buffers())
        assert len(found) == len(expected)
        for (found_bytes, found_lines), (nbytes, lines) in zip(found, expected, strict=True):
            assert _close(found_bytes, nbytes)
            assert _close(found_lines, lines) or name.startswith("stencil")  # rows of 34 elements


def test_strides_and_reuse() -> None:
    """c[i, j] += a[i, k] * b[k, j] with k, i, j inside a tile of 4 by 16, two by three tiles."""
    update = next(s for s, _ in _statements("matmul in tiles") if s["float_mad"])
    stored, *read = update.buffers()
    assert stored["read_write"] == 1
    wide = next(fields for fields in read if fields["stride"] == 1)
    narrow = next(fields for fields in read if fields is not wide)
    assert stored["stride"] == 1
    assert narrow["stride"] == 16  # a moves with i, a row of 16 further on
    assert _close(stored["reuse_distance_iterations"], 4 * 16)  # again in the next k
    assert stored["reuse_count"] == 16
    assert wide["reuse_distance_iterations"] == 16  # again in the next i
    assert wide["reuse_count"] == 4
    assert narrow["reuse_distance_iterations"] == 1  # again in the next lane
    assert narrow["reuse_count"] == 16
    assert _close(wide["reuse_distance_bytes"], (16 + 16 + 1) * 4)
    assert all(fields["reuse_loop"] == 1 for fields in (stored, *read))


def test_structure_of_loops() -> None:
    update = next(s for s, _ in _statements("matmul in tiles") if s["float_mad"])
    assert update["vector_len"] == 16
    assert update["vector_num"] == 1
    assert update["vector_type_inner_spatial"] == 1
    assert update["unroll_prod"] == 4
    assert update["unroll_type_middle_spatial"] == 1
    assert update["parallel_len"] == 6
    assert update["parallel_type_outer_spatial"] == 1
    assert update["num_loops"] == 4
    assert update["auto_unroll_max_step"] == 4
    assert update["alloc_size"] == 4 * 16 * 4
    assert update["alloc_outer_prod"] == 6
    assert _close(update["float_mad"], 12 * 32 * 16)
    assert update["is_gpu"] == 0


def test_a_stage_that_reads_its_neighbour_reuses_in_series() -> None:
    """In bands, what one nest stores the next one reads."""
    (first, _), (second, _) = _statements("stencil in bands")
    stored = first.buffers()[0]
    assert stored["reuse_serial"] == 1
    assert stored["reuse_distance_iterations"] == 4 * 31  # the last column is not read
    assert second.buffers()[1]["reuse_serial"] == 1


def test_the_last_point_of_the_curve_is_the_whole_nest() -> None:
    program = _program("matmul, unscheduled")
    rows = features_of(program)[0]
    for row, ran in zip(rows, trace_addresses(program), strict=True):
        statement = Statement(row)
        names = ("float_mad", "float_cmp", "int_mad", "int_divmod")
        operations = max(sum(statement[name] for name in names), ran.count)
        nbytes = sum(ran.unique_bytes(name) for name in ran.sizes)
        curve = row[FEATURE_NAMES.index("intensity_9")]
        assert curve <= np.log2(operations / nbytes) + 1e-3


def test_guards_that_always_hold_are_absent() -> None:
    """A tile of 5 leaves a guard on 12 rows, one of 4 does not; open tiles know which is which."""
    out = _matmul()
    trace: schedule.Trace = (schedule.Split("d", "i", (expr.Decision("tile"),)),)
    sketch = Sketch("tiles", trace, (Choice.of("tile", (4, 5, 12, 16), 4),))
    featurizer = Featurizer(schedule.initial_state((out,)), TARGET)
    rows = featurizer.of_sketch(sketch, np.arange(4)[:, None])[:, -1]
    guards = [Statement(row)["bool_op"] for row in rows]
    assert guards[0] == guards[2] == guards[3] == 0
    assert guards[1] > 0
    assert [Statement(row)["outer_prod"] for row in rows] == [384, 480, 384, 384]
    assert [Statement(row)["num_loops"] for row in rows] == [3, 3, 2, 2]
