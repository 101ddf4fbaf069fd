"""Lines from beyond a cache are those that a cache which forgets the oldest would miss."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from tensorwright import schedule
from tensorwright.expr import Compute, compute, placeholder, reduce_axis, sum_over
from tensorwright.loop import lower
from tensorwright.tuning.features import CACHE_BYTES, FEATURE_NAMES, features_of

from .address_trace import LINE_BYTES, Executions, trace_addresses


def _turned(rows: int, columns: int) -> Compute:
    x = placeholder("x", (rows, columns))
    return compute("t", (columns, rows), lambda i, j: x[j, i])


def _column_sums(rows: int, columns: int) -> Compute:
    x, k = placeholder("x", (rows, columns)), reduce_axis("k", rows)
    return compute("s", (columns,), lambda j: sum_over(x[k, j], k))


TILES: schedule.Trace = (
    schedule.Split("t", "i", (16,)),
    schedule.Split("t", "j", (16,)),
    schedule.Reorder("t", ("i_o", "j_o", "i_i", "j_i")),
)
CASES: dict[str, tuple[Compute, schedule.Trace]] = {
    "columns that fit": (_turned(96, 96), ()),
    "columns that do not": (_turned(624, 48), ()),
    "tiles": (_turned(624, 48), TILES),
    "sums of columns": (_column_sums(640, 48), ()),
    "sums of columns, row by row": (_column_sums(640, 48), (schedule.Reorder("s", ("k", "j")),)),
}


def _misses(ran: Executions, nbytes: int) -> int:
    """Lines that a cache lacks in the second of two runs, of buffers that begin with a line."""
    rooms, held, missed = nbytes // LINE_BYTES, OrderedDict[tuple[str, int], None](), 0
    lists = [(name, part) for part in (ran.loads, ran.stores) for name in part]
    for _ in range(2):
        missed = 0
        for n in range(ran.count):
            for name, part in lists:
                line = name, part[name][n] * ran.sizes[name] // LINE_BYTES
                missed += line not in held
                held[line] = None
                held.move_to_end(line)
                if len(held) > rooms:
                    held.popitem(last=False)
    return missed


def _beyond(row: np.ndarray[tuple[int], np.dtype[np.float32]], nbytes: int) -> float:
    return float(np.exp2(row[FEATURE_NAMES.index(f"lines_beyond_{nbytes}")]) - 1)


def _loads(row: np.ndarray[tuple[int], np.dtype[np.float32]], nbytes: int) -> float:
    return float(np.exp2(row[FEATURE_NAMES.index(f"loads_beyond_{nbytes}")]) - 1)


@pytest.mark.parametrize("name", CASES)
def test_they_are_what_a_cache_misses(name: str) -> None:
    out, trace = CASES[name]
    program = lower(schedule.replay(schedule.initial_state((out,)), trace))
    row, ran = features_of(program)[0][-1], trace_addresses(program)[-1]
    found = [_beyond(row, nbytes) for nbytes in CACHE_BYTES]
    assert found == pytest.approx([_misses(ran, nbytes) for nbytes in CACHE_BYTES], rel=0.05, abs=1)
    assert len(set(found)) > 1


def test_registers_hold_elements() -> None:
    """A column of 32 rows is 32 elements in registers, and 32 lines in a cache."""
    k = reduce_axis("k", 512)
    x, w = placeholder("x", (32, 512)), placeholder("w", (512,))
    out = compute("y", (32,), lambda i: sum_over(x[i, k] * w[k], k))
    state = schedule.replay(schedule.initial_state((out,)), (schedule.Reorder("y", ("k", "i")),))
    update = features_of(lower(state))[0][-1]
    each_once = 0.5 * (32 * 512 + 512 + 32)  # a number alone is half a load
    assert _loads(update, 512) == pytest.approx(each_once, rel=1e-4)
    assert _beyond(update, CACHE_BYTES[0]) == pytest.approx(32 * 32 + 32 + 2, rel=1e-4)
    assert _beyond(update, CACHE_BYTES[1]) == 0  # all of it stays


def test_lanes_that_lie_together_are_one_load() -> None:
    x = placeholder("x", (64, 256))
    out = compute("y", (64, 256), lambda i, j: x[i, j] + 1.0)
    inner: schedule.Trace = (schedule.Split("y", "j", (16,)), schedule.Vectorize("y", "j_i"))
    outer: schedule.Trace = (
        schedule.Split("y", "i", (16,)),
        schedule.Reorder("y", ("i_o", "j", "i_i")),
        schedule.Vectorize("y", "i_i"),
    )
    along, across = (
        features_of(lower(schedule.replay(schedule.initial_state((out,)), trace)))[0][-1]
        for trace in (inner, outer)
    )
    assert _loads(along, 512) == pytest.approx(2 * 64 * 256 / 16, rel=1e-4)
    assert _loads(across, 512) == pytest.approx(2 * 64 * 256, rel=1e-4)


def test_what_a_stage_has_just_stored_is_at_hand() -> None:
    x = placeholder("x", (256, 1024))
    twice = compute("twice", (256, 1024), lambda i, j: x[i, j] * 2.0)
    out = compute("out", (256, 1024), lambda i, j: twice[i, j] + 1.0)
    apart, beside = (
        features_of(lower(schedule.replay(schedule.initial_state((out,)), trace)))[0][-1]
        for trace in ((), (schedule.ComputeAt("twice", "out", "i"),))
    )
    lines = 256 * 1024 * 4 // LINE_BYTES
    assert _beyond(apart, 32 * 1024) == pytest.approx(2 * lines, rel=1e-4)
    assert _beyond(beside, 32 * 1024) == pytest.approx(lines, rel=1e-4)


def test_lines_come_from_other_cores_where_iterations_are_shared_out_in_another_way() -> None:
    x = placeholder("x", (64, 256))
    twice = compute("twice", (64, 256), lambda i, j: x[i, j] * 2.0)
    out = compute("out", (64, 256), lambda i, j: twice[i, j] + 1.0)
    both = (schedule.Parallel("twice", "i"), schedule.Parallel("out", "i"))
    beside = (schedule.Parallel("out", "i"), schedule.ComputeAt("twice", "out", "i"))
    traces: list[schedule.Trace] = [(), both, beside, both[:1], both[1:]]
    found = []
    for trace in traces:
        rows = features_of(lower(schedule.replay(schedule.initial_state((out,)), trace)))[0]
        column = FEATURE_NAMES.index("lines_of_other_threads")
        found.append([round(float(np.exp2(row[column]) - 1)) for row in rows])
    lines = 64 * 256 * 4 // LINE_BYTES
    assert found == [[0, 0], [0, 0], [0, 0], [lines, lines], [lines, lines]]
